"""A person trains on the demo's pictures, reloads in the middle, and reads the result."""

import contextlib
import re

import pytest
from playwright.sync_api import Error, expect

from semiprune_core import training
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.jobs import list_jobs
from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import take_reference
from semiprune_core.progress import Collected
from tests.browser.accessible import assert_accessible
from tests.browser.label_support import settled
from tests.support.demo_pool import write_tenth
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

LONG = 200_000  # steps: far more than a test will ever wait for
NOT_ENDED = re.compile(rf"Step [\d,]+ of {LONG:,}")


@pytest.fixture
def project(studio, request):
    """A tenth of the demo pool, half of it drawn and labeled by the reference labels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMIPRUNE_ROOTS", str(studio.pictures))
        project = studio.workspace.create(request.node.name[:40])
        source = SourceSpec("npz", str(write_tenth(studio.pictures)))
        import_source(project, ImportSettings(source=source.to_json(), n_workers=1), Collected())
    store, pool = open_store(project), project.pool()
    store.drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, fraction=0.5, annotator="ann"
    )
    take_reference(store, pool)
    yield project
    for job in list_jobs(project):
        job.kill()  # a failed test leaves no process behind


@pytest.fixture
def address(server, project):
    return f"{server.url}/train?project={project.name}"


def set_numbers(page, **values):
    """Type them until the form says that all differ from the preset: a click that still takes effect sets them back."""
    names = [name.replace("_", " ") for name in values]
    changed = page.get_by_text(f"Changed from Quick: {', '.join(names)}")
    with contextlib.suppress(Error):  # a field that was drawn anew under the hand
        for name, value in zip(names, values.values()):
            field = page.get_by_role("spinbutton", name=name, exact=True)
            field.fill(str(value))
            field.press("Enter")
            settled(page)
        changed.wait_for(timeout=10_000)
    return changed.is_visible()


def start(page, address, *, epochs, steps):
    """Fill in the form for a run of supervised learning alone, and start it."""
    page.goto(address)
    expect(page.get_by_text("Trained on")).to_be_visible()
    expect(page.get_by_text("Takes about")).to_be_visible()  # the pre-flight came by itself
    page.get_by_test_id("stMain").get_by_text("From scratch", exact=True).click()
    page.get_by_text("Supervised only", exact=True).click()
    expect(page.get_by_role("radio", name="Supervised only")).to_be_checked()
    settled(page)
    page.get_by_text("Advanced settings").click()
    wait_until(lambda: set_numbers(page, Epochs=epochs, Steps_per_epoch=steps, Batch_size=16), "the changed numbers")
    page.get_by_role("button", name="Start training").click()


def test_a_run_is_started_and_read_after_a_reload(page, address, project):
    start(page, address, epochs=2, steps=20)
    wait_until(lambda: list_jobs(project, "ssl"), "the run in the queue")
    settled(page)
    page.reload()
    expect(page.get_by_text("View pseudo-labels")).to_be_visible()
    expect(page.get_by_text(re.compile(r"It got \d+ of \d+ held-out labels right"))).to_be_visible()
    expect(page.locator(".js-plotly-plot")).not_to_have_count(0)
    assert_accessible(page)
    (run,) = training.list_runs(project)
    assert run.settings.training.algorithm == "supervised" and run.settings.training.epochs == 2
    other = page.context.new_page()
    other.goto(address)
    expect(other.get_by_text("View pseudo-labels")).to_be_visible()


def test_a_running_run_outlives_the_app_and_can_be_stopped(page, server, address, project):
    page.goto(address)
    settings = training.TrainSettings(
        start=training.SCRATCH,
        ssl={"epochs": LONG // 20, "steps_per_epoch": 20, "batch_size": 8, "unlabeled_ratio": 1},
        preset="quick",
    )
    job = training.start_training(project, settings, device="cpu")
    expect(page.get_by_role("heading", name="Train")).to_be_visible()
    page.reload()
    expect(page.get_by_text(NOT_ENDED)).to_be_visible()
    server.kill()
    server.start()
    page.goto(address)
    expect(page.get_by_text(NOT_ENDED)).to_be_visible()
    assert job.status().attempt == 1
    page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).click()  # not Streamlit's own
    expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    assert job.status().state == "stopped"
