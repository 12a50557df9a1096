"""The review queue: which pseudo-labels to look at first, and what people's answers do to the store.

Doubt is the mean of the signals at hand, each turned into ranks in [0, 1] so that none outweighs the others by its
units: low confidence; a small margin between the model's first and second class (see :func:`margins`); disagreement
between runs; a low AUM once there are scores.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
from scipy import sparse

from semiprune_core.errors import InvalidDataError, UnknownNameError
from semiprune_core.labeling import Ack, Event, LabelStore
from semiprune_core.labeling.drawing import DRAW_METHODS, Drawing
from semiprune_core.labeling.events import REVIEW_ROUND
from semiprune_core.labeling.store import MAX_APPEND
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, FloatArray, IntArray
from semiprune_core.results import CoresetRun, PseudoRun
from semiprune_core.trust.quality_report import match_classes, pool_of_run

BLOCK = 1 << 15
MOST_AT_ONCE = 20_000
"""Images one action may label or flag; more are a slip of the hand, or a job for an import of labels."""
SIGNALS = {
    "confidence": "Low confidence",
    "margin": "Low margin",
    "disagreement": "Runs disagree",
    "aum": "Low AUM",
}


@dataclass(frozen=True, eq=False)
class Doubt:
    """``order`` positions, most doubtful first; ``score`` (N,) in [0, 1]; ``signals`` (N,) each, 1 = most doubtful."""

    order: IntArray
    score: FloatArray
    signals: Mapping[str, FloatArray]


def ranks(values: FloatArray) -> FloatArray:
    """(N,) in [0, 1]: the share of images with a smaller value, equal values alike."""
    if len(values) < 2:
        return np.zeros(len(values))
    ordered = np.sort(values)
    low, high = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right") - 1
    return (low + high) / 2 / (len(values) - 1)


def feature_margin(features: np.ndarray, labels: IntArray, n_classes: int) -> FloatArray:
    """(N,) in [-1, 1]: how much nearer an image lies to its own class's mean than to the nearest other one's.

    (d_other - d_own) / (d_other + d_own) with Euclidean distances in ``features`` (N, D); below 0 it looks more like
    another class than like its own.
    """
    n = len(labels)
    counts = np.bincount(labels, minlength=n_classes)
    means = np.zeros((n_classes, features.shape[1]))
    for start in range(0, n, BLOCK):
        part, own = np.asarray(features[start : start + BLOCK], np.float64), labels[start : start + BLOCK]
        belongs = sparse.csr_matrix((np.ones(len(own)), (own, np.arange(len(own)))), shape=(n_classes, len(own)))
        means += belongs @ part
    means /= np.maximum(counts, 1)[:, None]
    margin = np.zeros(n)
    if (counts > 0).sum() < 2:
        return margin
    for start in range(0, n, BLOCK):
        part, own = np.asarray(features[start : start + BLOCK], np.float64), labels[start : start + BLOCK]
        squared = (part**2).sum(1)[:, None] - 2 * part @ means.T + (means**2).sum(1)
        distance = np.sqrt(np.maximum(squared, 0))
        distance[:, counts == 0] = np.inf
        mine = distance[np.arange(len(own)), own].copy()
        distance[np.arange(len(own)), own] = np.inf
        other = distance.min(1)
        margin[start : start + BLOCK] = (other - mine) / np.maximum(other + mine, 1e-12)
    return margin


def margins(run: PseudoRun) -> FloatArray | None:
    """(N,) how clearly each image belongs to its class and to no other; None where nothing tells.

    The model's own: its largest probability less its second largest. Runs from before that was kept have only their
    features, so there the distances to the classes' means stand in for it. The scales differ, the order is what counts.
    """
    own = run.margin()
    if own is not None:
        return np.asarray(own)
    features = run.features()
    if features.ndim != 2 or not features.shape[1]:
        return None
    return feature_margin(features, np.asarray(run.predicted()), len(run.class_names))


def latest_score(project: Project, name: str, n: int) -> FloatArray | None:
    """(N,) a column of the newest scores, where there are scores of as many images."""
    artifact = project.latest("scores")
    if artifact is None:
        return None
    path = artifact.path("scores.parquet")
    if not path.is_file() or name not in pq.read_schema(path).names:
        return None
    values = pq.read_table(path, columns=[name])[name].to_numpy()
    return values if len(values) == n else None


def signals(project: Project, run: PseudoRun, others: Sequence[PseudoRun] = ()) -> dict[str, FloatArray]:
    """Every signal at hand, (N,) each, 1 = most doubtful."""
    n, predicted = int(run.artifact.facts["n_images"]), np.asarray(run.predicted())
    by_name = {"confidence": 1 - ranks(np.asarray(run.confidence()))}
    margin = margins(run)
    if margin is not None:
        by_name["margin"] = 1 - ranks(margin)
    others = [other for other in others if len(other.predicted()) == n and other.artifact.id != run.artifact.id]
    if others:
        votes = [match_classes(np.asarray(other.predicted()), other.class_names, run.class_names) for other in others]
        by_name["disagreement"] = np.mean([vote != predicted for vote in votes], axis=0)
    aum = latest_score(project, "aum", n)
    if aum is not None:
        by_name["aum"] = 1 - ranks(aum)
    return by_name


def doubt(
    signals: Mapping[str, FloatArray], *, use: Collection[str] | None = None, leave_out: IntArray | None = None
) -> Doubt:
    """Order images by the mean of the signals named in ``use`` (all by default), without positions ``leave_out``."""
    names = list(signals) if use is None else [name for name in signals if name in use]
    if not names:
        raise InvalidDataError(f"Choose at least one signal of doubt. Available: {', '.join(signals)}.")
    score = np.mean([signals[name] for name in names], axis=0)
    order = np.argsort(-score, kind="stable")
    if leave_out is not None and len(leave_out):
        order = order[~np.isin(order, leave_out)]
    return Doubt(order, score, {name: signals[name] for name in names})


def human_labels(pool: Pool, run: PseudoRun, store: LabelStore) -> IntArray:
    """(N,) what people say now, over the run's classes; -1 where nobody spoke."""
    pool = pool_of_run(pool, run)
    snapshot = store.snapshot()
    labels, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    return match_classes(labels, snapshot.class_names, run.class_names)


