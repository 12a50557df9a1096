"""Jobs of commands that run in the test's own process."""

import pytest

from tests.support.job_runs import run_queued


@pytest.fixture
def jobs_run_here(monkeypatch):
    monkeypatch.setattr("semiprune_core.jobs.supervisor.supervise", run_queued)
