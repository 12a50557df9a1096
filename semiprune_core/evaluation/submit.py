"""An evaluation before it runs: what it needs, which knobs it takes from searches, and its way into the queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from semiprune_core import jobs
from semiprune_core.coresets.starting_values import knobs_at, search_for
from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.evaluation.data import EvaluationData, evaluation_data
from semiprune_core.evaluation.settings import FINAL_PIN, KIND, EvaluationSettings, cell_name
from semiprune_core.labeling import open_store
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.learning import machine
from semiprune_core.methods import METHODS, needs_of
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray, coreset_size
from semiprune_core.results import PseudoRun, ScoreRun, TrajectoryRun, check_same_pool, latest_pseudo, latest_scores
from semiprune_core.results.features import latest_features
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.training import FROZEN, keep_snapshot, read_snapshot, snapshot_path
from semiprune_core.trials import FULL, PROBE, SCRATCH, usual_test
from semiprune_core.trials.alike import known_alike, pin_features


def submit_evaluation(
    project: Project, settings: EvaluationSettings, *, device: str = "auto", immediate: bool = False
) -> jobs.Job:
    """Queue an evaluation; what cannot be done is refused here in a sentence.

    The job pins the pool, the people's labels, and the scores and pseudo-labels where there are some.
    """
    pool = project.pool()
    snapshot = open_store(project).snapshot()
    final = open_store(project).final_test()
    near = known_alike(project)
    data = evaluation_data(project, settings.truth, pool=pool, snapshot=snapshot, final=final, alike=near)
    scores = _checked_scores(project, settings, pool)
    _check_room(project, settings, data)
    pins = {"pool": pool.hash, **pin_labels(project, snapshot, final)}
    pseudo = project.latest("pseudo")
    if pseudo is not None:
        pins["pseudo"] = pseudo.hash
    if settings.test == PROBE:
        latest_features(project)  # refused where there are none
    pins |= pin_features(project)
    if scores is not None:
        pins["scores"] = scores.artifact.hash
        settings = _with_searched(project, settings, scores)
    n_methods = len([method for method in settings.methods if method != FULL])
    return jobs.submit(
        project,
        KIND,
        settings.replace(truth=data.truth).to_json(),
        title=f"Evaluate {n_methods} method{'s' if n_methods != 1 else ''}",
        device=machine.devices_for(device),
        pins=pins,
        immediate=immediate,
    )


def matching_test(project: Project) -> str:
    """The test that suits the project's scores: a probe where they came from features, else a net from scratch."""
    trajectory = project.latest("trajectory")
    is_frozen = trajectory is not None and TrajectoryRun(trajectory).start == FROZEN
    return PROBE if is_frozen and usual_test(project) == PROBE else SCRATCH


def _checked_scores(project: Project, settings: EvaluationSettings, pool: Pool) -> ScoreRun | None:
    """The project's scores; missing ones are refused where a method looks at them."""
    mine = [method for method in settings.methods if method != FULL and METHODS[method].evidence == "scores"]
    if not mine:
        latest = project.latest("scores")
        return None if latest is None else ScoreRun(latest)
    scores = latest_scores(project)
    check_same_pool(scores.artifact, pool)
    for method in mine:
        missing = [need for need in needs_of(method) if need not in scores.names]
        if missing:
            raise MissingStepError(f"{METHODS.title(method)} needs the score {missing[0]}. Score the pool again first.")
    return scores


def check_left(n_images: int, ratios: Iterable[float], n_classes: int, remedy: str) -> None:
    """Refuse ratios that leave fewer of ``n_images`` than there are classes."""
    for ratio in ratios:
        n_left = coreset_size(n_images, ratio)
        if n_left < n_classes:
            raise InvalidSettingError(
                f"Pruning ratio {ratio:g} leaves {n_left} images for {n_classes} classes. {remedy}"
            )


def _check_room(project: Project, settings: EvaluationSettings, data: EvaluationData) -> None:
    n_left = len(data.chosen_from)
    check_left(n_left, settings.ratios, len(data.class_names), "Choose smaller ratios.")
    if settings.same_annotation_budget and settings.ratios:
        human = np.asarray(latest_pseudo(project).labels().human_mask)
        n_human, highest = int(human[data.chosen_from].sum()), max(settings.ratios)
        if n_human > coreset_size(n_left, highest):
            raise InvalidSettingError(
                f"{n_human:,} images were labeled by a person, but pruning ratio {highest:g} leaves "
                f"{coreset_size(n_left, highest):,}. With the same annotation budget, use smaller ratios."
            )


def _with_searched(project: Project, settings: EvaluationSettings, scores: ScoreRun) -> EvaluationSettings:
    """The settings with what searches found for these scores, where nothing was given.

    What was searched for a baseline is looked up in the job, once it is known which evidence it chooses by.
    """
    knobs: dict[str, dict[str, Any]] = {method: dict(values) for method, values in settings.knobs.items()}
    searches: dict[str, str] = {}
    for method in settings.methods:
        for ratio in settings.ratios if method != FULL and not has_own_evidence(method) else ():
            found = search_for(project, method, ratio, scores)
            if found is not None and f"{ratio:g}" not in knobs.get(method, {}):
                knobs.setdefault(method, {})[f"{ratio:g}"] = knobs_at(found[1], ratio)
                searches[cell_name(method, ratio)] = found[0].artifact.id
    return settings.replace(knobs=knobs, searches=searches)


def pin_labels(project: Project, snapshot: LabelsSnapshot, final: LabelsSnapshot) -> dict[str, str]:
    """Keep the labels to train with and those of the final test for a job, and name them by hash."""
    keep_snapshot(project, snapshot)
    if not len(final):
        return {"labels": snapshot.hash}
    keep_snapshot(project, final)
    return {"labels": snapshot.hash, FINAL_PIN: final.hash}


def pinned_final(project: Project, pins: Mapping[str, str]) -> LabelsSnapshot:
    """The final test that a job was queued with; one without labels where there was none."""
    if FINAL_PIN in pins:
        return read_snapshot(snapshot_path(project, pins[FINAL_PIN]), pins[FINAL_PIN])
    nothing: IntArray = np.empty(0, np.int64)
    return LabelsSnapshot(nothing.astype(np.uint64), nothing, nothing.astype(bool), ())


def pinned_snapshot(project: Project, pins: Mapping[str, str]) -> LabelsSnapshot:
    """The people's labels that a job was queued with."""
    return read_snapshot(snapshot_path(project, pins["labels"]), pins["labels"])


def pinned_pseudo(project: Project, pins: Mapping[str, str]) -> PseudoRun | None:
    """The pseudo-labels that a job was queued with; None where there were none."""
    wanted = pins.get("pseudo")
    if wanted is None:
        return None
    pinned = next((artifact for artifact in project.artifacts("pseudo") if artifact.hash == wanted), None)
    if pinned is None:
        raise MissingStepError("The pseudo-labels that this evaluation was queued with are gone. Start a new one.")
    return PseudoRun(pinned)
