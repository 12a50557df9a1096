"""Images on their way out: as a folder of copies or links, or as a ZIP streamed to the disk.

Names inside a tree are ours: a class becomes a folder by :func:`folder_names`, an image a file by :func:`image_name`,
so that no class and no path of the pool can lead out of the tree, hide in it or meet another one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import unicodedata
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from semiprune_core.errors import InvalidSettingError
from semiprune_core.project.pool import Pool, export_id, mime_of

WAYS = ("zip", "copy", "hardlink", "symlink", "reference")
"""How images are handed over; a reference names the originals where they are and moves nothing."""
SUMS = "SHA256SUMS"
EXTENSIONS = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "image/bmp": ".bmp",
}
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member of a ZIP, so that equal content gives equal bytes."""
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP)
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


class Tree(Protocol):
    def text(self, name: str, data: bytes) -> None:
        """Add a small file."""

    def image(self, folder: str, position: int) -> str:
        """Add the original of the image at ``position`` of the pool and return its name, ``folder`` included.

        Refused when the original is gone or was changed since the import.
        """

    def sums(self) -> bytes:
        """Every file so far with its SHA-256, as ``sha256sum --check`` reads it."""


class _Noted:
    """The files of a tree and their hashes."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        for name in ("path", "file", "file_sha256"):
            pool.column(name)  # once for all images, not once for each
        self._hashes: dict[str, str] = {}

    def _note(self, name: str, data: bytes) -> None:
        self._hashes[name] = hashlib.sha256(data).hexdigest()

    def sums(self) -> bytes:
        return "".join(f"{digest}  {name}\n" for name, digest in sorted(self._hashes.items())).encode()


class FolderTree(_Noted):
    """A tree as a folder: ``way`` is copy, hardlink or symlink; small files are always written."""

    def __init__(self, root: Path, pool: Pool, way: str) -> None:
        super().__init__(pool)
        self.root, self.way = root, way
        root.mkdir()

    def text(self, name: str, data: bytes) -> None:
        self._note(name, data)
        _write(self._path(name), data)

    def image(self, folder: str, position: int) -> str:
        data = self.pool.original(position)
        name = f"{folder}/{image_name(self.pool, position, data)}"
        self._note(name, data)
        path = self._path(name)
        if self.way == "copy":
            _write(path, data)
            return name
        source = self.pool.original_file(position)
        if source is None:
            raise InvalidSettingError(
                f"This pool keeps its originals packed, there are no files to {self.way}. Choose copy or zip."
            )
        try:
            (os.link if self.way == "hardlink" else os.symlink)(source.resolve(), path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise InvalidSettingError(
                f"{source} cannot be linked from {self.root.parent.parent} ({error.strerror}). Choose copy or zip."
            ) from error
        return name

    def _path(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class ZipTree(_Noted):
    """A tree as a ZIP. Images are stored as they are (they are compressed already), texts deflated."""

    def __init__(self, file: IO[bytes], pool: Pool) -> None:
        super().__init__(pool)
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def text(self, name: str, data: bytes) -> None:
        self._add(name, data, zipfile.ZIP_DEFLATED)

    def image(self, folder: str, position: int) -> str:
        data = self.pool.original(position)
        name = f"{folder}/{image_name(self.pool, position, data)}"
        self._add(name, data, zipfile.ZIP_STORED)
        return name

    def _add(self, name: str, data: bytes, compression: int) -> None:
        self._note(name, data)
        member = zipfile.ZipInfo(name, EPOCH)
        member.external_attr = 0o644 << 16
        self._zip.writestr(member, data, compression)

    def __enter__(self) -> ZipTree:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()


def folder_names(class_names: Iterable[str]) -> dict[str, str]:
    """Class -> the name of its folder: the class's own where that is a plain name, otherwise a safe and unique one.

    >>> folder_names(["cat", "../cat", "a/b", "CAT"])
    {'cat': 'cat', '../cat': '_cat', 'a/b': 'a_b', 'CAT': 'CAT-2'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in class_names:
        base = safe_name(name, "class")
        folder, number = base, 1
        while folder.casefold() in taken:
            number += 1
            folder = f"{base}-{number}"
        taken.add(folder.casefold())
        found[name] = folder
    return found


def image_name(pool: Pool, position: int, data: bytes) -> str:
    """A file name for an image: its own name, its id (so no two are equal), and the ending its content asks for."""
    path = PurePosixPath(pool.path(position))
    ending = EXTENSIONS.get(mime_of(data)) or path.suffix.lower()
    return f"{safe_name(path.stem, 'image')}-{export_id(pool.ids[position])}{ending}"


def safe_name(text: str, instead: str) -> str:
    """A name that is one plain part of a path on every system, and no formula.

    >>> safe_name("=cmd|x", "class"), safe_name("..", "class"), safe_name("con", "class")
    ('_cmd_x', 'class', 'con_')
    """
    plain = unicodedata.normalize("NFC", text)
    plain = "".join(
        char if char.isprintable() and unicodedata.category(char) != "Cf" and char not in '/\\:*?"<>|%' else "_"
        for char in plain
    )
    plain = re.sub(r"^[=+\-@.\s]+", "_", plain)
    plain = re.sub(r"_+", "_", plain).rstrip(". ")
    while len(plain.encode()) > 100:
        plain = plain[:-1]
    if not plain.strip("_"):
        return instead
    return f"{plain}_" if RESERVED.fullmatch(plain) else plain


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
