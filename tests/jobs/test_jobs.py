"""Jobs as a user of them sees them."""

from __future__ import annotations

from semiprune_core.jobs import DONE, submit, wait


def test_a_job_counts_in_a_process_of_its_own(project):
    job = submit(project, "count", {"n": 20})
    assert job.status().state == "queued"
    status = wait(job, 30)
    assert (status.state, status.done, status.total) == (DONE, 20, 20), job.log_tail()
    assert job.result() == {"counted": 20, "from": 0, "attempt": 1}
    assert job.progress()[-1]["square"] == 400


def test_an_immediate_job_leaves_the_same_files(project):
    job = submit(project, "count", {"n": 20}, immediate=True)
    assert job.status().state == DONE
    assert job.result()["counted"] == 20
    assert job.progress()[-1]["square"] == 400
