"""A project with a saved coreset, made in milliseconds: no training, scores drawn by chance."""

from __future__ import annotations

import numpy as np
import pytest

from semiprune_core.artifacts import open_artifact
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.records import Trajectory
from semiprune_core.results import write_pseudo, write_scores
from semiprune_core.scores import ScoreSettings, compute_scores
from semiprune_core.sources.base import SourceSpec
from tests.conftest import make_class_folder

CLASSES = ("cat", "dog", "owl")


def add_scores(project, class_names=CLASSES, *, n_epochs=12, seed=0):
    """Pseudo-labels (every fifth image by a person) and scores for the project's pool."""
    rng, pool = np.random.default_rng(seed), project.pool()
    n = len(pool)
    predicted = rng.integers(0, len(class_names), n)
    human = np.arange(n) % 5 == 0
    labels = np.where(human, (predicted + 1) % len(class_names), predicted)
    with project.draft("pseudo", settings={}, inputs={"pool": pool.hash, "labels": "ab" * 32}, seed=seed) as draft:
        write_pseudo(
            draft,
            labels=labels,
            predicted=predicted,
            confidence=rng.uniform(0.4, 1, n),
            human_mask=human,
            held_out_mask=np.zeros(n, dtype=bool),
            features=np.zeros((n, 2)),
            class_names=tuple(class_names),
            quality=None,
            history=[],
        )
    pseudo = open_artifact(draft.folder)
    prob = rng.uniform(0.05, 0.95, (n_epochs, n))
    settings = ScoreSettings(dual_epochs=n_epochs, window=5)
    table = compute_scores(Trajectory(prob, 2 * prob - 1, prob > 0.5, 1 - prob, prob[-1]), settings=settings)
    inputs = {"pool": pool.hash, "pseudo": pseudo.hash, "trajectory": "cd" * 32}
    with project.draft("scores", settings=settings.to_json(), inputs=inputs) as draft:
        write_scores(draft, pool.ids, table)
        draft.facts.update(n_epochs=n_epochs, trajectories=[], seeds=[0], stability=None)
    return project


@pytest.fixture
def select(project):
    """Save a coreset of the project."""

    def run(ratio=0.5, **request):
        return build_coreset(project, CoresetRequest(pruning_ratio=ratio, **request))

    return run


@pytest.fixture
def project(import_into, tmp_path):
    """40 pictures in files of their own, labels, scores."""
    project, _ = import_into(SourceSpec("folder", str(make_class_folder(tmp_path / "pictures", n=40))))
    return add_scores(project)


@pytest.fixture
def packed_project(import_into, tmp_path):
    """12 pictures from an .npz, so that their originals are packed; two of the paths look like formulas."""
    images = np.random.default_rng(0).integers(0, 256, (12, 28, 28, 3), dtype=np.uint8)
    paths = np.array([f"{i:02d}.png" for i in range(10)] + ["=cmd()/a.png", "-x.png"])
    np.savez(tmp_path / "pictures.npz", images=images, labels=np.arange(12) % 2, paths=paths)
    project, _ = import_into(SourceSpec("npz", str(tmp_path / "pictures.npz")))
    return add_scores(project)
