"""Features of every image: from the originals, one artifact, resumed and extended without doing anything twice."""

import json
import os
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_sample_images

from semiprune_core import jobs
from semiprune_core.cli import main
from semiprune_core.embeddings import encoders, originals
from semiprune_core.embeddings.encoders import open_encoder, state_hash
from semiprune_core.embeddings.engines import cosines, open_engine
from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, SourceError
from semiprune_core.features import EmbedSettings, submit_features
from semiprune_core.features import embed as module
from semiprune_core.features.embed import embed
from semiprune_core.importing import images
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.progress import Collected, Stopped
from semiprune_core.project.artifacts import differences
from semiprune_core.project.pool import PoolSettings
from semiprune_core.results import FeatureRun, latest_features
from tests.features.conftest import SIDE, pieces

QUICK = EmbedSettings(encoder="efficientnet_lite0", size=SIDE, engine="torch", n_workers=1)


def run(project, folder, settings=QUICK, progress=None):
    return embed(project, settings, progress or Collected(), folder=folder)


def usual_loop(pixels, guard, side=SIDE):
    """The slow twin: Pillow, one image at a time, eager torch in fp32."""
    encoder = open_encoder("efficientnet_lite0", guard=guard)
    answers = []
    for piece in pixels:
        seen = torch.from_numpy(images.fit(piece, side, 3, "crop").copy()).permute(2, 0, 1)[None] / 255
        with torch.inference_mode():
            answers.append(encoder.net((seen - 127 / 255) / (128 / 255))[0].numpy())
    return np.stack(answers)


def test_features_are_those_of_the_originals_in_pool_order(photos, tmp_path):
    progress = Collected()
    made = run(photos, tmp_path / "work", progress=progress)
    pool = photos.pool()
    wanted = usual_loop([images.decode(pool.original(at), name="x").pixels for at in range(12)], photos.workspace.guard)
    assert made.features().shape == (12, 1280) and made.features().dtype == np.float32
    assert cosines(made.features(), wanted).min() > 0.9999
    small = usual_loop(list(pool.images()), photos.workspace.guard)
    assert cosines(made.features(), small).max() < 0.99  # not the training copies
    settings = made.artifact.settings
    assert settings["encoder"] == "efficientnet_lite0" and settings["size"] == SIDE and settings["fit"] == "crop"
    assert settings["mean"] == [127 / 255] * 3 and settings["std"] == [128 / 255] * 3
    assert settings["weights_hash"] == state_hash(open_encoder("efficientnet_lite0", guard=photos.workspace.guard).net)
    assert made.artifact.inputs["pool"] == pool.hash and not differences(made.artifact.folder)
    assert progress.reports[-1]["done"] == progress.reports[-1]["total"] == 12
    assert not list((tmp_path / "work").iterdir())
    assert latest_features(photos, "efficientnet_lite0").artifact.id == made.artifact.id


def test_mirrored_images_are_shown_too_unless_not_wanted(photos, tmp_path):
    made = run(photos, tmp_path / "work")
    ((own, mirrored),) = made.parts()
    pool = photos.pool()
    turned = [images.decode(pool.original(at), name="x").pixels[:, ::-1] for at in range(12)]
    assert (own == made.features()).all() and mirrored.dtype == np.float16
    assert cosines(mirrored.astype(np.float32), usual_loop(turned, photos.workspace.guard)).min() > 0.999
    plain = run(photos, tmp_path / "work", QUICK.replace(mirrored=False))
    assert plain.artifact.id != made.artifact.id and plain.parts()[0][1] is None


