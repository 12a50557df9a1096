from __future__ import annotations

import pytest

from semiprune_core.jobs import launch, list_jobs
from semiprune_core.project.workspace import Project, Workspace
from tests.jobs import kinds  # noqa: F401 - registers the tests' kinds


@pytest.fixture(autouse=True)
def worker_start():
    """Jobs start as in the app."""


@pytest.fixture(autouse=True)
def worker_with_test_kinds(monkeypatch):
    monkeypatch.setattr(launch, "WORKER_MODULE", "tests.jobs.worker")


@pytest.fixture
def workspace(tmp_path):
    """A fresh workspace; whatever still runs in it at the end is ended."""
    workspace = Workspace.open(tmp_path / "home")
    yield workspace
    for job in list_jobs(workspace):
        job.kill()
    launch.reap()


@pytest.fixture
def project(workspace) -> Project:
    return workspace.create("Jobs")
