"""What a trained model says about the images to label: its doubts, and which pictures it takes to be alike.

Only a model trained on this very pool is asked. Before there is one, the pixels speak, and nobody has doubts.
"""

from __future__ import annotations

import numpy as np

from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.labeling import open_store
from semiprune_core.labeling.drawing import DRAW_METHODS, pixel_features
from semiprune_core.paths import shown
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, FloatArray
from semiprune_core.results import PseudoRun, latest_pseudo
from semiprune_core.results.features import latest_features
from semiprune_core.trust.farthest import farthest_first, nearest_first

PIXEL_SIDE = 32


def current_model(project: Project, pool: Pool) -> PseudoRun | None:
    """The latest SSL run, if it was trained on this pool as it is now."""
    if project.latest("pseudo") is None:
        return None
    run = latest_pseudo(project)
    return run if run.artifact.inputs.get("pool") == pool.hash and len(run.confidence()) == len(pool) else None


def can_draw_by_likeness(project: Project, pool: Pool) -> bool:
    """Whether images can be drawn by what they look like beside the labeled ones."""
    return seen_features(project, pool) is not None


def seen_features(project: Project, pool: Pool) -> np.ndarray | None:
    """(N, D) the pool as a pretrained encoder sees it, else as the latest model does; None where neither has."""
    try:
        return latest_features(project).features()
    except MissingStepError:
        run = current_model(project, pool)
        return None if run is None else np.asarray(run.features(), np.float32)


def draw_evidence(
    project: Project, pool: Pool, method: str, *, count: int = 0, near: int | None = None
) -> dict[str, FloatArray]:
    """What the drawing method needs, by name: ``features`` (N, D), ``confidence`` (N,), ``order`` (N,).

    Nothing for uniform. ``count`` images are put in order for *unlike*; ``near`` is the number of the class for *near*.
    """
    needs = DRAW_METHODS.facts(method)["needs"] if method in DRAW_METHODS else ()
    if not needs:
        return {}
    if "order" in needs:
        return {"order": _order(project, pool, method, count, near)}
    run = current_model(project, pool)
    evidence: dict[str, FloatArray] = {}
    if "confidence" in needs:
        if run is None:
            raise MissingStepError(
                f"Drawing by '{method}' needs a model trained on this pool as it is now. Train one first, "
                "or draw uniformly."
            )
        evidence["confidence"] = np.asarray(run.confidence(), np.float32)
    if "features" in needs:
        evidence["features"] = pixel_features(pool.images()) if run is None else np.asarray(run.features(), np.float32)
    return evidence


def _order(project: Project, pool: Pool, method: str, count: int, near: int | None) -> FloatArray:
    features = seen_features(project, pool)
    if features is None:
        raise MissingStepError(
            f"Drawing by '{method}' needs features of the images. Run: semiprune embed {project.name}"
        )
    store = open_store(project)
    snapshot = store.snapshot()
    labels, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    if method == "near":
        if near is None or near not in snapshot.class_ids:
            raise InvalidSettingError("Name the class that the images should be like.")
        examples = np.flatnonzero(labels == snapshot.class_ids.index(near))
        if not len(examples):
            name = snapshot.class_names[snapshot.class_ids.index(near)]
            raise MissingStepError(
                f"The class '{shown(name, 60)}' has no label yet. Draw the images most unlike the labeled ones instead."
            )
        return nearest_first(features, examples)
    drawn = np.concatenate([np.empty(0, np.uint64), *(drawing.ids for drawing in store.drawings.all())])
    free = (labels == UNLABELED) & ~np.isin(pool.ids, drawn) & (pool.duplicate_of == np.arange(len(pool)))
    return farthest_first(features, np.flatnonzero(labels != UNLABELED), np.flatnonzero(free), count)


def similarity_features(project: Project, everything: Pool, ids: np.ndarray) -> FloatArray:
    """(M, D) float32 on which likeness of ``ids`` (M,) is measured; ``everything`` holds all splits."""
    pool = everything.split("pool")
    positions = pool.positions(ids)
    run = current_model(project, pool) if (positions >= 0).all() else None
    if run is not None:
        return run.features()[positions].astype(np.float32)
    images = everything.take(everything.positions(ids)).images()
    step = -(-images.shape[1] // PIXEL_SIDE)
    return images[:, ::step, ::step].reshape(len(images), -1).astype(np.float32) / 255
