"""A coreset on its way out: a CSV of what is kept, its twin with all rows, and a manifest that proves both.

    <coreset>-kept-<hash>.csv     one row per kept image
    <coreset>-all-<hash>.csv      every image of the pool, with kept = 0 or 1
    <coreset>-<hash>.json         how it was chosen, what it was made from, the two files by SHA-256

Rows stand in the pool's order; ``rank`` is 1 for the image that was chosen first and empty for those dropped.
``label`` is what to train on and ``label_source`` says who gave it; ``pseudo_label`` and ``confidence`` are the model's
own answer. A name carries the content's hash, so two different exports never share one, and the same coreset exported
twice gives the same bytes under the same name. Texts that a spreadsheet would run as a formula get an apostrophe in
front; the ``exact`` variant leaves every text as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from semiprune_core import files
from semiprune_core.artifacts import versions
from semiprune_core.errors import MissingStepError
from semiprune_core.pool import Pool
from semiprune_core.records import IntArray
from semiprune_core.results import CoresetRun, PseudoRun, ScoreRun, made_from
from semiprune_core.spreadsheet import TRIGGERS, safe_cell
from semiprune_core.workspace import Project

SCORES = ("aum", "dual", "el2n", "forgetting", "mean_prob")
COLUMNS = (
    "image_id",
    "path",
    "kept",
    "label",
    "label_source",
    "pseudo_label",
    "confidence",
    *SCORES,
    "rank",
)
SCHEMA = 1
NAME_DIGITS = 12
ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Exported:
    """Three files in the project's exports folder."""

    kept: Path
    everything: Path
    manifest: Path

    def to_json(self) -> dict[str, str]:
        return {"kept": str(self.kept), "all": str(self.everything), "manifest": str(self.manifest)}


def export_csv(project: Project, run: CoresetRun, *, exact: bool = False) -> Exported:
    """Write the coreset's CSV, its all-rows twin and their manifest; the same coreset gives the same files."""
    pool = project.pool()
    if pool.hash != run.artifact.inputs["pool"]:
        raise MissingStepError(f"The pool has changed since {run.artifact.id} was selected. Select it anew.")
    table = coreset_table(project, run, pool, exact=exact)
    middle = "-exact" if exact else ""
    folder = project.exports_folder
    everything = _write_csv(folder, f"{run.artifact.id}{middle}-all", table)
    kept = _write_csv(folder, f"{run.artifact.id}{middle}-kept", table.filter(pc.equal(table["kept"], 1)))
    manifest = _manifest(run, kept, everything, exact=exact)
    path = folder / f"{run.artifact.id}{middle}-{files.sha256_json(manifest)[:NAME_DIGITS]}.json"
    files.write_json(path, manifest)
    return Exported(kept, everything, path)


def coreset_table(project: Project, run: CoresetRun, pool: Pool, *, exact: bool = False) -> pa.Table:
    """All rows of the export, in the pool's order, with the columns of COLUMNS."""
    pseudo = PseudoRun(made_from(project, run.artifact, "pseudo"))
    scores = ScoreRun(made_from(project, run.artifact, "scores")).table()
    coreset, labels = run.coreset(), pseudo.labels()
    names = [name if exact else safe_cell(name) for name in pseudo.class_names]
    rank = np.zeros(len(pool), dtype=np.int64)
    rank[coreset.indices] = np.arange(1, len(coreset.indices) + 1)
    columns: dict[str, Any] = {
        "image_id": hex_ids(pool.ids),
        "path": pool.column("path") if exact else safe_texts(pool.column("path")),
        "kept": pa.array(coreset.mask.astype(np.int8)),
        "label": _named(labels.labels, names),
        "label_source": _named(labels.human_mask.astype(np.int32), ["pseudo", "human"]),
        "pseudo_label": _named(np.asarray(pseudo.predicted()), names),
        "confidence": pa.array(np.asarray(pseudo.confidence(), dtype=np.float32)),
        **{name: pa.array(scores[name]) for name in SCORES},
        "rank": pa.array(rank, mask=rank == 0),
    }
    return pa.table({name: columns[name] for name in COLUMNS})


def hex_ids(ids: np.ndarray) -> pa.Array:
    """(N,) uint64 ids as the 16 hex digits they are shown with."""
    digits = np.ascontiguousarray(ids, dtype=">u8").tobytes().hex().encode("ascii")
    offsets = np.arange(0, len(digits) + 1, 16, dtype=np.int64)
    return pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(digits))


def safe_texts(column: pa.Array) -> pa.Array:
    """``safe_cell`` for a whole column."""
    risky = pc.is_in(pc.utf8_slice_codeunits(column, 0, 1), pa.array(TRIGGERS))
    return pc.if_else(risky, pc.binary_join_element_wise("'", column, ""), column)


def _named(codes: IntArray, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(pa.string())


def _write_csv(folder: Path, stem: str, table: pa.Table) -> Path:
    """Write a table under a name that ends in its content's hash."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{stem}.csv"
    try:
        with files.open_atomic(aside) as file:
            file.write((",".join(table.column_names) + "\n").encode("ascii"))
            options = pyarrow.csv.WriteOptions(include_header=False, batch_size=ROWS_AT_ONCE)
            pyarrow.csv.write_csv(table, file, options)
        path = folder / f"{stem}-{files.sha256_file(aside)[:NAME_DIGITS]}.csv"
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    files.sync_folder(folder)
    return path


def _manifest(run: CoresetRun, kept: Path, everything: Path, *, exact: bool) -> dict[str, Any]:
    """What there is to know about the two files; nothing that differs between two equal exports."""
    artifact = run.artifact
    said = {"kept": (kept, artifact.facts["n_kept"]), "all": (everything, artifact.facts["n_pool"])}
    settings = dict(artifact.settings)
    return {
        "schema": SCHEMA,
        "coreset": artifact.id,
        "coreset_hash": artifact.hash,
        "method": settings.pop("method"),
        "pruning_ratio": settings.pop("pruning_ratio"),
        "seed": artifact.manifest["seed"],
        "settings": settings,
        "inputs": dict(artifact.inputs),
        "counts": {name: artifact.facts[name] for name in ("n_pool", "n_kept", "n_human")},
        "columns": list(COLUMNS),
        "kept_means": "kept = 1 is part of the coreset, kept = 0 was pruned",
        "texts": "exact" if exact else "spreadsheet-safe: texts that begin like a formula have an apostrophe in front",
        "files": {
            name: {"name": path.name, "rows": rows, "sha256": files.sha256_file(path), "bytes": path.stat().st_size}
            for name, (path, rows) in said.items()
        },
        "versions": versions(),
    }
