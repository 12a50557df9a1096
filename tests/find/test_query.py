"""Looking for an image, a picture from elsewhere, or words; and what is said where that cannot be."""

import io
import json
import sys

import numpy as np
import pytest
from PIL import Image

from semiprune_core.cli import main as semiprune
from semiprune_core.embeddings import words as text
from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, SourceError
from semiprune_core.find import like_image, like_picture, like_words, most_alike, query, words_missing
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project.pool import show_id
from tests.support.features import add_features


@pytest.fixture
def pictures(class_folder, import_into):
    """Twenty pictures with features that are a ring: neighbours are alike."""
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    angle = np.linspace(0, np.pi, 20)
    add_features(project, np.stack([np.cos(angle), np.sin(angle)], axis=1))
    return project


def test_an_image_finds_itself_first_and_then_its_neighbours(pictures):
    everything = pictures.everything()
    for position in (0, 7, 19):
        likeness = like_image(pictures, everything, int(everything.ids[position]))
        order = most_alike(likeness, most=3).tolist()
        assert order[0] == position and all(abs(other - position) <= 2 for other in order)
        assert likeness[position] == pytest.approx(1)


def test_tests_are_searched_too_and_may_be_the_example(tmp_path, class_folder, import_into):
    for split in ("train", "test"):
        (tmp_path / "both" / split).mkdir(parents=True)
    for name in ("cat", "dog"):
        (class_folder / name).rename(tmp_path / "both" / ("train" if name == "cat" else "test") / name)
    project, _ = import_into(SourceSpec("folder", str(tmp_path / "both")))
    add_features(project)
    everything = project.everything()
    tests = everything.split("test")
    likeness = like_image(project, everything, int(tests.ids[0]))
    assert most_alike(likeness, most=1).tolist() == [int(tests.rows[0])] and (likeness > 0).all()


def test_a_picture_from_elsewhere_finds_the_image_it_is(with_features):
    """The real encoder: its features of a file are those that the job has written."""
    everything = with_features.everything()
    likeness = like_picture(with_features, everything, everything.original(3), "mine.png")
    assert most_alike(likeness, most=1).tolist() == [3] and likeness[3] > 0.9999


def test_without_features_it_says_what_to_do(class_folder, import_into):
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    everything = project.everything()
    for ask in (
        lambda: like_image(project, everything, int(everything.ids[0])),
        lambda: like_picture(project, everything, b"", "mine.png"),
    ):
        with pytest.raises(MissingStepError, match=f"semiprune embed {project.name}"):
            ask()


def test_an_image_of_another_project_is_refused(pictures):
    with pytest.raises(InvalidDataError, match="no such image"):
        like_image(pictures, pictures.everything(), 1)


@pytest.fixture
def named_weights(monkeypatch):
    monkeypatch.setattr(query, "_weights", lambda project, run: "")


def png(side, picture=None):
    file = io.BytesIO()
    (picture or Image.new("RGB", (side, side))).save(file, "PNG")
    return file.getvalue()


def noise(side):
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    "data, code",
    [
        (b"", "NOT_AN_IMAGE"),
        (b"<html>no picture", "NOT_AN_IMAGE"),
        (png(60, noise(60))[:900], "IMAGE_TRUNCATED"),
        (png(9000), "IMAGE_TOO_MANY_PIXELS"),
    ],
    ids=["empty", "html", "cut short", "huge"],
)
def test_a_bad_upload_gets_one_sentence(data, code, pictures, named_weights):
    with pytest.raises(SourceError, match=r"mine\.png") as caught:
        like_picture(pictures, pictures.everything(), data, "mine.png")
    assert caught.value.code == code


def test_an_upload_of_many_bytes_is_refused_before_anything_is_read(pictures, monkeypatch):
    monkeypatch.setattr(query, "MAX_FILE_BYTES", 10)
    with pytest.raises(InvalidDataError, match="more than the 1e-05 MB allowed"):
        like_picture(pictures, pictures.everything(), bytes(11), "mine.png")


def write_weights(folder, shapes):
    """A safetensors file's table alone: what is looked at to know what it holds."""
    folder.mkdir(exist_ok=True)
    table = json.dumps(
        {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    )
    (folder / "clip.safetensors").write_bytes(len(table).to_bytes(8, "little") + table.encode())


def test_words_say_step_by_step_what_is_missing(class_folder, import_into, monkeypatch):
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    everything, folder = project.everything(), project.workspace.weights_folder
    with pytest.raises(MissingStepError, match="--encoder clip_vit_b_32"):
        like_words(project, everything, "a cat")
    add_features(project, encoder="clip_vit_b_32")
    monkeypatch.setitem(sys.modules, text.PACKAGE, None)
    monkeypatch.setattr(text.importlib.util, "find_spec", lambda name: None)
    assert "pip install open_clip_torch" in words_missing(project)
    monkeypatch.setattr(text.importlib.util, "find_spec", lambda name: object())
    assert "vit_base_patch32_clip_224.openai" in words_missing(project)
    write_weights(folder, {text.IMAGE_PART: [768, 3, 32, 32]})
    assert words_missing(project)
    write_weights(folder, {text.IMAGE_PART: [768, 3, 16, 16], text.TEXT_PART: [4, 4]})
    assert words_missing(project)
    write_weights(folder, {text.IMAGE_PART: [768, 3, 32, 32], text.TEXT_PART: [4, 4]})
    assert words_missing(project) == ""
    with pytest.raises(InvalidSettingError, match="a few words"):
        like_words(project, everything, "  ")


def test_the_command_prints_the_most_alike_and_writes_them(pictures, tmp_path, capsys):
    home, everything = str(pictures.workspace.root), pictures.everything()
    out = tmp_path / "alike.csv"
    asked = ["find", pictures.name, "--like", show_id(everything.ids[4]), "--n", "3", "--out", str(out)]
    assert semiprune([*asked, "--home", home, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["found"]
    assert [row["path"] for row in found][0] == everything.path(4) and len(found) == 3
    assert found[0]["likeness"] == 1 and len(out.read_text().splitlines()) == 4
    for words in ([], ["--like", "no-such-file.png"], ["--like", "a", "--text", "b"]):
        assert semiprune(["find", pictures.name, *words, "--home", home]) != 0
    assert "Traceback" not in capsys.readouterr().err
