"""What stands around every page: the way back, and jobs that run elsewhere."""

import contextlib

import pytest
from playwright.sync_api import expect

from semiprune_core import jobs
from semiprune_core.jobs import JobStatus, locks
from semiprune_core.jobs.job import create, now
from tests.browser.label_support import settled

pytestmark = pytest.mark.browser


@contextlib.contextmanager
def running(project):
    """A run that this process works on; the app never finds it waiting."""
    spec = {"kind": "ssl", "title": "Train", "settings": {}, "device": "cpu", "pins": {}, "nproc": 1}
    status = JobStatus(state=jobs.RUNNING, started=now(), done=17, total=100, seconds_left=360.0)
    job, lease = create(project, spec, status)
    try:
        yield job, status
    finally:
        locks.release(lease)


def test_back_leads_one_page_back_and_the_end_of_a_job_is_told_in_the_tab(page, studio):
    project = studio.project("frame")
    page.goto(f"{studio.url}/pool?project={project.name}")
    expect(page.get_by_role("heading", name="Pool")).to_be_visible()
    settled(page)
    page.wait_for_function("globalThis.semipruneFrame")  # the browser loads it after the script of the page has ended
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Map").click()
    expect(page.get_by_role("heading", name="Map")).to_be_visible()
    settled(page)
    page.go_back()
    expect(page.get_by_role("heading", name="Pool")).to_be_visible()
    assert "/pool" in page.url
    with running(project) as (job, status):
        page.reload()  # a page at rest draws nothing by itself
        expect(page.get_by_role("button", name="Training 17%, 6 min left")).to_be_visible()
        job.write_status(status.ended(jobs.DONE, ""))
    expect(page.get_by_role("button", name="Training is done")).to_be_visible()
    expect(page).to_have_title("Training is done · SemiPrune Studio")
    page.keyboard.press("Shift")
    expect(page).to_have_title("SemiPrune Studio")  # somebody is there again
