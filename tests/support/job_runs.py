"""Jobs that run in the test's own process."""

from semiprune_core import jobs
from semiprune_core.jobs.context import run_job


def run_again(job):
    """Resume a stopped job and run it here, until it ends or stops again."""
    job.resume()
    with job.lease() as mine:
        assert mine
        run_job(jobs.JobContext(job))
