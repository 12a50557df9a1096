"""The review queues of the labeling deck: doubtful pseudo-labels with the model's answer as the suggestion.

``doubt`` takes every signal there is, ``doubt_<signal>`` one of them, ``coreset:<id>`` the images of one coreset,
``further`` the images that were drawn on purpose.
Decisions go to the round "review": they are human labels, and never part of an unbiased estimate.
"""

from __future__ import annotations

import functools

import numpy as np

from semiprune_core.errors import MissingStepError
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.events import REVIEW_ROUND
from semiprune_core.labeling.progress_report import further_ids
from semiprune_core.live import guesses
from semiprune_core.project.cache import LRUCache
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.records import UNLABELED, FloatArray, IntArray
from semiprune_core.results import PseudoRun, made_from, open_coreset
from semiprune_core.server.queues import QUEUES, Cards
from semiprune_core.trust import review
from semiprune_core.trust.quality_report import pool_of_run
from semiprune_core.trust.similarity import current_model

_SIGNALS: LRUCache[dict[str, FloatArray]] = LRUCache(4)


def project_of(pool: Pool) -> Project:
    """The project whose folder a pool's images lie in."""
    folder = pool.segments[0].artifact.folder.parents[1]
    return Workspace(folder.parent).project(folder.name)


def cached_signals(project: Project, run: PseudoRun, others: list[PseudoRun]) -> dict[str, FloatArray]:
    """The signals of doubt, computed once per state of runs and scores."""
    scores = project.latest("scores")
    key = (project.folder, run.artifact.hash, tuple(other.artifact.hash for other in others), scores and scores.hash)
    return _SIGNALS.get(key, lambda: review.signals(project, run, others))


def doubtful(store: LabelStore, pool: Pool, annotator: str, n: int, *, signal: str | None = None) -> Cards:
    """The ``n`` most doubtful images that no person has labeled or skipped in review, each with the model's answer."""
    project = project_of(pool)
    artifact = project.latest("pseudo")
    if artifact is None:
        raise MissingStepError("There are no pseudo-labels to review yet. Train on the Train page first.")
    return _cards(store, pool, project, PseudoRun(artifact), n, signal=signal)


def in_coreset(store: LabelStore, pool: Pool, annotator: str, n: int, coreset_id: str) -> Cards:
    """The ``n`` most doubtful images of a coreset that no person has labeled, with the answers of its model."""
    project = project_of(pool)
    run = open_coreset(project, coreset_id)
    pseudo = PseudoRun(made_from(project, run.artifact, "pseudo"))
    return _cards(store, pool, project, pseudo, n, within=run.coreset().indices)


def _cards(
    store: LabelStore,
    pool: Pool,
    project: Project,
    run: PseudoRun,
    n: int,
    *,
    signal: str | None = None,
    within: IntArray | None = None,
) -> Cards:
    others = [PseudoRun(artifact) for artifact in project.artifacts("pseudo") if artifact.id != run.artifact.id]
    scored_pool = pool_of_run(pool.split("pool"), run)
    signals = cached_signals(project, run, others)
    if signal is not None and signal not in signals:
        raise MissingStepError(f"This project has no '{review.SIGNALS[signal]}' yet. Choose another order.")
    left_out = np.isin(np.arange(len(scored_pool)), review.settled(scored_pool, run, store))
    seen = np.array(
        [held.image_id for held in store.held() if held.round == REVIEW_ROUND and held.action], dtype=np.uint64
    )
    left_out |= np.isin(scored_pool.ids, seen)
    if within is not None:
        left_out |= ~np.isin(np.arange(len(scored_pool)), within)
    use = None if signal is None else (signal,)
    order = review.doubt(signals, use=use, leave_out=np.flatnonzero(left_out)).order[:n]
    merged = store.classes.book().merged
    shown = {entry.class_id for entry in store.classes.all()}
    number = [UNLABELED if class_id is None else merged.get(class_id, class_id) for class_id in run.class_ids]
    predicted, confidence = np.asarray(run.predicted())[order], np.asarray(run.confidence())[order]
    ids = scored_pool.ids[order]
    suggestions = {
        int(image_id): (number[label], float(sure))
        for image_id, label, sure in zip(ids, predicted, confidence, strict=True)
        if number[label] in shown
    }
    return Cards(ids, REVIEW_ROUND, suggestions=suggestions)


@QUEUES.register("further", title="Further images, with suggestions")
def further(store: LabelStore, pool: Pool, annotator: str, n: int) -> Cards:
    """Images that were drawn on purpose after the random part, with the best guess there is.

    It is the head's on the labels so far, else the newest run's. Decisions are reviews, as the answer was in view.
    """
    ids = further_ids(store)[:n]
    project, learned = project_of(pool), pool.split("pool")
    guess = guesses(project)
    if guess is not None and len(guess.class_ids) == len(learned):
        class_ids, confidence = guess.class_ids, guess.confidence
    elif (run := current_model(project, learned)) is not None:
        numbers = np.array([UNLABELED if number is None else number for number in run.class_ids])
        class_ids, confidence = numbers[run.predicted()], run.confidence()
    else:
        return Cards(ids, REVIEW_ROUND)
    merged = store.classes.book().merged
    shown = {entry.class_id for entry in store.classes.all()}
    suggestions = {}
    for image_id, position in zip(ids.tolist(), learned.positions(ids).tolist(), strict=True):
        class_id = merged.get(int(class_ids[position]), int(class_ids[position]))
        if position >= 0 and class_id in shown:
            suggestions[image_id] = (class_id, float(confidence[position]))
    return Cards(ids, REVIEW_ROUND, suggestions=suggestions)


QUEUES.register("doubt", title="Doubtful pseudo-labels")(doubtful)
QUEUES.register("coreset", title="Images of a coreset", of="the id of a coreset")(in_coreset)
for _signal, _title in review.SIGNALS.items():
    QUEUES.register(f"doubt_{_signal}", title=_title)(functools.partial(doubtful, signal=_signal))
