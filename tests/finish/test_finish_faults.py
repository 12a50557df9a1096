"""kill -9 in the middle of a finish: it goes on after a Resume, to the same bits."""

import os
import random
import signal

import pytest

from semiprune_core import jobs
from semiprune_core.copies import copy_project
from semiprune_core.finish import submit_finish
from semiprune_core.jobs import DONE, LOST
from tests.finish.test_finish import SHORT
from tests.support.effort import FULL
from tests.support.training_projects import label_drawn
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.fault


def made_by(project, job):
    """What a run left, by content."""
    result = job.result()
    return {
        stage: [project.artifact(name).hash for name in names]
        for stage, names in result["artifacts"].items()
        if stage in ("learn", "score", "select")
    }


def test_killed_at_any_moment_it_ends_with_the_same_bits(with_features):
    labeled, space = label_drawn(with_features).name, with_features.workspace
    whole = copy_project(space, labeled, "Whole")
    job = submit_finish(whole, SHORT)
    assert jobs.wait(job, PATIENCE).state == DONE, job.log_tail()
    expected = made_by(whole, job)
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    for number in range(12 if FULL else 1):
        project = copy_project(space, labeled, f"Killed {number}")
        job = submit_finish(project, SHORT)
        moment = dice.randrange(0, 5000)  # of 6 stages with 1,000 parts each
        wait_until(lambda job=job, moment=moment: past(job, moment), f"the moment {moment}, seed {seed}")
        if not job.status().is_over:
            os.kill(job.status().pid, signal.SIGKILL)
        status = wait_until(lambda job=job: over(job), "the loss to be seen")
        if status.state == LOST:
            job.resume()
            assert jobs.wait(job, PATIENCE).state == DONE, (seed, job.log_tail())
        assert made_by(project, job) == expected, f"seed {seed}, killed at {moment}"


def past(job, moment):
    jobs.supervise(job.workspace)
    status = job.status()
    return status.pid and (status.done >= moment or status.is_over)


def over(job):
    jobs.supervise(job.workspace)
    return job.status() if job.status().is_over else None
