"""The tab *Scan* of the Pool page: started, watched, looked through, taken away."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.parts.scan_panel import GROUPS_PER_PAGE
from semiprune_core import jobs
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.progress import Collected
from semiprune_core.project.pool import PoolSettings
from semiprune_core.scan import THRESHOLD, scan
from tests.features.conftest import pieces
from tests.support.features import add_features
from tests.support.job_runs import run_queued
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")
N = GROUPS_PER_PAGE + 4
"""Images with a smaller copy each: groups for more than one page."""


@pytest.fixture
def project(tmp_path, import_into):
    """Pieces of photographs with a smaller copy of each, every other one with a grey corner, and one blank image."""
    folder = tmp_path / "pics"
    folder.mkdir()
    for number, piece in enumerate(pieces(N)):
        picture = Image.fromarray(piece)
        picture.save(folder / f"p{number:02d}.png")
        small = picture.resize((126, 98), Image.Resampling.BICUBIC)
        if number % 2:
            small.paste((128, 128, 128), (0, 0, 25, 25))  # still alike, but no longer the same
        small.save(folder / f"p{number:02d}-small.png")
    Image.new("RGB", (180, 140), (90, 120, 90)).save(folder / "blank.png")
    pool = PoolSettings(size=64, channels=3, fit="stretch").to_json()
    return import_into(SourceSpec("folder", str(folder)), pool=pool)[0]


def opened(project):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    app.run().switch_page("pool.py").run()
    assert not app.exception
    return app


def said(app):
    return " ".join(one.value for one in (*app.caption, *app.markdown, *app.info)).replace("\\", "")


def found(app):
    """What can be chosen, such as "Blank 1", and what is chosen."""
    chooser = app.segmented_control(key="scan_kind")
    return chooser.options, chooser.value


def test_a_scan_is_started_watched_and_shown(project):
    app = opened(project)
    assert "Nothing is dropped" in said(app)
    app.button(key="scan_start").click().run()
    assert not app.exception
    (job,) = jobs.list_jobs(project, "scan")
    assert app.button(key=f"stop_{job.id}") and not [one for one in app.button if one.key == "scan_start"]
    run_queued(project.workspace)
    app.run()
    assert not app.exception
    options, value = found(app)
    assert value == "near_duplicates" and "Blank 1" in options


def test_the_threshold_decides_what_counts_as_alike(project):
    run = scan(project, Collected())
    app = opened(project)
    everything = project.everything()
    captions = []
    for threshold in (THRESHOLD, 0.99):
        app.slider(key="scan_threshold").set_value(threshold).run()
        assert not app.exception
        n_groups = len(np.unique(run.groups(everything, threshold)))
        captions.append(f"one of each would leave out {len(everything) - n_groups:,}")
        assert captions[-1] in said(app)
        assert f"Near-duplicates {len(everything) - n_groups:,}" in found(app)[0]
    assert captions[0] != captions[1]


def test_odd_images_are_shown_with_what_the_kind_means(project):
    scan(project, Collected())
    app = opened(project)
    app.segmented_control(key="scan_kind").set_value("blank").run()
    assert not app.exception and "They stay in the pool." in said(app)
    assert app.get("download_button")
    app.segmented_control(key="scan_kind").set_value("dark").run()
    assert not app.exception and "No such images." in said(app)
    assert "scan_threshold" not in [one.key for one in app.slider]


def test_without_features_it_says_what_is_missing_and_scans_again_when_they_are_there(project):
    scan(project, Collected())
    app = opened(project)
    assert not app.error and "Without features" in said(app)
    assert not [one for one in app.button if one.key == "scan_start"]
    add_features(project)
    app.run()
    app.button(key="scan_start").click().run()
    run_queued(project.workspace)
    app.run()
    assert not app.exception and not app.error and "Without features" not in said(app)
