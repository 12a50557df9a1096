"""Every way to fail has its name, and the traceback stays in the log."""

from __future__ import annotations

import errno

import pytest

from semiprune_core.errors import DiskFullError
from semiprune_core.jobs import FAILED, kinds, submit, wait
from semiprune_core.jobs.context import name_error


@pytest.mark.parametrize(
    "how, code, message",
    [
        ("data", "NO_LABELS", "Class 7 has no label. Label one image of it."),
        ("defect", "UNEXPECTED", "An unexpected IndexError ended the job; see its log."),
        ("exit", "UNEXPECTED", "An unexpected SystemExit ended the job; see its log."),
        ("memory", "OUT_OF_MEMORY", "smaller batch"),
        ("full", "DISK_FULL", "model.safetensors could not be written"),
    ],
)
def test_a_failure_is_named(project, how, code, message):
    job = submit(project, "fail", {"how": how})
    status = wait(job, 30)
    assert (status.state, status.error_code) == (FAILED, code)
    assert message in status.message
    assert "Traceback" not in status.message
    assert "Traceback" in job.log_tail(100)
    assert job.progress()[-1]["done"] == 3


def test_torchs_own_out_of_memory_is_recognised(project):
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 52)
    assert name_error(caught.value, project.folder).code == "OUT_OF_MEMORY"
    assert name_error(torch.OutOfMemoryError("CUDA"), project.folder).code == "OUT_OF_MEMORY"


@pytest.mark.parametrize(
    "number, code", [(errno.EROFS, "NOT_WRITABLE"), (errno.EDQUOT, "DISK_FULL"), (errno.EIO, "UNEXPECTED")]
)
def test_errors_of_the_disk_are_named_even_without_a_path(tmp_path, number, code):
    assert name_error(OSError(number, "oh"), tmp_path).code == code


def test_a_named_error_keeps_its_sentence(tmp_path):
    assert str(name_error(DiskFullError("Free some space."), tmp_path)) == "Free some space."


def test_a_kind_whose_module_is_missing_or_does_not_register_it_fails_visibly(project, monkeypatch):
    monkeypatch.setitem(kinds.homes(), "ghost", kinds.Home("semiprune_core.jobs.states", "Ghost"))
    monkeypatch.setitem(kinds.homes(), "void", kinds.Home("semiprune_core.no_such_module", "Void"))
    ghost = submit(project, "ghost", {}, immediate=True)
    void = submit(project, "void", {}, immediate=True)
    assert "does not register the job kind 'ghost'" in ghost.status().message
    assert (void.status().state, void.status().error_code) == (FAILED, "UNEXPECTED")
    assert "no_such_module" in void.log_tail()


def test_a_worker_that_cannot_start_is_not_started_for_ever(project, monkeypatch):
    monkeypatch.setattr("semiprune_core.jobs.launch.WORKER_MODULE", "tests.jobs.no_such_worker")
    job = submit(project, "count", {"n": 1})
    status = wait(job, 30)
    assert (status.state, status.attempt) == ("lost", 1)
    assert "before its first step" in status.message
    assert "no_such_worker" in job.log_tail()
    assert wait(job, 0).state == "lost"


def test_a_process_that_cannot_be_made_is_a_failure(project, monkeypatch):
    monkeypatch.setattr("sys.executable", "/no/such/python")
    job = submit(project, "count", {"n": 1})
    status = wait(job, 30)
    assert (status.state, status.error_code) == (FAILED, "NOT_STARTED")
