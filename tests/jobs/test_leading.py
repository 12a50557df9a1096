"""Jobs that a leading job takes through its own process."""

from __future__ import annotations

import os

import pytest

from semiprune_core.errors import JobError
from semiprune_core.jobs import DONE, STOPPED, follow_here, submit, supervise
from semiprune_core.progress import Collected, Stopped
from tests.support.waiting import wait_until


def test_a_queued_job_runs_in_this_process_and_tells_how_far_it_is(project):
    job, told = submit(project, "count", {"n": 20}), []
    status = follow_here(job, Collected(), tell=told.append)
    assert status.state == DONE and status.pid == os.getpid()
    assert [seen.done for seen in told][:20] == list(range(1, 21)) and job.result()["counted"] == 20


def test_a_wish_to_stop_goes_inward_and_the_job_can_be_resumed(project):
    job, outer = submit(project, "count", {"n": 20}), Collected(stop_after=7)
    with pytest.raises(Stopped):
        follow_here(job, outer, tell=lambda status: outer.report(status.done, 20))
    assert job.status().state == STOPPED
    job.resume()
    assert follow_here(job, Collected(), tell=lambda status: None).state == DONE
    assert job.result() == {"counted": 20, "from": 7, "attempt": 2}


def test_where_the_device_is_taken_another_process_runs_it_in_its_turn(project):
    long = submit(project, "count", {"n": 10_000, "seconds": 0.01})
    wait_until(lambda: supervise(project.workspace) or long.status().done)
    job = submit(project, "count", {"n": 3})

    def stop_the_other(status):
        if not long.status().is_over:
            long.stop()

    status = follow_here(job, Collected(), tell=stop_the_other)
    assert status.state == DONE and status.pid != os.getpid()


def test_an_error_inside_is_the_error_outside(project):
    with pytest.raises(JobError) as caught:
        follow_here(submit(project, "fail", {"how": "data"}), Collected(), tell=lambda status: None)
    assert caught.value.code == "NO_LABELS"
