"""A person trains on the demo, reloads in the middle, and reads the result."""

import re

import pytest
from playwright.sync_api import expect

from semiprune_core import training
from semiprune_core.jobs import list_jobs
from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import take_reference
from semiprune_core.project.workspace import Workspace

pytestmark = pytest.mark.browser

TRAIN = "/train?project=fashion-demo"
PATIENCE_MS = 120_000


@pytest.fixture
def project(page, server):
    """The demo project, opened by a person, its drawn subset labeled by the reference labels."""
    page.get_by_role("button", name="Open the demo").click()
    expect(page.locator(".cell img")).to_have_count(60, timeout=PATIENCE_MS)
    project = Workspace.open(server.home).project("fashion-demo")
    store, pool = open_store(project), project.pool()
    store.drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, fraction=0.05, annotator="ann"
    )
    take_reference(store, pool)
    yield project
    for job in list_jobs(project):
        job.kill()  # a failed test leaves no process behind


def set_number(page, name, value):
    field = page.get_by_role("spinbutton", name=name, exact=True)
    field.fill(str(value))
    field.press("Enter")


def test_a_run_is_started_watched_through_a_reload_and_read(page, server, project):
    page.goto(server.url + TRAIN)
    expect(page.get_by_text("Trained on")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text("Takes about")).to_be_visible(timeout=PATIENCE_MS)  # the pre-flight came by itself
    page.get_by_text("Supervised only", exact=True).click()
    page.get_by_text("Advanced settings").click()
    set_number(page, "Epochs", 12)
    set_number(page, "Steps per epoch", 20)
    set_number(page, "Batch size", 16)
    expect(page.get_by_text("Changed from Quick: Epochs, Steps per epoch, Batch size")).to_be_visible()
    page.get_by_role("button", name="Start training").click()
    expect(page.get_by_text(re.compile(r"Step [\d,]+ of 240"))).to_be_visible(timeout=PATIENCE_MS)
    page.reload()
    expect(page.get_by_text(re.compile(r"Step [\d,]+ of 240|See the pseudo-labels")).first).to_be_visible(
        timeout=PATIENCE_MS
    )
    expect(page.get_by_text("See the pseudo-labels")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text("that the model never saw it got")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).not_to_have_count(0)
    (run,) = training.list_runs(project)
    assert run.settings.training.algorithm == "supervised" and run.settings.training.epochs == 12
    other = page.context.new_page()
    other.goto(server.url + TRAIN)
    expect(other.get_by_text("See the pseudo-labels")).to_be_visible(timeout=PATIENCE_MS)


def test_a_running_run_outlives_the_app_and_can_be_stopped(page, server, project):
    page.goto(server.url + TRAIN)
    settings = training.TrainSettings(
        ssl={"epochs": 500, "steps_per_epoch": 20, "batch_size": 8, "unlabeled_ratio": 1}, preset="quick"
    )
    job = training.start_training(project, settings, device="cpu")
    expect(page.get_by_role("heading", name="Train")).to_be_visible()
    page.reload()
    expect(page.get_by_text(re.compile(r"Step [\d,]+ of 10,000"))).to_be_visible(timeout=PATIENCE_MS)
    server.kill()
    server.start()
    page.goto(server.url + TRAIN)
    expect(page.get_by_text(re.compile(r"Step [\d,]+ of 10,000"))).to_be_visible(timeout=PATIENCE_MS)
    assert job.status().attempt == 1
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible(timeout=PATIENCE_MS)
    assert job.status().state == "stopped"
