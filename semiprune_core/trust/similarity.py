"""What a trained model says about the images to label: its doubts, and which pictures it takes to be alike.

Only a model trained on this very pool is asked. Before there is one, the pixels speak, and nobody has doubts.
"""

from __future__ import annotations

import numpy as np

from semiprune_core.errors import MissingStepError
from semiprune_core.labeling.drawing import DRAW_METHODS, pixel_features
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray
from semiprune_core.results import PseudoRun, latest_pseudo

PIXEL_SIDE = 32


def current_model(project: Project, pool: Pool) -> PseudoRun | None:
    """The latest SSL run, if it was trained on this pool as it is now."""
    if project.latest("pseudo") is None:
        return None
    run = latest_pseudo(project)
    return run if run.artifact.inputs.get("pool") == pool.hash and len(run.confidence()) == len(pool) else None


def draw_evidence(project: Project, pool: Pool, method: str) -> dict[str, FloatArray]:
    """What the drawing method needs, by name: ``features`` (N, D), ``confidence`` (N,); nothing for uniform."""
    needs = DRAW_METHODS.facts(method)["needs"] if method in DRAW_METHODS else ()
    if not needs:
        return {}
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
