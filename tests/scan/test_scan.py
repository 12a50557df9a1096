"""A scan of photographs among which copies and broken pictures were planted."""

import csv
import io

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter

from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.progress import Collected, Stopped
from semiprune_core.project.pool import PoolSettings
from semiprune_core.scan import (
    ODDITIES,
    found_csv,
    grouped,
    groups_csv,
    groups_of_pool,
    latest_scan,
    needed_scan,
    scan,
    sees_more_again,
)
from semiprune_core.scan import run as run_module
from semiprune_core.scan.oddities import far_limit, nearness
from tests.features.conftest import pieces
from tests.support.features import add_features

N = 24


def copies(picture):
    width, height = picture.size
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=60)
    return {
        "resized": picture.resize((round(0.7 * width), round(0.7 * height)), Image.Resampling.BICUBIC),
        "recompressed": Image.open(packed),
        "mirrored": picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    }


@pytest.fixture
def folder(tmp_path):
    """24 pieces of photographs; of the first three copies lie beside them, of the fourth one in the tests."""
    images = [Image.fromarray(piece) for piece in pieces(N)]
    for name, picture in {f"p{number:02d}": image for number, image in enumerate(images)}.items():
        save(picture, tmp_path / "pics/train/a" / f"{name}.png")
    for number in range(3):
        for kind, copy in copies(images[number]).items():
            save(copy, tmp_path / "pics/train/a" / f"p{number:02d}-{kind}.png")
    save(copies(images[3])["recompressed"], tmp_path / "pics/test/a/p03-again.png")
    save(images[20].filter(ImageFilter.GaussianBlur(6)), tmp_path / "pics/train/a/x-blurred.png")
    save(ImageEnhance.Brightness(images[21]).enhance(0.15), tmp_path / "pics/train/a/x-dark.png")
    save(Image.new("RGB", (180, 140), (90, 120, 90)), tmp_path / "pics/train/a/x-blank.png")
    save(images[22].resize((600, 60)), tmp_path / "pics/train/a/x-odd_shape.png")
    save(images[23].resize((900, 700)), tmp_path / "pics/train/a/x-odd_size.png")
    return tmp_path / "pics"


def save(picture, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)


@pytest.fixture
def project(workspace, folder):
    project = workspace.create("Scanned")
    pool = PoolSettings(size=64, channels=3, fit="stretch").to_json()
    import_source(project, ImportSettings(source=SourceSpec("folder", str(folder)).to_json(), pool=pool), Collected())
    return workspace.project("scanned")


def names(project, positions):
    paths = project.everything().column("path").to_pylist()
    return {paths[position].rpartition("/")[2].removesuffix(".png") for position in positions}


def test_planted_copies_are_found_across_splits_and_nothing_else(project):
    everything = project.everything()
    run = scan(project, Collected())
    groups = grouped(everything, run.groups(everything))
    found = {frozenset(names(project, members)) for members in groups.members}
    planted = {
        frozenset({f"p{n:02d}", *(f"p{n:02d}-{kind}" for kind in ("resized", "recompressed", "mirrored"))})
        for n in range(3)
    }
    assert planted | {frozenset({"p03", "p03-again"})} <= found
    assert groups.n_across == 1
    assert {len(group) for group in found - planted} <= {2}, "a changed picture beside its original"


def test_odd_images_are_named_and_stay(project):
    run = scan(project, Collected())
    found = {kind: names(project, positions) for kind, positions in run.odd().items()}
    assert "off_topic" not in found, "there are no features"
    blurred = found.pop("blurred")  # among the pieces are a sky and a background out of focus
    assert "x-blurred" in blurred and not blurred & {"p20", "x-blank", "p00", "p02"}
    assert found == {kind: {f"x-{kind}"} for kind in ODDITIES if kind not in ("off_topic", "blurred")}
    assert len(project.pool()) == N + 9 + 5


def test_an_image_far_from_all_others_is_off_topic(project):
    n = len(project.pool())
    rng = np.random.default_rng(0)
    features = 1 + 0.3 * rng.normal(size=(n, 40))
    features[7] = 5 * rng.normal(size=40)
    add_features(project, features)
    run = scan(project, Collected())
    assert run.has_features
    (far,) = run.odd()["off_topic"].tolist()
    assert project.everything().rows[far] == project.pool().rows[7]


def test_a_handful_of_strays_is_off_topic_though_they_are_alike():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 40)) + 3
    features[100:108] += 8 * np.where(np.arange(40) % 2, 1, -1)
    near = nearness(features)
    found = set(np.flatnonzero(near < far_limit(near)).tolist())
    assert set(range(100, 108)) <= found and len(found) <= 10
    assert nearness(features[:1]).tolist() == [1] and len(nearness(features[:2])) == 2


def test_an_older_scan_can_be_made_anew(project, monkeypatch):
    monkeypatch.setattr(run_module, "RULE", 1)
    older = scan(project, Collected())
    assert not sees_more_again(project, older)
    monkeypatch.undo()
    assert sees_more_again(project, older) and not sees_more_again(project, scan(project, Collected()))


def test_the_same_images_are_scanned_once(project):
    with pytest.raises(MissingStepError, match="semiprune scan scanned"):
        needed_scan(project)
    first = scan(project, Collected())
    assert scan(project, Collected()).artifact.id == first.artifact.id == latest_scan(project).artifact.id
    add_features(project)
    assert scan(project, Collected()).artifact.id != first.artifact.id, "features see more"
    assert needed_scan(project).has_features


def test_groups_of_the_pool_are_positions_in_the_pool(project):
    run = scan(project, Collected())
    groups = groups_of_pool(project.pool(), run)
    paths = project.pool().column("path").to_pylist()
    assert len(groups) == len(paths) and (groups <= np.arange(len(paths))).all()
    for number in range(3):
        mine = {int(group) for group, path in zip(groups, paths, strict=True) if f"p{number:02d}" in path}
        assert len(mine) == 1


def test_what_was_found_can_be_taken_away_as_tables(project):
    run, everything = scan(project, Collected()), project.everything()
    rows = list(csv.DictReader(io.StringIO(groups_csv(everything, grouped(everything, run.groups(everything))))))
    assert {"group", "first", "image_id", "path", "split"} == set(rows[0])
    assert [row["first"] for row in rows].count("1") == len({row["group"] for row in rows})
    odd = list(csv.DictReader(io.StringIO(found_csv(everything, run, ["dark", "blank"]))))
    assert [row["found"] for row in odd] == ["dark", "blank"] and odd[0]["path"].endswith("x-dark.png")


def test_a_threshold_below_what_was_kept_is_refused(project):
    with pytest.raises(InvalidSettingError, match="threshold"):
        scan(project, Collected()).groups(project.everything(), 0.5)


def test_a_stopped_scan_leaves_nothing(project):
    with pytest.raises(Stopped):
        scan(project, Collected(stop_after=0, reports=[{"done": 0}]))
    assert latest_scan(project) is None
