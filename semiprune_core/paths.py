"""One guard for every path that comes from outside: folders, archives, manifests, uploads, export names.

A path is used only if its real location (links followed) lies under an allowed root and no part of it below the root
begins with a dot. The roots are a setting, ``SEMIPRUNE_ROOTS`` (separated like ``PATH``); without it they are the
folders that a person has allowed one by one. Of the workspace only what was uploaded may be read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

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
SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var")
FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
LONGEST_NAME, LONGEST_PATH = 255, 4095
MOUNTED = ("/run/media",)
"""Where disks of a person's own appear below a folder of the system's."""


HERE = Path(__file__).resolve().parent
WHEEL_FOLDER = "studio"
"""Where a wheel keeps, inside the package, what stands beside it in a checkout: app.py, pages, assets."""


def studio_folder() -> Path:
    """The folder of app.py, pages and assets: beside the package in a checkout, inside it where a wheel brought it."""
    beside = HERE.parent
    is_checkout = (beside / "app.py").is_file() and (beside / "assets").is_dir()
    return beside if is_checkout else HERE / WHEEL_FOLDER


@dataclass(frozen=True)
class PathGuard:
    """Answers one question: may this path be read?"""

    roots: tuple[Path, ...]
    closed: Path | None = None
    """Nothing in here may be read, but for roots that lie below it."""

    def resolve(self, path: str | Path, *, base: Path | None = None) -> Path:
        """The real path, if it may be read; relative ones start at ``base``."""
        text = os.fspath(path)
        real = real_path(text, base=base)
        around = [root for root in self.roots if is_inside(real, root)]
        if any(self._opens(root, real) for root in around):
            return real
        if self.closed is not None and is_inside(real, self.closed):
            raise UnsafePathError(
                f"{shown(text)} lies in the workspace, of which only uploads are read. Give the folder of the images.",
                code="PATH_IN_WORKSPACE",
            )
        if around:
            raise UnsafePathError(
                f"{shown(text)} is hidden: a part of it begins with a dot. Copy what you need to a folder that is not.",
                code="PATH_HIDDEN",
            )
        allowed = ", ".join(str(root) for root in self.roots if not self._is_closed(root)) or "none yet"
        raise UnsafePathError(
            f"{shown(text)} lies outside the allowed folders ({allowed}). "
            f"Move it there, or add its folder to {ROOTS_VARIABLE}."
        )

    def _is_closed(self, path: Path) -> bool:
        return self.closed is not None and is_inside(path, self.closed)

    def _opens(self, root: Path, real: Path) -> bool:
        if self._is_closed(real) and (not self._is_closed(root) or root == self.closed):
            return False
        return not has_hidden_part(real.relative_to(root))

    @staticmethod
    def check_text(text: str) -> None:
        """Refuse what cannot be a local path by its letters alone: addresses of other machines, NUL, too many."""
        if URL.match(text):
            raise UnsafePathError(
                f"{shown(text)} is an address, not a local path. Nothing is imported over the network: "
                "copy the files to this machine and give their folder.",
                code="URL_NOT_SUPPORTED",
            )
        if "\0" in text:
            raise UnsafePathError(f"{shown(text)} contains a NUL character and cannot be a path.")
        try:
            encoded = os.fsencode(text)
        except UnicodeEncodeError:
            raise UnsafePathError(f"{shown(text)} contains half a character and cannot be a path.") from None
        if len(encoded) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in encoded.split(b"/")):
            raise UnsafePathError(
                f"{shown(text)} is too long for a path: at most {LONGEST_NAME} bytes a name and {LONGEST_PATH} in all.",
                code="PATH_TOO_LONG",
            )


def is_inside(path: Path, root: Path) -> bool:
    """Whether ``path`` is ``root`` or below it (both already real)."""
    return os.path.commonpath([path, root]) == str(root)


def leads_inside(path: str | Path, root: Path) -> bool:
    """Whether what lies at ``path``, links followed, is under ``root`` (a real path)."""
    try:
        return is_inside(Path(os.path.realpath(path)), root)
    except OSError:  # a link that was put there or taken away at this moment
        return False


def real_path(text: str, *, base: Path | None = None) -> Path:
    """Where a path leads, links followed; addresses of other machines are refused."""
    PathGuard.check_text(text)
    try:
        return Path(os.path.realpath(os.path.expanduser(text) if base is None else os.path.join(base, text)))
    except OSError:
        raise UnsafePathError(
            f"{shown(text)} was moved while it was looked up. Try again.", code="FILE_MISSING"
        ) from None


def open_beneath(root: str, path: str) -> int:
    """A descriptor to read the file ``path``, which lies under ``root``; links are followed as long as they stay there.

    ``root`` is a real path, as the guard gives it.
    """
    real = os.path.realpath(path)
    if not is_inside(Path(real), Path(root)):
        raise UnsafePathError(f"{shown(path)} leads outside its folder {shown(root)}. Copy the file into it.")
    return open_real(real)


def open_real(path: str | Path) -> int:
    """A descriptor to read what lies at a real path, as the guard gives it: what was checked is what is opened.

    Every folder on the way is opened from the one before it and none may be a link: one that is put in the place of a
    folder, or of the file, after the check leads nowhere.
    """
    top, *folders, name = (*Path(path).parts, ".") if path == "/" else Path(path).parts
    folder = os.open(top, FOLDER_FLAGS)
    try:
        for part in folders:
            inner = os.open(part, FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def has_hidden_part(path: PurePath) -> bool:
    return any(part.startswith(".") for part in path.parts)


def roots_from_environment() -> tuple[Path, ...] | None:
    """The folders that ``SEMIPRUNE_ROOTS`` names; None where it is not set."""
    setting = os.environ.get(ROOTS_VARIABLE)
    if not setting:
        return None
    return tuple(Path(os.path.realpath(Path(root).expanduser())) for root in setting.split(os.pathsep) if root)


def check_can_be_allowed(folder: Path) -> None:
    """Refuse folders that nobody should open to the pages by a click: systems', hidden ones, a whole home."""
    home = Path(os.path.realpath(Path.home()))
    system = any(is_inside(folder, Path(name)) for name in SYSTEM) and not any(
        is_inside(folder, inner) and folder != inner for inner in (home, *map(Path, MOUNTED))
    )
    if not folder.exists():
        raise UnsafePathError(f"{shown(str(folder))} is not on this server. Check the spelling.", code="FILE_MISSING")
    if system or is_inside(home, folder) or has_hidden_part(folder):
        raise UnsafePathError(
            f"{shown(str(folder))} holds more than images and cannot be allowed here. Move the images to a folder of "
            f"their own, or start the app with {ROOTS_VARIABLE}."
        )


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
