"""The archive's files as they belong into a project, whose pool may have another hash than where the demo was made.

Other versions of Pillow and pyarrow write the same pictures in other bytes, and every artifact names its inputs by
hash. Where the images are the same, the names of the inputs are written anew; no array and no number changes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from semiprune_core import files
from semiprune_core.errors import InvalidDataError
from semiprune_core.project.artifacts import MANIFEST, content_hash
from semiprune_core.project.pool import Pool


@dataclass(frozen=True, eq=False)
class Content:
    """``hashes`` of the artifacts by id; ``anew`` the files that are other ones than in the archive."""

    packed: zipfile.ZipFile
    hashes: Mapping[str, str]
    anew: Mapping[str, bytes]

    def read(self, name: str) -> bytes:
        return self.anew.get(name) or self.packed.read(name)


def content_for(packed: zipfile.ZipFile, manifest: Mapping[str, Any], pool: Pool) -> Content:
    """What to put into a project with this ``pool``; refused where it holds other images."""
    if pool.hash == manifest["pool"]:
        return Content(packed, manifest["artifacts"], {})
    for name in manifest["files"]:
        if name.endswith("/scores.parquet"):
            ids = pq.read_table(io.BytesIO(packed.read(name)), columns=["image_id"])["image_id"].to_numpy()
            if not np.array_equal(ids, pool.ids):
                raise InvalidDataError(
                    "The bundled pool holds other images here than where the finished demo was made. Install "
                    "SemiPrune Studio again, or run `make demo-artifacts` in the repository.",
                    code="OTHER_POOL",
                )
    return _with_other_inputs(packed, manifest, {manifest["pool"]: pool.hash})


def _with_other_inputs(packed: zipfile.ZipFile, manifest: Mapping[str, Any], now: dict[str, str]) -> Content:
    """``now`` says which hash became which; each artifact follows once all that it was made from have."""
    anew: dict[str, bytes] = {}
    waiting: dict[str, str] = dict(manifest["artifacts"])
    while waiting:
        artifact_id = next(one for one in waiting if _is_ready(_read(packed, f"artifacts/{one}/{MANIFEST}"), waiting))
        name, before = f"artifacts/{artifact_id}/{MANIFEST}", waiting.pop(artifact_id)
        values = _renamed(packed.read(name), now)
        values["hash"] = now[before] = content_hash(values)
        anew[name] = files.pretty_json(_sealed_again(values))
    for name in manifest["files"]:
        if name.startswith("runs/") and name.endswith("/job.json"):
            anew[name] = files.pretty_json(_sealed_again(_renamed(packed.read(name), now)))
    return Content(packed, {one: now[before] for one, before in manifest["artifacts"].items()}, anew)


def _read(packed: zipfile.ZipFile, name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(packed.read(name))
    return values


def _is_ready(values: Mapping[str, Any], waiting: Mapping[str, str]) -> bool:
    return not {*values["inputs"].values()} & {*waiting.values()}


def _renamed(data: bytes, now: Mapping[str, str]) -> dict[str, Any]:
    text = data.decode()
    for before, after in now.items():
        text = text.replace(before, after)
    values: dict[str, Any] = json.loads(text)
    return values


def _sealed_again(values: dict[str, Any]) -> dict[str, Any]:
    return files.sealed(values) if files.SEAL in values else values
