"""Projects for the dynamics run, whose jobs end with the test."""

import pytest

from semiprune_core import jobs
from semiprune_core.jobs import launch
from tests.support.scored_projects import add_pseudo, make_pool


@pytest.fixture
def pseudo_labeled(workspace, tmp_path):
    """Makes a project of 48 images with pseudo-labels; ``n_test`` images to test on."""
    made = []

    def make(**shape):
        made.append(make_pool(workspace, tmp_path, n=48, **shape))
        add_pseudo(made[-1])
        return made[-1]

    yield make
    for project in made:
        for job in jobs.list_jobs(project):
            job.kill()
    launch.reap()
