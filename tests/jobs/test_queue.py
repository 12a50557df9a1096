"""Whose turn it is: one running job per device, in order of creation."""

from __future__ import annotations

import asyncio
import logging

import pytest

from semiprune_core.errors import JobError
from semiprune_core.jobs import DONE, QUEUED, RUNNING, submit, supervise, supervise_forever, supervisor, wait
from tests.jobs.helpers import spans
from tests.support.waiting import PATIENCE, wait_until


def test_jobs_of_one_device_run_one_after_the_other_in_order_of_creation(project):
    made = [submit(project, "count", {"n": 5, "seconds": 0.005}) for _ in range(4)]
    for job in reversed(made):  # whoever is waited for first
        assert wait(job, 30).state == DONE, job.log_tail()
    runs = spans(project.folder)
    ordered = [span for job in made for span in runs[job.id]]
    assert len(ordered) == 4
    assert all(earlier[1] <= later[0] for earlier, later in zip(ordered, ordered[1:]))


def test_devices_do_not_wait_for_each_other(project):
    long = submit(project, "count", {"n": 10_000, "seconds": 0.01})
    behind = submit(project, "count", {"n": 1})
    beside = submit(project, "nothing", {})
    assert beside.device == "io"
    assert wait(beside, 30).state == DONE
    assert (long.status().state, behind.status().state) == (RUNNING, QUEUED)
    long.stop()
    assert wait(behind, 30).state == DONE


def test_a_job_on_two_devices_waits_for_both_and_is_not_overtaken(project):
    first = submit(project, "count", {"n": 10_000, "seconds": 0.01}, device="cuda:0")
    both = submit(project, "count", {"n": 1}, device="cuda:1,cuda:0")
    last = submit(project, "count", {"n": 1}, device="cuda:1")
    wait_until(lambda: supervise(project.workspace) or first.status().done)
    assert (both.status().state, last.status().state) == (QUEUED, QUEUED)
    first.stop()
    assert wait(last, 30).state == DONE
    runs = spans(project.folder)
    assert runs[first.id][0][1] <= runs[both.id][0][0]
    assert runs[both.id][0][1] <= runs[last.id][0][0]


def test_the_device_is_taken_across_projects(workspace, project):
    long = submit(project, "count", {"n": 10_000, "seconds": 0.01})
    other = submit(workspace.create("Other"), "count", {"n": 1})
    wait_until(lambda: supervise(workspace) or long.status().done)
    supervise(workspace)
    assert other.status().state == QUEUED
    with pytest.raises(JobError, match="cpu is busy") as caught:
        submit(project, "count", {"n": 1}, immediate=True)
    assert caught.value.code == "DEVICE_BUSY"


def test_looking_after_jobs_goes_on_after_an_error(project, monkeypatch, caplog):
    job = submit(project, "nothing", {})
    real, calls = supervisor.supervise, []

    def flaky(workspace):
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("no luck")
        real(workspace)

    monkeypatch.setattr(supervisor, "supervise", flaky)

    async def watch():
        task = asyncio.create_task(supervise_forever(project.workspace, interval=0.01))
        async with asyncio.timeout(PATIENCE):
            while not job.status().is_over:
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with caplog.at_level(logging.ERROR):
        asyncio.run(watch())
    assert job.status().state == DONE
    assert len([r for r in caplog.records if "Supervising the jobs failed" in r.message]) == 1
