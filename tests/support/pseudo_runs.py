"""Pseudo-label artifacts without training: reference labels, some of them wrong, with confidences that know it."""

from __future__ import annotations

import numpy as np

from semiprune_core.labeling import Event, open_store
from semiprune_core.labeling.drawing import pixel_features
from semiprune_core.learning.quality import measure
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.workspace import Project
from semiprune_core.results import PseudoRun, write_pseudo


def label_share(
    project: Project, fraction: float = 0.1, seed: int = 0, annotator: str = "ada", final_test: float | None = None
) -> None:
    """Draw a share of the pool uniformly and label it as its reference labels say."""
    store, pool = open_store(project), project.pool()
    if not len(store.classes):
        store.classes.add(pool.class_names, annotator=annotator)
    drawing = store.drawings.draw(
        pool_hash=pool.hash,
        ids=pool.ids,
        duplicate_of=pool.duplicate_of,
        fraction=fraction,
        seed=seed,
        final_test=final_test,
        annotator=annotator,
    )
    number = {one.name: one.class_id for one in store.classes.all()}
    truth = pool.reference_labels[pool.positions(drawing.ids)]
    store.append(
        [
            Event(
                event_id=f"e{seed}-{image_id:016x}",
                annotator=annotator,
                action="label",
                image_id=int(image_id),
                class_id=number[pool.class_names[label]],
            )
            for image_id, label in zip(drawing.ids, truth, strict=True)
        ]
    )


def fake_pseudo(
    project: Project,
    *,
    wrong: float = 0.15,
    seed: int = 0,
    n_features: int = 64,
    held_out: float = 0.3,
    margin: np.ndarray | None = None,
    by_name: bool = False,
) -> PseudoRun:
    """A finished SSL run of the project's labels that never ran; without ``margin`` (N,) as older versions wrote it.

    ``by_name``: as versions wrote it that knew no class ids.
    """
    rng = np.random.default_rng(seed)
    pool, snapshot = project.pool(), open_store(project).snapshot()
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    truth = pool.reference_labels.copy()
    n, n_classes = len(pool), len(snapshot.class_names)
    is_wrong = rng.random(n) < wrong
    predicted = np.where(is_wrong, (truth + rng.integers(1, n_classes, n)) % n_classes, truth)
    confidence = np.where(is_wrong, rng.beta(4, 3, n), rng.beta(14, 1.6, n))
    human_mask = human >= 0
    held = human_mask & (rng.random(n) < held_out)
    quality = measure(
        predicted[held], human[held], confidence[held], n_classes=n_classes, measured_on=f"{held.sum()} human labels."
    )
    images = pool.images()
    with project.draft(
        "pseudo",
        settings={"algorithm": "fixmatch", "preset": "none", "refit": False, "cross_fit": 0},
        inputs={"pool": pool.hash, "labels": snapshot.hash_by_name if by_name else snapshot.hash},
        seed=seed,
    ) as draft:
        write_pseudo(
            draft,
            labels=np.where(human_mask, human, predicted),
            predicted=predicted,
            confidence=confidence,
            human_mask=human_mask,
            held_out_mask=held,
            features=pixel_features(images, n_components=n_features),
            class_names=snapshot.class_names,
            class_ids=() if by_name else snapshot.class_ids,
            quality=quality.to_json() if quality else None,
            history=[],
            margin=margin,
        )
    return PseudoRun(open_artifact(draft.folder))
