"""Files that only their owner can read: new ones by the process's mask, those of earlier versions once, at a start."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from semiprune_core.paths import shown
from semiprune_core.project.workspace import ALLOWED, Workspace

OTHERS = 0o077
OURS = (".archive", ".locks", ".uploads", "weights", "secret", ALLOWED)


def keep_to_owner() -> None:
    """From now on nobody else can read what this process and its children write."""
    os.umask(OTHERS)


def close_to_others(workspace: Workspace) -> str:
    """Close a workspace that other users can look into; says so in a sentence, or nothing where it was closed.

    What is closed already is not walked through again, and behind a closed root nothing is open. Files with a second
    name stay as they are, since they may be somebody's originals (an export by hard links): the folder around them is
    closed.
    """
    root = workspace.root
    if not _is_open(root):
        return ""
    entries = [root / name for name in (*workspace.names(), *OURS)]
    if _is_workspace_alone(workspace):
        entries.append(root)
    opened = [entry for entry in entries if _is_open(entry)]
    for entry in opened:
        for path in filter(Path.is_file, root.iterdir()) if entry == root else _below(entry):
            _close(path)
        _close(entry)  # last: a walk that was cut short begins anew at the next start
    still_open = next((entry for entry in opened if _is_open(entry)), None)
    if still_open is not None:
        return f"Other users of this machine can look into {shown(str(still_open))}: it belongs to somebody else."
    return f"Closed {shown(str(root))} to other users of this machine." if opened else ""


def _is_open(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(status.st_mode) and bool(status.st_mode & OTHERS)


def _is_workspace_alone(workspace: Workspace) -> bool:
    """Whether the folder serves for nothing else: it is no home, no /tmp, and holds no folders but ours."""
    root, ours = workspace.root, {*workspace.names(), *OURS}
    if root.stat().st_mode & stat.S_ISVTX or root == Path.home():
        return False
    return all(entry.name in ours or entry.name.startswith(".") for entry in root.iterdir() if entry.is_dir())


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def _close(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone meanwhile, or somebody else's
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1):
            path.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS)
