"""From trajectories to a ``scores`` artifact: computed once for each setting, found again afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from semiprune_core.progress import Progress
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.results import ScoreRun, TrajectoryRun, check_same_pool, latest_scores, write_scores
from semiprune_core.results.pseudo import SCRATCH
from semiprune_core.scores import SCORES, ScoreSettings, ScoreTable, available_scores, compute_scores
from semiprune_core.selection.defaults import FROZEN, SCORED_EPOCHS


def default_score_settings(n_epochs: int, start: str = SCRATCH) -> ScoreSettings:
    """T = 30 for DUAL (the median of the paper's table) or the run's length; the window shrinks with shorter runs.

    A run on features is short: T is all of it.
    """
    scored = n_epochs if start == FROZEN else min(SCORED_EPOCHS, n_epochs)
    return ScoreSettings(dual_epochs=scored, window=min(ScoreSettings()["window"], scored))


def score_runs(
    project: Project,
    runs: Sequence[TrajectoryRun],
    settings: ScoreSettings | None = None,
    *,
    pool: Pool | None = None,
    progress: Progress | None = None,
) -> ScoreRun:
    """The scores of these trajectories (one per seed), each score averaged over them.

    Where the very same scores were computed before they are found again; a score that is new makes a new table. Of
    several seeds, how far they agree is kept as the fact ``stability``: Spearman's rank correlation, averaged over all
    pairs of seeds.
    """
    n_epochs = min(run.n_epochs for run in runs)
    settings = settings or default_score_settings(n_epochs, runs[0].start)
    inputs = {name: runs[0].artifact.inputs[name] for name in ("pool", "pseudo")}
    for number, run in enumerate(runs):
        inputs[f"trajectory_{number + 1}" if number else "trajectory"] = run.artifact.hash
    trajectories = [run.trajectory(n_epochs) for run in runs]
    names = available_in_all(trajectories)
    for known in reversed(project.artifacts("scores")):
        is_same = known.inputs == inputs and ScoreSettings.from_json(known.settings) == settings
        if is_same and {*ScoreRun(known).names} == {*names}:
            return ScoreRun(known)
    pool = pool or project.pool()
    check_same_pool(runs[0].artifact, pool)
    tables = [compute_scores(one, settings=settings, names=names, progress=progress) for one in trajectories]
    with project.draft("scores", settings=settings.to_json(), inputs=inputs) as draft:
        write_scores(draft, pool.ids, mean_table(tables))
        draft.facts.update(
            n_epochs=n_epochs,
            trajectories=[run.artifact.id for run in runs],
            seeds=[run.artifact.manifest["seed"] for run in runs],
            stability=stability(tables),
            start=runs[0].start,
        )
    return ScoreRun(open_artifact(draft.folder))


def mean_table(tables: Sequence[ScoreTable]) -> ScoreTable:
    """The mean of equal-sized tables, column by column."""
    if len(tables) == 1:
        return tables[0]
    columns = {name: np.mean([table[name] for table in tables], axis=0) for name in tables[0].columns}
    return ScoreTable(columns, tables[0].settings, tables[0].n_images)


def stability(tables: Sequence[ScoreTable]) -> dict[str, float] | None:
    """For each score the mean rank correlation over all pairs of seeds; None for one seed."""
    if len(tables) < 2:
        return None
    found = {}
    for name in tables[0].columns:
        ranks = [pd.Series(table[name]).rank().to_numpy() for table in tables]
        found[name] = round(float(np.mean([_correlation(a, b) for a, b in combinations(ranks, 2)])), 4)
    return found


def _correlation(a: FloatArray, b: FloatArray) -> float:
    """Pearson's correlation; 1 for two constant columns (they agree), 0 where only one is constant."""
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    if scale == 0:
        return float(not a.any() and not b.any())
    return float(a @ b / scale)


def with_settings(
    project: Project, scores: ScoreRun | None = None, *, progress: Progress | None = None, **changes: object
) -> ScoreRun:
    """The scores of the same trajectories (the latest ones' by default) with some settings changed."""
    scores = scores or latest_scores(project)
    settings = ScoreSettings.from_json(scores.artifact.settings)
    wanted = settings.replace(**changes)
    if wanted == settings:
        return scores
    return score_runs(project, trajectories_of(project, scores), wanted, progress=progress)


def available_in_all(trajectories: Sequence[Trajectory]) -> list[str]:
    """The registered scores that each of these trajectories has the columns for."""
    common = set.intersection(*({*available_scores(one)} for one in trajectories)) if trajectories else set()
    return [name for name in SCORES if name in common]


def new_scores(project: Project, scores: ScoreRun) -> list[str]:
    """The registered scores that this table lacks and its trajectories could give."""
    if {*SCORES} <= {*scores.names}:
        return []
    trajectories = [run.trajectory(scores.n_epochs) for run in trajectories_of(project, scores)]
    return [name for name in available_in_all(trajectories) if name not in scores.names]


def with_new_scores(project: Project, scores: ScoreRun, *, progress: Progress | None = None) -> ScoreRun:
    """These scores and those that were registered since, as a new table where there are any."""
    if not new_scores(project, scores):
        return scores
    settings = ScoreSettings.from_json(scores.artifact.settings)
    return score_runs(project, trajectories_of(project, scores), settings, progress=progress)


def rescored(
    table: ScoreTable, runs: Sequence[TrajectoryRun], settings: ScoreSettings, n_epochs: int | None = None
) -> ScoreTable:
    """``table`` with those scores anew that depend on what differs in ``settings``; nothing is saved."""
    names = [name for name in table.columns if name in SCORES and settings.knobs(name) != table.settings.knobs(name)]
    fresh = mean_table([compute_scores(run.trajectory(n_epochs), settings=settings, names=names) for run in runs])
    return ScoreTable({**table.columns, **fresh.columns}, settings, table.n_images)


def trajectories_of(project: Project, scores: ScoreRun) -> list[TrajectoryRun]:
    return [TrajectoryRun(project.artifact(name)) for name in scores.trajectory_ids]
