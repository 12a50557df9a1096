"""What the net sees, before anything is imported: the copies are those of the import, and nothing is left behind."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from semiprune_core.errors import SemiPruneError, SourceError
from semiprune_core.importing import images, limited, preview
from semiprune_core.importing.preview import advice, preview_pool, preview_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project.pool import PoolSettings


@pytest.fixture
def folder(tmp_path):
    """Ten wide pictures, one file that is none."""
    place = tmp_path / "wide"
    place.mkdir()
    rng = np.random.default_rng(0)
    for number in range(10):
        Image.fromarray(rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(place / f"{number}.png")
    (place / "zz.png").write_text("<html>")
    return place


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)))


def test_the_copies_are_those_of_the_import(folder, workspace, import_into, monkeypatch):
    spec = SourceSpec("folder", str(folder))
    project, _ = import_into(spec, pool=PoolSettings(size=28, channels=1, fit="pad").to_json())
    for found in (preview_source(workspace, spec), preview_pool(project)):
        shown = [pixels(png) for png in found.pictures(PoolSettings(size=28, channels=1, fit="pad"))]
        cached = project.pool().images()[..., 0]
        assert all(any((copy == other).all() for other in cached) for copy in shown)
        colour = pixels(found.pictures(PoolSettings(size=64, channels=3, fit="crop"))[0])
        first = images.decode((folder / "0.png").read_bytes(), name="0.png").image
        assert (colour == images.fit(first, 64, 3, "crop")).all()
        assert 7 <= len(shown) <= preview.SHOWN


def test_auto_is_told_beforehand(folder, workspace, import_into):
    spec = SourceSpec("folder", str(folder))
    suggested = preview_source(workspace, spec).suggested("crop")
    project, _ = import_into(spec)
    assert suggested == workspace.project(project.name).pool_settings


@pytest.mark.parametrize("given", [{"size": 28}, {"channels": 1}, {"size": 28, "channels": 1}])
def test_what_is_not_chosen_stays_on_auto(given, folder, workspace, import_into):
    project, _ = import_into(SourceSpec("folder", str(folder)), pool=given, fit="pad")
    settings = workspace.project(project.name).pool_settings
    assert settings == PoolSettings(size=40, channels=3, fit="pad").replace(**given)


def test_a_source_without_pictures_is_refused_in_words(tmp_path, workspace):
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "a.png").write_text("no picture")
    with pytest.raises(SourceError, match="None of the first images can be shown"):
        preview_source(workspace, SourceSpec("folder", str(tmp_path / "none")))


def test_what_may_be_fetched_is_not_looked_at(workspace):
    with pytest.raises(SourceError, match="once it is imported"):
        preview_source(workspace, SourceSpec("torchvision", "CIFAR10", {"root": "/", "download": True}))


@pytest.mark.parametrize(
    "width, height, fit, words",
    [
        (300, 200, "crop", "wide: cropping leaves out 33%"),
        (200, 300, "crop", "tall: cropping leaves out 33%"),
        (300, 200, "pad", "bars take 33%"),
        (300, 200, "stretch", "Pad keeps"),
        (210, 200, "crop", "hardly matters"),
    ],
)
def test_the_advice_follows_from_the_shapes(width, height, fit, words):
    assert words in advice(np.array([[width, height]] * 3), PoolSettings(fit=fit))


def test_the_process_may_use_little_time_and_disk(monkeypatch):
    limits = {}
    monkeypatch.setattr(limited.resource, "setrlimit", lambda what, most: limits.setdefault(what, most[0]))
    spec = json.dumps(SourceSpec("folder", "/nowhere").to_json())
    with pytest.raises(SemiPruneError):
        next(preview.look_at_source("/nowhere", spec, "/nowhere"))
    assert limits == {
        limited.resource.RLIMIT_CPU: preview.CPU_SECONDS,
        limited.resource.RLIMIT_FSIZE: 1 << 30,
    }
