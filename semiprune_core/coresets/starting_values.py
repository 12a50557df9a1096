"""Where to start in a project: with what a search found there, else with the default for such a pool."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from semiprune_core.methods import METHODS
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.results.evidence import EvidenceRun
from semiprune_core.results.score_source import ScoreSource, score_source_for
from semiprune_core.results.search import KIND, BestValue, SearchRun, searched_knob
from semiprune_core.scores import ScoreSettings, score_settings_of
from semiprune_core.selection import Basis, Defaults, default_knobs

NEAR = 0.05
"""A value found at one ratio is used at ratios up to this far away."""


def searches_of(
    project: Project, source: ScoreSource, method: str, listed: Sequence[Artifact] | None = None
) -> list[SearchRun]:
    """The searches of ``method`` whose results hold for what it chooses by, newest first.

    They hold for scores of the same trajectories and the same settings of the score; T is what a search finds itself.
    Those of a baseline hold for the very evidence they were made on. ``listed`` are the project's searches, where they
    were listed already.
    """
    listed = project.artifacts(KIND) if listed is None else listed
    mine = [artifact for artifact in reversed(listed) if artifact.settings["method"] == method]
    if isinstance(source, EvidenceRun):
        return [SearchRun(artifact) for artifact in mine if artifact.inputs["scores"] == source.artifact.hash]
    covered = _relevant(method, source.artifact.settings)
    found = []
    for artifact in mine:
        made_of = {role: value for role, value in artifact.inputs.items() if role != "scores"}
        same = made_of == dict(source.artifact.inputs)
        if same and _relevant(method, artifact.facts["score_settings"]) == covered:
            found.append(SearchRun(artifact))
    return found


def _relevant(method: str, score_settings: Mapping[str, Any]) -> dict[str, Any]:
    score = METHODS[method].score
    names = {*score_settings_of(score)} if score else set()
    settings = ScoreSettings.from_json(score_settings)
    return {name: settings[name] for name in sorted(names - {"dual_epochs"})}


def searched(project: Project, method: str, ratio: float, source: ScoreSource | None = None) -> BestValue | None:
    """What the newest search found for ``method`` at this ratio, or near it; None where none did.

    ``source`` is what it is to choose by, where that is not what the project has now.
    """
    found = search_for(project, method, ratio, source)
    return None if found is None else found[1]


def search_for(
    project: Project, method: str, ratio: float, source: ScoreSource | None = None
) -> tuple[SearchRun, BestValue] | None:
    """The same with the search that found it."""
    if searched_knob(method) is None:
        return None
    for run in searches_of(project, source or score_source_for(project, method), method):
        near = [value for value in run.best if abs(value.pruning_ratio - ratio) <= NEAR + 1e-9]
        if near:
            return run, min(near, key=lambda value: abs(value.pruning_ratio - ratio))
    return None


def searched_knobs(
    project: Project, method: str, ratio: float, source: ScoreSource | None = None
) -> dict[str, Any] | None:
    """The knobs that a search found for ``method`` at or near ``ratio``, as fields of a ``CoresetRequest``."""
    best = searched(project, method, ratio, source)
    return None if best is None else knobs_at(best, ratio)


def knobs_at(best: BestValue, ratio: float) -> dict[str, Any]:
    """What a search found, used at ``ratio``: no cutoff is larger than it. Nothing, where it may be chance or harm."""
    if not best.is_used:
        return {}
    knobs = best.knobs
    return {**knobs, "cutoff": min(knobs["cutoff"], ratio)} if "cutoff" in knobs else knobs


def starting_knobs(method: str, ratio: float, basis: Basis, best: BestValue | None) -> Defaults:
    """Where to start with ``method`` at this ratio, and why: what a search found (:func:`searched`), else the default
    for such a pool."""
    usual = default_knobs(method, ratio, basis)
    if best is None:
        why = f"{usual.why} Not searched at this ratio." if searched_knob(method) else usual.why
        return dataclasses.replace(usual, why=why)
    seeds = f"{best.n_seeds} seeds" if best.n_seeds > 1 else "one seed"
    at = "" if best.pruning_ratio == ratio else f" at ratio {best.pruning_ratio:g}"
    knobs = knobs_at(best, ratio)
    epochs = {"dual_epochs": knobs.pop("n_epochs")} if "n_epochs" in knobs else {}
    why = f"Searched{at}, {seeds}: {best.sentence}"
    if not best.is_used:
        return dataclasses.replace(usual, why=why)
    return Defaults(knobs, epochs, why, usual.class_share)