def test_two_encoders_side_by_side_give_what_each_gives(photos, tmp_path):
    both = run(photos, tmp_path / "work", QUICK.replace(encoder=encoders.PAIR))
    (lite0, _), (lite2, _) = both.parts()
    np.testing.assert_allclose(lite0, run(photos, tmp_path / "work").features(), atol=1e-4)
    alone = run(photos, tmp_path / "work", QUICK.replace(encoder="efficientnet_lite2")).features()
    np.testing.assert_allclose(lite2, alone, atol=1e-4)
    fast = open_engine(open_encoder(encoders.PAIR, guard=photos.workspace.guard), SIDE)
    shown = np.stack([images.fit(photos.pool().images()[0], SIDE, 3, "stretch")])
    slow = open_engine(open_encoder(encoders.PAIR, guard=photos.workspace.guard), SIDE, engine="torch")
    assert cosines(fast(shown), slow(shown)).min() > 0.9999
    assert both.features().shape == (12, 2560) and both.encoder == encoders.PAIR
    assert encoders.own_side(encoders.PAIR) == 260


def test_a_weights_file_for_two_encoders_is_refused(photos):
    with pytest.raises(InvalidSettingError, match="belongs to one encoder"):
        submit_features(photos, encoders.PAIR, weights="some.safetensors")


def test_nothing_is_computed_twice_nor_opened_where_the_files_tell(photos, tmp_path, monkeypatch):
    made = run(photos, tmp_path / "work")
    monkeypatch.setattr(module, "open_engine", None)
    monkeypatch.setattr(module, "open_encoder", None)
    assert run(photos, tmp_path / "work").artifact.id == made.artifact.id
    with pytest.raises(TypeError):  # other weights are opened
        run(photos, tmp_path / "work", QUICK.replace(encoder="efficientnet_lite2"))


def test_more_images_are_computed_alone_and_test_images_have_a_file_of_their_own(
    photos, make_photos, import_into, tmp_path
):
    before = run(photos, tmp_path / "work")
    further = make_photos("more", n=6, first=12)
    with open(tmp_path / "more.csv", "w") as table:
        table.write("path,split\n")
        for number, path in enumerate(sorted(further.rglob("*.jpg"))):
            table.write(f"{path.relative_to(further)},{'test' if number < 2 else 'pool'}\n")
    spec = SourceSpec(
        "manifest", str(tmp_path / "more.csv"), {"root": str(further), "path_column": "path", "split_column": "split"}
    )
    import_into(spec, project=photos)
    with pytest.raises(MissingStepError, match="semiprune embed"):
        latest_features(photos)
    made = run(photos, tmp_path / "work")
    assert made.artifact.facts["n_computed"] == 6
    assert made.features().shape == (16, 1280) and made.test_features().shape == (2, 1280)
    np.testing.assert_array_equal(made.features()[:12], before.features())
    np.testing.assert_array_equal(made.parts()[0][1][:12], before.parts()[0][1])
    test = photos.test_set()
    wanted = usual_loop([images.decode(test.original(at), name="x").pixels for at in range(2)], photos.workspace.guard)
    assert cosines(made.test_features(), wanted).min() > 0.9999
    assert before.test_features().shape == (0, 1280)


