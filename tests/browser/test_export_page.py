"""Exports in a real browser: the file that arrives is the file that was named."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from semiprune_core.exporting import list_exports
from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import take_reference
from tests.browser.accessible import assert_accessible
from tests.browser.label_support import draw_all
from tests.exporting.conftest import add_scores, imported, select_in

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def project(studio, tmp_path_factory):
    """400 small pictures, labeled by their reference labels, with scores and a coreset."""
    folder = tmp_path_factory.mktemp("array")
    rng = np.random.default_rng(0)
    np.savez(
        folder / "p.npz",
        images=rng.integers(0, 256, (400, 28, 28, 3), dtype=np.uint8),
        labels=np.arange(400) % 3,
        class_names=np.array(["cat", "dog", "owl"]),
    )
    made = imported(folder, "npz", folder / "p.npz", home=studio.home)
    draw_all(open_store(made), made.pool())
    take_reference(open_store(made), made.pool())
    add_scores(made)
    select_in(made, 0.5)
    return studio.workspace.project(made.name)


def open_page(page, server, project):
    page.goto(f"{server.url}/export?project={project.name}")
    page.get_by_role("button", name="Export 1 coreset").wait_for()


def test_a_coreset_is_exported_downloaded_and_verified(page, server, project):
    open_page(page, server, project)
    page.get_by_role("button", name="Export 1 coreset").click()
    link = page.get_by_role("link", name="kept .csv").first
    link.wait_for()
    with page.expect_download() as waiting:
        link.click()
    [export] = list_exports(project)
    path = export.files["kept"]
    assert waiting.value.suggested_filename == path.name
    arrived = Path(waiting.value.path()).read_bytes()
    assert hashlib.sha256(arrived).hexdigest() == export.manifest["files"]["kept"]["sha256"]
    page.get_by_role("button", name="Verify").first.click()
    page.get_by_text("Verified:").wait_for()
    assert_accessible(page)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Evaluate").click()
    page.get_by_role("heading", name="Evaluate").wait_for()
    assert_accessible(page)


def test_two_exports_of_one_size_that_differ_in_the_middle_arrive_as_themselves(page, server, project):
    """Streamlit's own downloads know files over 1 MiB by samples of their content; ours are known by all of it."""
    made = []
    for digit in (b"0", b"1"):
        data = bytearray(b"x" * (3 << 20))
        data[1_000_000:1_014_000] = digit * 14_000
        path = project.exports_folder / f"coreset-9999-kept-{hashlib.sha256(data).hexdigest()[:12]}.csv"
        path.write_bytes(data)
        made.append(path)
    assert made[0].name != made[1].name and made[0].stat().st_size == made[1].stat().st_size
    open_page(page, server, project)
    for path in (*made, *made):
        with page.expect_download() as waiting:
            page.evaluate(
                "url => { const a = document.createElement('a'); a.href = url; a.download = ''; a.click(); }",
                f"/studio/projects/{project.name}/exports/{path.name}",
            )
        assert waiting.value.suggested_filename == path.name
        assert Path(waiting.value.path()).read_bytes() == path.read_bytes()