def review_queue(
    project: Project,
    pool: Pool,
    run: PseudoRun,
    store: LabelStore,
    *,
    others: Sequence[PseudoRun] = (),
    use: Collection[str] | None = None,
) -> Doubt:
    """The images no person has labeled, most doubtful first."""
    return doubt(signals(project, run, others), use=use, leave_out=settled(pool, run, store))


def settled(pool: Pool, run: PseudoRun, store: LabelStore) -> IntArray:
    """Positions of the images that no review asks for: labeled by a person, or kept for the final test."""
    of_run = pool_of_run(pool, run)
    final = store.snapshot().final_mask(of_run.ids, of_run.duplicate_of)
    return np.flatnonzero(final | (human_labels(pool, run, store) != UNLABELED))


@dataclass(frozen=True)
class CoresetLabels:
    """Whose labels the images of a coreset carry now: ``n_human`` of ``n_kept`` a person's; ``n_skipped`` have none.

    ``n_final`` are kept for the final test: they carry the model's answer, and nobody is asked for them.
    """

    n_kept: int
    n_human: int
    n_skipped: int
    n_final: int = 0

    @property
    def n_left(self) -> int:
        return self.n_kept - self.n_human - self.n_skipped - self.n_final


def coreset_labels(pool: Pool, run: CoresetRun, store: LabelStore) -> CoresetLabels:
    """How many labels of a coreset people have given so far."""
    indices = run.coreset().indices
    snapshot = store.snapshot()
    labels, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    is_human, is_final = labels[indices] != UNLABELED, snapshot.final_mask(pool.ids, pool.duplicate_of)[indices]
    skipped = [event.image_id for event in store.held() if event.round == REVIEW_ROUND and event.action == "skip"]
    is_skipped = np.isin(pool.ids[indices], np.array(skipped, dtype=np.uint64)) & ~is_human & ~is_final
    return CoresetLabels(len(indices), int(is_human.sum()), int(is_skipped.sum()), int(is_final.sum()))


# --- answers ---------------------------------------------------------------------------------------------------------


def class_id_of(store: LabelStore, name: str) -> int:
    """The store's number of a class; a class it does not have is refused."""
    for entry in store.classes.all():
        if entry.name == name and entry.merged_into is None:
            return entry.class_id
    raise UnknownNameError(f"There is no class '{name}' in this project. Add it on the Label page.", code="NO_CLASS")


def label_images(store: LabelStore, ids: Sequence[int], class_name: str, *, annotator: str) -> list[Ack]:
    """Give images a class, seen with the model's answer in view: human labels, but not uniformly drawn ones.

    One undo takes the whole group back.
    """
    class_id = class_id_of(store, class_name)
    return _append(store, ids, annotator, action="label", class_id=class_id)


def flag_images(store: LabelStore, ids: Sequence[int], *, annotator: str) -> list[Ack]:
    return _append(store, ids, annotator, action="flag")


def _append(
    store: LabelStore, ids: Sequence[int], annotator: str, *, action: str, class_id: int | None = None
) -> list[Ack]:
    if len(ids) > MOST_AT_ONCE:
        raise InvalidDataError(
            f"At most {MOST_AT_ONCE:,} images can be changed at once, got {len(ids):,}. Select fewer."
        )
    group = secrets.token_hex(12)
    events = [
        Event(
            event_id=f"{group}-{number}",
            annotator=annotator,
            action=action,
            image_id=int(image_id),
            class_id=class_id,
            group_id=group,
            source="review",
        )
        for number, image_id in enumerate(ids)
    ]
    acks: list[Ack] = []
    for start in range(0, len(events), MAX_APPEND):
        acks += store.append(events[start : start + MAX_APPEND])
    return acks


@DRAW_METHODS.register("picked", title="Picked by hand", needs=("confidence",))
def draw_picked(ids: np.ndarray, count: int, *, seed: int, confidence: FloatArray, **_: object) -> np.ndarray:
    """The images marked with a ``confidence`` (M,) of 0, in pool order; the others carry 1."""
    return ids[confidence < 0.5][:count]


def add_to_next_draw(store: LabelStore, pool: Pool, positions: IntArray, *, annotator: str) -> Drawing:
    """Record a drawing of these images (not uniform) for the Label page; those drawn before are left out."""
    first = pool.duplicate_of[positions]
    chosen = np.unique(first)
    drawn = np.concatenate([drawing.ids for drawing in store.drawings.all()] or [np.empty(0, np.uint64)])
    chosen = chosen[~np.isin(pool.ids[chosen], drawn)]
    if not len(chosen):
        raise InvalidDataError("All of these images have been drawn already. Label them on the Label page.")
    marks = np.ones(len(pool), dtype=np.float32)
    marks[chosen] = 0
    return store.drawings.draw(
        pool_hash=pool.hash,
        ids=pool.ids,
        duplicate_of=pool.duplicate_of,
        count=len(chosen),
        method="picked",
        annotator=annotator,
        confidence=marks,
    )
