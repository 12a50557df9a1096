"""NPZ files with wrong types, shapes, labels and paths, or with something else inside."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core.importing.sources.base import SourceSpec
from tests.hostile_inputs.cases import Case, Ending, picture
from tests.hostile_inputs.zips import Packed, raw_zip

PIXELS = np.stack([picture(n, (8, 8)) for n in range(3)])


def _npz(**columns: Any) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        np.savez_compressed(folder / "a.npz", **columns)
        return SourceSpec("npz", str(folder / "a.npz"))

    return build


def _npz_bytes(data: bytes) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        (folder / "a.npz").write_bytes(data)
        return SourceSpec("npz", str(folder / "a.npz"))

    return build


def _npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode().ljust(118 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def _lying_npy(header: str) -> Callable[[Path], SourceSpec]:
    return _npz_bytes(raw_zip(Packed("images.npy", data=_npy(header, bytes(64)))))


HUGE_SHAPE = "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000, 1000), }"
CODE = "__import__('os').system('touch /tmp/owned')"
NO_LETTERS = np.full(3, 0x7FFFFFFF, np.uint32).view("U1")
GOOD_PATHS = ["good.png", "b.png", "c.png"]
ARRAYS: dict[str, tuple[str, Ending, Callable[[Path], SourceSpec]]] = {
    "objects": ("NPZ_CORRUPT", "stop", _npz(images=np.array([{}, 1], dtype=object))),
    "object_labels": ("NPZ_CORRUPT", "stop", _npz(images=PIXELS, labels=np.array(["a", None, 3], dtype=object))),
    "floats": ("NPZ_TYPE", "stop", _npz(images=PIXELS / 255)),
    "channels_first": ("NPZ_SHAPE", "stop", _npz(images=np.zeros((2, 3, 8, 8), np.uint8))),
    "five_dimensions": ("NPZ_SHAPE", "stop", _npz(images=np.zeros((2, 2, 8, 8, 3), np.uint8))),
    "one_dimension": ("NPZ_SHAPE", "stop", _npz(images=np.zeros(9, np.uint8))),
    "no_images": ("NPZ_NO_IMAGES", "stop", _npz(pictures=PIXELS)),
    "zero_images": ("SOURCE_EMPTY", "stop", _npz(images=PIXELS[:0])),
    "labels_too_few": ("NPZ_LENGTHS", "stop", _npz(images=PIXELS, labels=np.arange(2))),
    "labels_of_floats": ("NPZ_TYPE", "stop", _npz(images=PIXELS, labels=np.zeros(3))),
    "labels_without_name": ("NPZ_LABELS", "stop", _npz(images=PIXELS, labels=[0, 1, 7], class_names=["a", "b"])),
    "labels_negative": ("NPZ_LABELS", "stop", _npz(images=PIXELS, labels=[0, 1, -9], class_names=["a", "b"])),
    "labels_enormous": ("NPZ_LABELS", "stop", _npz(images=PIXELS, labels=[0, 1, 2**60])),
    "class_names_twice": ("NPZ_LABELS", "stop", _npz(images=PIXELS, labels=[0, 1, 1], class_names=["a", "a"])),
    "not_a_zip": ("ZIP_CORRUPT", "stop", _npz_bytes(b"\x93NUMPY\x01\x00")),
    "bomb": ("ZIP_TOO_LARGE", "stop", _npz(images=np.zeros((2000, 80, 80), np.uint8))),
    "shape_larger_than_file": ("NPZ_CORRUPT", "stop", _lying_npy(HUGE_SHAPE)),
    "code_in_header": ("NPZ_CORRUPT", "stop", _lying_npy(CODE)),
    "header_not_closed": ("NPZ_CORRUPT", "stop", _lying_npy("{'descr': '|u1', 'shape': (3, 8, 8")),
    "header_without_end": ("NPZ_CORRUPT", "stop", _lying_npy("-" * 3000 + "1")),
    "header_of_mixed_keys": ("NPZ_CORRUPT", "stop", _lying_npy("{(): '|u1', 'fortran_order': False, 'shape': (3,)}")),
    "header_cut_off": ("NPZ_CORRUPT", "stop", _npz_bytes(raw_zip(Packed("images.npy", data=b"\x93NUMPY\x01")))),
    "climbing_member": ("ZIP_UNSAFE_PATH", "stop", _npz_bytes(raw_zip(Packed("../images.npy", data=b"x")))),
    "images_twice": (
        "NPZ_CORRUPT",
        "stop",
        _npz_bytes(
            raw_zip(
                *[Packed("images.npy", data=_npy(HUGE_SHAPE.replace("1000000, 1000, 1000", "1, 8, 8"), bytes(64)))] * 2
            )
        ),
    ),
    "letters_beyond_unicode": ("NPZ_CORRUPT", "stop", _npz(images=PIXELS, labels=NO_LETTERS)),
    "half_letters_in_path": (
        "PATH_OUTSIDE_ROOT",
        "listed",
        _npz(images=PIXELS, paths=["good.png", "\ud800.png", "c.png"]),
    ),
    "climbing_path": ("PATH_OUTSIDE_ROOT", "listed", _npz(images=PIXELS, paths=["good.png", "../b.png", "/c.png"])),
    "path_twice": ("DUPLICATE_ROW", "listed", _npz(images=PIXELS, paths=["good.png", "b.png", "./b.png"])),
    "unknown_split": ("SPLIT_UNKNOWN", "listed", _npz(images=PIXELS, paths=GOOD_PATHS, split=["pool", "test", "x"])),
    "tiny_images": ("IMAGE_TOO_SMALL", "listed", _npz(images=np.zeros((3, 2, 2), np.uint8))),
}
CASES = [Case(f"npz_{name}", build, code, ending) for name, (code, ending, build) in ARRAYS.items()]