def test_a_stopped_run_goes_on_where_it_was_with_the_same_bits(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    whole = np.array(run(photos, tmp_path / "work").features())
    photos.artifacts("features")[0].folder.rename(tmp_path / "first")  # as if it had never been
    with pytest.raises(Stopped):
        run(photos, tmp_path / "work", progress=Collected(stop_after=8))
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == [
        "rows-000000000-000000004.npy",
        "rows-000000004-000000008.npy",
    ]
    seen = []
    see = originals.originals
    monkeypatch.setattr(module, "originals", lambda pool, start: seen.append(start) or see(pool, start))
    np.testing.assert_array_equal(run(photos, tmp_path / "work").features(), whole)
    assert seen == [8]


KILLED = """
import os, sys
from semiprune_core.features import embed as module
from semiprune_core.features import EmbedSettings
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Workspace
from pathlib import Path

class Killing(Collected):
    def report(self, done, total, /, **facts):
        if done >= 8:
            os.kill(os.getpid(), 9)

if __name__ == "__main__":
    module.BLOCK = 4
    project = Workspace.open(sys.argv[1]).project(sys.argv[2])
    settings = EmbedSettings(encoder="efficientnet_lite0", size=64, engine="torch", n_workers=1)
    module.embed(project, settings, Killing(), folder=Path(sys.argv[3]))
"""


@pytest.mark.fault
def test_a_killed_run_goes_on_with_the_same_bits(photos, tmp_path, monkeypatch):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    words = [sys.executable, str(script), str(photos.workspace.root), photos.name, str(tmp_path / "work")]
    ended = subprocess.run(words, env={**os.environ, "PYTHONPATH": os.getcwd()}, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert len(list((tmp_path / "work").iterdir())) == 2
    monkeypatch.setattr(module, "BLOCK", 4)
    resumed = np.array(run(photos, tmp_path / "work").features())
    photos.artifacts("features")[0].folder.rename(tmp_path / "first")
    np.testing.assert_array_equal(run(photos, tmp_path / "again").features(), resumed)


def test_packed_originals_give_the_same_features_as_files(photos, make_photos, import_into, tmp_path):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for path in sorted((tmp_path / "photos").rglob("*.jpg")):
            archive.write(path, path.relative_to(tmp_path / "photos"))
    packed, _ = import_into(SourceSpec("zip", str(tmp_path / "photos.zip")))
    loose, fast = run(photos, tmp_path / "work"), run(packed, tmp_path / "work")
    order = packed.pool().positions(photos.pool().ids)
    np.testing.assert_array_equal(fast.features()[order], loose.features())


def test_a_grey_pool_of_arrays_has_features_too(import_into, tmp_path):
    grey = np.stack([piece[:, :, 1] for piece in pieces(12)])
    np.savez(tmp_path / "grey.npz", images=grey)
    project, _ = import_into(SourceSpec("npz", str(tmp_path / "grey.npz")))
    assert project.pool().images().shape[-1] == 1
    made = run(project, tmp_path / "work")
    wanted = usual_loop([np.repeat(piece[:, :, None], 3, axis=2) for piece in grey], project.workspace.guard)
    assert cosines(made.features(), wanted).min() > 0.9999


def test_an_original_that_is_gone_or_changed_is_replaced_by_its_training_copy(photos, tmp_path):
    pool = photos.pool()
    pool.original_file(3).unlink()
    Image.new("RGB", (50, 50)).save(pool.original_file(5))
    made = run(photos, tmp_path / "work")
    assert made.artifact.facts["n_problems"] == 2 and np.isfinite(made.features()).all()
    missing, changed = made.artifact.facts["problems"]
    assert "is missing" in missing and "was changed since the import" in changed
    wanted = usual_loop([pool.images()[3]], photos.workspace.guard)
    assert cosines(made.features()[3:4], wanted).min() > 0.9999


def test_the_engine_that_is_not_chosen_gives_the_same_features(photos, tmp_path):
    pytest.importorskip("openvino")
    slow = np.array(run(photos, tmp_path / "work").features())
    photos.artifacts("features")[0].folder.rename(tmp_path / "slow")
    fast = run(photos, tmp_path / "work", QUICK.replace(engine="openvino"))
    assert fast.artifact.facts["engine"] == "openvino"
    assert cosines(fast.features(), slow).min() > 0.9999


def test_weights_of_another_net_or_a_broken_file_are_refused_in_words(photos, tmp_path, monkeypatch):
    net = open_encoder("efficientnet_lite0", guard=photos.workspace.guard).net
    save_file(net.state_dict(), tmp_path / "lite0.safetensors")
    wrong = QUICK.replace(encoder="efficientnet_lite2", weights=str(tmp_path / "lite0.safetensors"))
    with pytest.raises(InvalidDataError, match="does not fit this encoder"):
        run(photos, tmp_path / "work", wrong)
    (tmp_path / "broken.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(SourceError, match="cannot be read as safetensors"):
        run(photos, tmp_path / "work", QUICK.replace(weights=str(tmp_path / "broken.safetensors")))
    damaged = tmp_path / "efficientnet-lite0-57934424.pth"
    damaged.write_bytes(encoders.packaged_file("efficientnet_lite0").read_bytes()[:-1])
    monkeypatch.setattr(encoders, "packaged_file", lambda name: damaged)
    with pytest.raises(SourceError, match="are damaged.*force-reinstall") as caught:
        run(photos, tmp_path / "work")
    assert caught.value.code == "WEIGHTS_DAMAGED"
    monkeypatch.setattr(encoders, "packaged_file", lambda name: None)
    with pytest.raises(InvalidSettingError, match="not installed here. Install them"):
        run(photos, tmp_path / "work")
    assert not photos.artifacts("features")


def test_weights_from_a_file_are_known_by_their_content(photos, tmp_path):
    net = open_encoder("efficientnet_lite0", guard=photos.workspace.guard).net
    save_file(net.state_dict(), tmp_path / "lite0.safetensors")
    made = run(photos, tmp_path / "work")
    again = run(photos, tmp_path / "work", QUICK.replace(weights=str(tmp_path / "lite0.safetensors")))
    assert again.artifact.id == made.artifact.id


def test_an_encoder_that_cannot_see_images_of_this_size_says_so(photos, tmp_path, monkeypatch):
    class Picky(torch.nn.Module):
        def forward(self, x):
            assert x.shape[-1] == 224, "Input height (64) doesn't match model (224)"
            return x.mean((2, 3))

    monkeypatch.setattr(module, "open_encoder", lambda *_, **__: encoders.Encoder(Picky(), "picky"))
    with pytest.raises(InvalidDataError, match="cannot see images of 64 x 64 pixels.*Choose another size"):
        run(photos, tmp_path / "work")


def test_a_job_does_it_and_a_second_request_joins_the_one_that_waits(photos):
    job = submit_features(photos)
    assert submit_features(photos) == job and job.device == "features"
    assert submit_features(photos, "efficientnet_lite1") != job
    done = submit_features(photos, size=SIDE, immediate=True)
    assert done.status().state == jobs.DONE, done.status().message
    result = done.result()
    assert result["n_images"] == 12 and FeatureRun(photos.artifact(result["artifact"])).features().shape == (12, 1280)


def test_a_project_without_images_and_a_misspelt_encoder_are_refused(workspace, photos):
    with pytest.raises(MissingStepError, match="no images yet"):
        submit_features(workspace.create("Empty"))
    with pytest.raises(InvalidSettingError, match="efficientnet_lite0"):
        submit_features(photos, "tim:resnet18")


def test_the_command_embeds_and_tells(photos, capsys):
    code = main(["embed", photos.name, "--size", str(SIDE), "--json", "--quiet"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0 and told["n_images"] == 12 and told["n_dimensions"] == 1280
    assert main(["embed", photos.name, "--size", str(SIDE), "--quiet"]) == 0
    assert "1,280 features of 12 images." in capsys.readouterr().out
    assert main(["embed", photos.name, "--size", "7", "--quiet"]) == 1
    assert "size" in capsys.readouterr().err


def test_large_photographs_are_decoded_at_a_fraction_with_the_same_features(guard_of_tests):
    """A collage has the fine detail that an enlarged photograph would not have."""
    temple, flower = load_sample_images().images
    collage = np.vstack([np.hstack([temple, flower, temple]), np.hstack([flower, temple, flower])] * 2)
    data = images._encoded(Image.fromarray(collage), "JPEG", quality=92)
    size = (collage.shape[1], collage.shape[0])
    small = images.decode(data, name="photo", least_side=originals.SPARE * 160).image
    assert small.size == (size[0] // 2, size[1] // 2)
    assert images.decode(data, name="photo", least_side=1000).image.size == size
    whole = images.decode(data, name="photo").image
    answers = [
        usual_loop([images.fit(picture, 160, 3, "crop", reducing_gap=None)], guard_of_tests, 160)
        for picture in (small, whole)
    ]
    assert cosines(*answers)[0] > 0.999


@pytest.fixture
def guard_of_tests(workspace):
    return workspace.guard


def test_pool_settings_say_how_images_become_square(make_photos, import_into, tmp_path):
    spec = SourceSpec("folder", str(make_photos()))
    project, _ = import_into(spec, pool=PoolSettings(size=32, channels=3, fit="pad").to_json())
    assert run(project, tmp_path / "work").artifact.settings["fit"] == "pad"
