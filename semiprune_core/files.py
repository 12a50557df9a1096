"""Files that appear whole: written aside, flushed to the disk, then moved into place.

A reader, a crash or a second process finds the old file or the new one, never a part of one.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from semiprune_core.errors import DiskFullError, WorkspaceError

CHUNK = 1 << 20
SEAL = "seal"


def sync_folder(folder: Path) -> None:
    """Make a rename inside ``folder`` survive a power cut (a no-op where folders cannot be opened)."""
    with contextlib.suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def named_disk_errors(path: Path) -> Iterator[None]:
    """Turn "no space", "read-only", "permission" and "name too long" into a sentence about ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            free = shutil.disk_usage(_existing_parent(path)).free
            raise DiskFullError(
                f"The disk is full: {path} could not be written ({free / 1e6:.0f} MB free). "
                "Free some space and try again; no partial file was left."
            ) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise WorkspaceError(
                f"{path} cannot be written: {error.strerror}. Make its folder writable and try again.",
                code="NOT_WRITABLE",
            ) from error
        if error.errno == errno.ENAMETOOLONG:
            named = f"{path.name[:40]}… cannot be written: its name is too long. Choose a shorter one."
            raise WorkspaceError(named, code="PATH_TOO_LONG") from error
        raise


def _existing_parent(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


@contextlib.contextmanager
def open_atomic(path: str | Path, mode: str = "wb", **kwargs: Any) -> Iterator[IO[Any]]:
    """Open a file for writing that takes its name only when the block ends well."""
    path = Path(path)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with named_disk_errors(path):
            with open(aside, mode, **kwargs) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
            sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):  # gone, or its name was too long to begin with
            aside.unlink()


def write_bytes(path: str | Path, data: bytes) -> None:
    with open_atomic(path) as file:
        file.write(data)


def write_text(path: str | Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def pretty_json(value: Any) -> bytes:
    """JSON for people to read, in UTF-8."""
    return (json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False) + "\n").encode("utf-8")


def write_json(path: str | Path, value: Any) -> None:
    write_bytes(path, pretty_json(value))


def read_json(path: str | Path) -> Any:
    path = Path(path)
    try:
        return json.loads(path.read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WorkspaceError(f"{path} is damaged ({error}). Restore it from a backup, or delete its folder.") from error


def sealed(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with a hash of themselves, by which a change on the disk is noticed."""
    own = {name: value for name, value in values.items() if name != SEAL}
    return {**own, SEAL: sha256_json(own)}


def seal_holds(values: Mapping[str, Any]) -> bool:
    """Whether values that were :func:`sealed` are what they were; those of earlier versions have no seal."""
    return SEAL not in values or values[SEAL] == sealed(values)[SEAL]


def read_object(path: str | Path, fields: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """A JSON object that has ``fields``; anything else is damaged."""
    values = read_json(path)
    if not isinstance(values, dict):
        raise WorkspaceError(f"{path} is damaged: it holds no JSON object. Restore it from a backup.")
    check_fields(path, values, fields)
    return values


def check_fields(path: str | Path, values: Mapping[str, Any], fields: Mapping[str, type | tuple[type, ...]]) -> None:
    """Refuse what was read from ``path`` unless every one of ``fields`` is there and of its type."""
    for name, kinds in fields.items():
        if not isinstance(values.get(name), kinds):
            what = "has a wrong value" if name in values else "is missing"
            raise WorkspaceError(f"{path} is damaged: '{name}' {what}. Restore it from a backup.")


def sha256_file(path: str | Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def canonical_json(value: Any) -> str:
    """One text per value, for hashing: sorted keys, no white space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_json(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def tree_bytes(folder: str | Path) -> int:
    """How much the files below ``folder`` hold."""
    return sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file() and not f.is_symlink())
