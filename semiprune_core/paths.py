"""One guard for every path that comes from outside: folders, archives, manifests, uploads, export names.

A path is used only if its real location (links followed) lies under an allowed root. The roots are a setting,
``SEMIPRUNE_ROOTS`` (separated like ``PATH``); the default is the user's home and the workspace.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from semiprune_core.errors import UnsafePathError

URL = re.compile(
    r"^\s*(?:[a-z][a-z0-9+.-]*:[\\/]{2}"  # any scheme://
    r"|(?:https?|ftps?|file|data|blob|javascript|s3|gs|smb|nfs):"
    r"|[\\/]{2}"  # \\\\host\share, //host/share
    r"|\d{1,3}(?:\.\d{1,3}){3}(?:[:\\/]|$))",  # 169.254.169.254/...
    re.IGNORECASE,
)
PLAIN = re.compile(r"(?!\.\.?(?:/|\Z))[^/\\:\0]+(?:/(?!\.\.?(?:/|\Z))[^/\\:\0]+)*")
"""Relative paths that have one spelling already, unless letters beyond ASCII come into it."""
ROOTS_VARIABLE = "SEMIPRUNE_ROOTS"


@dataclass(frozen=True)
class PathGuard:
    """Answers one question: may this path be read?"""

    roots: tuple[Path, ...]

    def resolve(self, path: str | Path, *, base: Path | None = None) -> Path:
        """The real path, if it lies under an allowed root; relative ones start at ``base``."""
        text = os.fspath(path)
        self.check_text(text)
        joined = os.path.expanduser(text) if base is None else os.path.join(base, text)
        real = Path(os.path.realpath(joined))
        if not any(is_inside(real, root) for root in self.roots):
            allowed = ", ".join(str(root) for root in self.roots)
            raise UnsafePathError(
                f"{shown(text)} lies outside the allowed folders ({allowed}). "
                f"Move it there, or add its folder to {ROOTS_VARIABLE}."
            )
        return real

    @staticmethod
    def check_text(text: str) -> None:
        """Refuse what cannot be a local path by its letters alone: addresses of other machines, NUL characters."""
        if URL.match(text):
            raise UnsafePathError(
                f"{shown(text)} is an address, not a local path. Nothing is imported over the network: "
                "copy the files to this machine and give their folder.",
                code="URL_NOT_SUPPORTED",
            )
        if "\0" in text:
            raise UnsafePathError(f"{shown(text)} contains a NUL character and cannot be a path.")


def is_inside(path: Path, root: Path) -> bool:
    """Whether ``path`` is ``root`` or below it (both already real)."""
    return os.path.commonpath([path, root]) == str(root)


def guard_from_environment(workspace: Path) -> PathGuard:
    """The guard of this installation: ``SEMIPRUNE_ROOTS``, or the home folder and the workspace."""
    setting = os.environ.get(ROOTS_VARIABLE)
    named: Iterable[str | Path] = setting.split(os.pathsep) if setting else [Path.home()]
    roots = [Path(os.path.realpath(Path(root).expanduser())) for root in named if os.fspath(root)]
    return PathGuard(tuple(dict.fromkeys([*roots, Path(os.path.realpath(workspace))])))


def normal_relative(text: str) -> str:
    """A relative path inside a source in its one spelling: NFC, forward slashes; refused if it climbs or is absolute.

    >>> normal_relative("cats\\\\a.png")
    'cats/a.png'
    """
    if text.isascii() and PLAIN.fullmatch(text):
        return text
    path = unicodedata.normalize("NFC", text).replace("\\", "/")
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or re.match(r"^[A-Za-z]:", path) or "\0" in path:
        raise UnsafePathError(f"{shown(text)} is not a path inside its source (it leads outside or is absolute).")
    return "/".join(part for part in parts if part != ".")


def shown(text: str, limit: int = 120) -> str:
    """A path or name made safe for a message: control and direction characters escaped, long ones cut in the middle."""
    safe = "".join(
        char if char.isprintable() and unicodedata.category(char) != "Cf" else repr(char)[1:-1] for char in text
    )
    return safe if len(safe) <= limit else f"{safe[: limit // 2]}…{safe[-limit // 2 :]}"
