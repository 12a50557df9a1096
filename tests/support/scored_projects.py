"""Projects that stand at the Select page, made in milliseconds: no training, a trajectory that looks like one."""

import dataclasses

import numpy as np

from semiprune_core import steps
from semiprune_core.dynamics.scoring import score_runs
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.progress import Collected
from semiprune_core.project.pool import PoolSettings
from semiprune_core.results import TrajectoryRun, write_pseudo, write_trajectory
from semiprune_core.results.evidence import EvidenceRun, write_evidence
from semiprune_core.results.trajectory_store import TrajectoryWriter
from semiprune_core.scores import ScoreSettings, ScoreTable
from semiprune_core.steps import STEPS


def add_clusters(project, *, n_clusters=5, seed=0):
    """Evidence of ELFS: clusters that are neither the classes nor as many, with scores of their own."""
    pool, rng = project.pool(), np.random.default_rng(seed)
    n = len(pool)
    columns = {"aum": rng.uniform(-1, 1, n), "el2n": rng.uniform(0, 1, n), "forgetting": rng.integers(0, 5, n) + 0.0}
    table = ScoreTable(columns, ScoreSettings(window=2), n)
    settings = {"provider": "cluster_scores", "scores": table.settings.to_json()}
    with project.draft("evidence", settings=settings, inputs={"pool": pool.hash}, seed=seed) as draft:
        write_evidence(draft, pool, table, rng.permutation(np.arange(n) % n_clusters))
        draft.facts.update(n_images=n, n_epochs=12)
    return EvidenceRun(project.latest("evidence"))


def make_pool(workspace, folder, n=120, n_classes=4, name="Scored", n_test=0, labeled=True):
    """A project with ``n`` grey images of bars, 28 x 28, whose height tells the class; ``n_test`` more are tests."""
    n_pool, n = n, n + n_test
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(n) % n_classes)
    images = rng.integers(0, 60, (n, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels):
        image[label * 28 // n_classes : (label + 1) * 28 // n_classes] += 150
    path = folder / f"{name}.npz"
    split = np.where(np.arange(n) < n_pool, "pool", "test")
    given = {"labels": labels} if labeled else {}
    np.savez(path, images=images, **given, **({"split": split} if n_test else {}))
    project = workspace.create(name)
    settings = ImportSettings(
        source=SourceSpec("npz", str(path)).to_json(),
        pool=PoolSettings(size=28, channels=1).to_json(),
        n_workers=1,
    )
    import_source(project, settings, Collected())
    return workspace.project(project.name)


def add_pseudo(project, *, wrong=0.15, human=0.2, held_out=0.5, seed=0, settings=None):
    """Pseudo-labels from the reference labels, a share of them wrong; a share labeled by a person, always rightly."""
    pool = project.pool()
    rng = np.random.default_rng(seed)
    n, n_classes, truth = len(pool), len(pool.class_names), pool.reference_labels
    is_wrong = rng.random(n) < wrong
    predicted = np.where(is_wrong, (truth + rng.integers(1, n_classes, n)) % n_classes, truth)
    human_mask = np.zeros(n, dtype=bool)
    human_mask[rng.permutation(n)[: round(human * n)]] = True
    with project.draft("pseudo", settings=settings or {}, inputs={"pool": pool.hash}, seed=seed) as draft:
        write_pseudo(
            draft,
            labels=np.where(human_mask, truth, predicted),
            predicted=predicted,
            confidence=np.where(is_wrong, 0.6, 0.97),
            human_mask=human_mask,
            held_out_mask=human_mask & (rng.random(n) < held_out),
            features=pool.images().reshape(n, -1)[:, ::14].astype(np.float32) / 255,
            class_names=pool.class_names,
            quality=None,
            history=[],
        )
        draft.facts["seconds"] = 90.0
    return project.latest("pseudo")


def add_trajectory(project, folder, *, n_epochs=12, seed=0):
    """A trajectory in which images with wrong labels are learned late or never."""
    pool, pseudo = project.pool(), project.latest("pseudo")
    rng = np.random.default_rng(seed)
    n = len(pool)
    labels = np.load(pseudo.path("labels.npy"))
    is_wrong = labels != pool.reference_labels
    begin = np.where(is_wrong, rng.uniform(8, 20, n), rng.uniform(0, 6, n))
    recorded = folder / f"recorded-{seed}"
    writer = TrajectoryWriter(recorded, n_epochs, n)
    for epoch in range(n_epochs):
        prob = np.clip(1 / (1 + np.exp(begin - epoch)) + rng.normal(0, 0.05, n), 0.01, 0.99)
        entropy = -prob * np.log(prob) if epoch == n_epochs - 1 else None
        writer.append(target_prob=prob, margin=2 * prob - 1, correct=prob > 0.5, el2n=1 - prob, entropy=entropy)
    inputs = {"pool": pool.hash, "pseudo": pseudo.hash}
    history = [{"epoch": 1 + epoch, "train_loss": 1.0, "train_accuracy": 0.5} for epoch in range(n_epochs)]
    with project.draft("trajectory", settings={}, inputs=inputs, seed=seed) as draft:
        write_trajectory(draft, recorded, history)
    return TrajectoryRun(project.latest("trajectory"))


def make_scored(workspace, folder, *, n=120, n_classes=4, name="Scored", seeds=(0,), n_test=0, **pseudo):
    project = make_pool(workspace, folder, n, n_classes, name, n_test)
    add_pseudo(project, **pseudo)
    score_runs(project, [add_trajectory(project, folder, seed=seed) for seed in seeds])
    return project


def call_labels_done(monkeypatch):
    """The step Label counts as done: these projects were given their pseudo-labels; nobody labeled."""
    as_done = [dataclasses.replace(step, done=lambda project: True) if step.key == "label" else step for step in STEPS]
    monkeypatch.setattr(steps, "STEPS", tuple(as_done))
