"""The artifact ``scores``: one Parquet table, image_id and a column per score, the mean over its trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semiprune_core import files
from semiprune_core.errors import MissingStepError
from semiprune_core.project.artifacts import Artifact, Draft
from semiprune_core.project.workspace import Project
from semiprune_core.scores import ScoreSettings, ScoreTable
from semiprune_core.selection import Basis
from semiprune_core.selection.defaults import FROZEN


@dataclass(frozen=True, eq=False)
class ScoreRun:
    """The scores of every image of the pool."""

    artifact: Artifact

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.artifact.facts["scores"])

    @property
    def n_epochs(self) -> int:
        """How many epochs its trajectories have."""
        return int(self.artifact.facts["n_epochs"])

    @property
    def start(self) -> str:
        """Where their dynamics run began."""
        return str(self.artifact.facts.get("start", "scratch"))

    @property
    def trajectory_ids(self) -> tuple[str, ...]:
        return tuple(self.artifact.facts["trajectories"])

    def basis(self) -> Basis:
        """What starting values depend on."""
        path = self.artifact.path("scores.parquet")
        return learned_basis(path, self.n_epochs, is_frozen=self.start == FROZEN)

    def table(self) -> ScoreTable:
        read = pq.read_table(self.artifact.path("scores.parquet"), columns=list(self.names), memory_map=True)
        columns = {name: read[name].to_numpy() for name in self.names}
        return ScoreTable(columns, ScoreSettings.from_json(self.artifact.settings), read.num_rows)


def learned_basis(scores: Path, n_epochs: int | None, *, is_frozen: bool) -> Basis:
    """What starting values depend on with the scores of this file, which came from a run on features or a net's."""
    columns = ["aum", *(["mean_prob", "dual"] if is_frozen else [])]
    read = pq.read_table(scores, columns=columns, memory_map=True)
    basis = Basis.learned(read["aum"].to_numpy(), n_epochs)
    return basis.on_features(*(read[name].to_numpy() for name in columns[1:])) if is_frozen else basis


def write_scores(draft: Draft, ids: np.ndarray, table: ScoreTable) -> None:
    """Fill the draft of a ``scores`` artifact; ``ids`` (N,) are the pool's image ids."""
    columns = {"image_id": pa.array(ids), **{name: pa.array(values) for name, values in table.columns.items()}}
    with files.open_atomic(draft.path("scores.parquet")) as file:
        pq.write_table(pa.table(columns), file, use_dictionary=False, compression="none", row_group_size=1 << 17)
    draft.facts.update(n_images=table.n_images, scores=list(table.columns))


def latest_scores(project: Project) -> ScoreRun:
    artifact = project.latest("scores")
    if artifact is None:
        raise MissingStepError(f"Project '{project.name}' has no scores yet. Start the dynamics run first.")
    return ScoreRun(artifact)
