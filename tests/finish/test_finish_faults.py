"""kill -9 in the middle of a finish: it goes on after a Resume, to the same bits."""

import random

import pytest

from semiprune_core import jobs
from semiprune_core.copies import copy_project
from semiprune_core.finish import submit_finish
from semiprune_core.jobs import DONE, LOST
from tests.finish.test_finish import SHORT
from tests.support.effort import FULL
from tests.support.training_projects import label_drawn
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.fault


def made_by(project, job):
    """What a run left, by content."""
    result = job.result()
    return {
        stage: [project.artifact(name).hash for name in names]
        for stage, names in result["artifacts"].items()
        if stage in ("learn", "score", "select")
    }


def test_killed_at_any_moment_it_ends_with_the_same_bits(with_features, template):
    labeled, space = label_drawn(with_features).name, with_features.workspace
    whole = copy_project(space, labeled, "Whole")
    job = submit_finish(whole, SHORT)
    assert jobs.wait(job, PATIENCE).state == DONE, job.log_tail()
    expected = made_by(whole, job)
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    for number in range(12 if FULL else 1):
        project = copy_project(space, labeled, f"Killed {number}")
        moment = dice.randrange(0, 5000)  # of 6 stages with 1,000 parts each
        template.kill_next_at(moment)
        job = submit_finish(project, SHORT)
        assert jobs.wait(job, PATIENCE).state == LOST, (seed, moment, job.log_tail())
        job.resume()
        assert jobs.wait(job, PATIENCE).state == DONE, (seed, moment, job.log_tail())
        assert made_by(project, job) == expected, f"seed {seed}, killed at {moment}"
