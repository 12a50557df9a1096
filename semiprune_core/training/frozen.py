"""Learning on pretrained features: every image is embedded once, a head is fitted in seconds and cross-fitted.

Nothing is checkpointed beyond the features' own blocks: a run that was killed fits its head again, to the same bits.
"""

from __future__ import annotations

import numpy as np

from semiprune_core.features import EmbedSettings, wait_while_computed
from semiprune_core.features.embed import embed
from semiprune_core.jobs import JobContext
from semiprune_core.learning.frozen import FrozenResult
from semiprune_core.records import UNLABELED, ClassProbs, IntArray
from semiprune_core.training.answers import Answers
from semiprune_core.training.data import PoolLabels
from semiprune_core.training.heads import fit_head, prepare_features
from semiprune_core.training.settings import TrainSettings

FOLDER = "features"
"""Where blocks of features wait in the job's folder until all are there."""


def learn_on_features(context: JobContext, settings: TrainSettings, n_classes: int, labels: PoolLabels) -> Answers:
    """Answers for the pool from a head on the features of ``settings.encoder``, computed first where they are missing.

    Held-out labels are answered by folds that saw neither them nor their near-duplicates, all other images by the head
    that was fitted on every label.
    """
    folder = context.folder / FOLDER
    folder.mkdir(exist_ok=True)
    wanted = EmbedSettings(encoder=settings.encoder)
    wait_while_computed(context.project, wanted, context)
    run = embed(context.project, wanted, context, folder=folder)
    prepared = prepare_features(run, settings.head, progress=context)
    fitted = fit_head(prepared, labels, n_classes, settings.head, seed=settings.seed, progress=context)
    return answers_of(fitted, run.features(), run.artifact.hash, prepared.groups)


def answers_of(fitted: FrozenResult, features: np.ndarray, features_hash: str, groups: IntArray) -> Answers:
    """What a fitted head says of every image; of those it was measured on, what the folds said."""
    n_grouped = len(groups) - len(np.unique(groups))
    held = fitted.out_of_fold
    probs = fitted.probs.astype(np.float32)
    probs[held.positions] = held.probs
    two = np.partition(probs, -2, axis=1)[:, -2:]
    held_out_mask = np.zeros(len(probs), dtype=bool)
    held_out_mask[held.positions] = True
    return Answers(
        predicted=probs.argmax(1),
        confidence=two[:, 1],
        margin=two[:, 1] - two[:, 0],
        probs=ClassProbs.of(probs),
        held_out_mask=held_out_mask,
        held_out_answers=np.where(held_out_mask, probs.argmax(1), UNLABELED),
        groups=groups,
        features=features,
        quality=fitted.quality,
        weights={},
        notes=(f"{n_grouped:,} images are near-duplicates of another one; none was held out while its like was seen.",)
        if n_grouped
        else (),
        arrays={
            "fold_positions": held.positions.astype(np.int64),
            "fold_probs": held.probs.astype(np.float32),
            "folds": held.folds.astype(np.int16),
        },
        facts={"features": features_hash, "fit": dict(fitted.facts), "parts_seconds": _rounded(fitted.seconds)},
    )


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {part: round(value, 2) for part, value in seconds.items()}
