"""Jobs of several processes, through torchrun."""

from __future__ import annotations

import sys

import pytest

from semiprune_core.jobs import DONE, FAILED, RUNNING, launch, submit, supervise, wait
from semiprune_core.jobs.processes import family
from tests.support.effort import FULL
from tests.support.waiting import wait_until

in_full = pytest.mark.skipif(not FULL, reason="SEMIPRUNE_FULL=1 runs it")


def test_one_process_is_started_plainly_and_several_through_torchrun(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "WORKER_MODULE", "semiprune_core.jobs.worker")
    assert launch.command(tmp_path) == [sys.executable, "-m", "semiprune_core.jobs.worker", str(tmp_path)]
    words = launch.command(tmp_path, nproc=4)
    assert words[1:4] == ["-m", "torch.distributed.run", "--standalone"]
    assert words[words.index("--nproc-per-node") + 1] == "4"
    assert words[-3:] == ["--module", "semiprune_core.jobs.worker", str(tmp_path)]


def test_a_worker_imports_our_package_and_nothing_from_where_it_stands(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    environment = launch.environment("word", tmp_path, (5, 7))
    assert environment["PYTHONPATH"].split(":") == [str(launch.SOURCE_ROOT), "/elsewhere"]
    assert environment["PYTHONSAFEPATH"] == "1"
    assert environment["SEMIPRUNE_LOCKS"] == "5,7"


def test_two_processes_add_up_their_ranks(project):
    job = submit(project, "ranks", {}, nproc=2)
    assert wait(job, 120).state == DONE, job.log_tail(100)
    assert job.result() == {"sum": 3.0, "world_size": 2}
    assert [line["total"] for line in job.progress()] == [1]


@in_full
def test_a_failing_rank_names_the_cause_of_the_whole_job(project):
    job = submit(project, "ranks", {"fails": 1}, nproc=2)
    status = wait(job, 120)
    assert (status.state, status.error_code) == (FAILED, "BAD_PART"), job.log_tail(100)


@in_full
@pytest.mark.fault
def test_ranks_whose_torchrun_was_killed_are_ended_before_the_job_is_called_lost(project):
    job = submit(project, "ranks", {"fails": 9}, nproc=2)
    wait_until(lambda: supervise(project.workspace) or job.status().done == 1, seconds=120)
    word = job.status().launch
    agent = [process for process in family(word, job.folder) if "torch.distributed.run" in process.cmdline()]
    assert len(agent) == 1
    assert job.status().state == RUNNING
    agent[0].kill()
    assert wait(job, 30).state == "lost"
    assert family(word, job.folder) == []
