"""Jobs that run in the test's own process."""

from semiprune_core import jobs
from semiprune_core.jobs.context import run_job


def done(job):
    """The result of a job that must have ended well."""
    assert job.status().state == jobs.DONE, job.status().message + job.log_tail()
    return job.result()


def run_again(job):
    """Resume a stopped job and run it here, until it ends or stops again."""
    job.resume()
    with job.lease() as mine:
        assert mine
        run_job(jobs.JobContext(job))


def run_queued(workspace):
    """Instead of ``supervise``: run what is queued here, as a process of its own takes seconds to load torch."""
    for job in jobs.list_jobs(workspace):
        if job.status().state == jobs.QUEUED:
            with job.lease() as mine:
                assert mine
                run_job(jobs.JobContext(job))
