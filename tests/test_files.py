"""Files appear whole, and disk troubles are named."""

import errno
import os

import pytest

from semiprune_core import files
from semiprune_core.errors import DiskFullError, WorkspaceError


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    files.write_json(path, {"old": 1})
    with pytest.raises(ZeroDivisionError), files.open_atomic(path) as file:
        file.write(b"half of the new")
        raise ZeroDivisionError
    assert files.read_json(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    "number, kind, words",
    [
        (errno.ENOSPC, DiskFullError, "disk is full"),
        (errno.EDQUOT, DiskFullError, "disk is full"),
        (errno.EROFS, WorkspaceError, "cannot be written"),
        (errno.EACCES, WorkspaceError, "cannot be written"),
    ],
)
def test_disk_errors_become_sentences(tmp_path, number, kind, words):
    with pytest.raises(kind, match=words), files.open_atomic(tmp_path / "a"):
        raise OSError(number, os.strerror(number))
    assert os.listdir(tmp_path) == []


def test_other_errors_pass_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError), files.open_atomic(tmp_path / "missing" / "a"):
        pass


def test_damaged_json_is_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(WorkspaceError, match="damaged"):
        files.read_json(tmp_path / "a.json")


def test_canonical_json_does_not_depend_on_order():
    assert files.sha256_json({"a": 1, "b": 2}) == files.sha256_json({"b": 2, "a": 1})


def test_a_sealed_value_tells_when_it_was_changed():
    sealed = files.sealed({"a": 1, "b": [0.1, None]})
    assert files.seal_holds(sealed) and files.sealed(sealed) == sealed
    assert not files.seal_holds({**sealed, "a": 2})
    assert files.seal_holds({"a": 2})  # written before there were seals


def test_a_name_that_is_too_long_is_said_so(tmp_path):
    with pytest.raises(WorkspaceError, match="too long") as error:
        files.write_bytes(tmp_path / ("x" * 300), b"")
    assert error.value.code == "PATH_TOO_LONG" and not list(tmp_path.iterdir())
