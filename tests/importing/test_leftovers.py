"""What a killed import left goes; what a running one needs stays."""

import os
import time

import pytest

from semiprune_core.importing import leftovers
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.jobs import locks


@pytest.fixture
def project(workspace):
    """A project in which an import was killed: its scratch, no longer locked, and its unfinished pool."""
    project = workspace.create("Test")
    scratch(project, "killed")
    (project.artifacts_folder / ".pool.0a1b2c3d.part").mkdir()
    (project.artifacts_folder / ".pool.0a1b2c3d.part" / "cache.npy").write_bytes(b"x" * 1000)
    return project


def scratch(project, name):
    folder = project.folder / f".import-{name}"
    folder.mkdir()
    (folder / ".lease").touch()
    return folder


def hidden(project):
    found = [*project.folder.glob(".import-*"), *project.artifacts_folder.glob(".*")]
    return sorted(path.name for path in found)


def test_the_next_import_sweeps_what_a_killed_one_left(project, class_folder, import_into):
    import_into(SourceSpec("folder", str(class_folder)), project)
    assert hidden(project) == [] and len(project.pool()) == 20


def test_a_start_of_the_app_sweeps_every_project_damaged_ones_too(project):
    (project.folder / "project.json").write_text("{")
    leftovers.sweep_all(project.workspace)
    assert hidden(project) == []


def test_what_a_running_import_holds_stays(project):
    with locks.held(scratch(project, "running") / ".lease"):
        leftovers.sweep(project)
        assert hidden(project) == [".import-running", ".pool.0a1b2c3d.part"]
    leftovers.sweep(project)
    assert hidden(project) == []


def test_a_folder_without_a_lease_goes_when_it_is_old(project):
    for name in ("new", "old"):
        (project.folder / f".import-{name}").mkdir()
    os.utime(project.folder / ".import-old", (time.time() - 7200,) * 2)
    leftovers.sweep(project)
    assert hidden(project) == [".import-new", ".pool.0a1b2c3d.part"]


def test_an_import_holds_its_scratch_while_it_runs(workspace):
    project = workspace.create("Test")
    with leftovers.scratch_folder(project) as folder:
        leftovers.sweep(project)
        assert folder.is_dir()
    assert hidden(project) == []
