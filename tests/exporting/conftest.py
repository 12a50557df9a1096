"""A project with a saved coreset, made in milliseconds: no training, scores drawn by chance."""

from __future__ import annotations

import functools
import shutil

import numpy as np
import pytest

from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.progress import Collected
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.spreadsheet import TRIGGERS
from semiprune_core.project.workspace import Workspace
from semiprune_core.records import ClassProbs, Trajectory
from semiprune_core.results import write_pseudo, write_scores
from semiprune_core.scores import ScoreSettings, compute_scores
from tests.conftest import make_class_folder

CLASSES = ("cat", "dog", "owl")


def add_scores(project, class_names=CLASSES, *, n_epochs=12, seed=0):
    """Pseudo-labels (every fifth image by a person) and scores for the project's pool."""
    rng, pool = np.random.default_rng(seed), project.pool()
    n = len(pool)
    predicted = rng.integers(0, len(class_names), n)
    human = np.arange(n) % 5 == 0
    labels = np.where(human, (predicted + 1) % len(class_names), predicted)
    probs = np.random.default_rng(seed + 1).dirichlet(np.ones(len(class_names)), n)
    best = probs.argmax(1)
    probs[np.arange(n), best], probs[np.arange(n), predicted] = probs[np.arange(n), predicted], probs.max(1)
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
            probs=ClassProbs.of(probs),
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


def select_in(project, ratio=0.5, **request):
    if "method" not in request:
        request = {"cutoff": min(0.1, ratio), **request}
    return build_coreset(project, CoresetRequest.from_json({"pruning_ratio": ratio, **request}))


@pytest.fixture
def select(project):
    """Save a coreset of the project."""
    return functools.partial(select_in, project)


def imported(folder, kind, location, home=None):
    """A fresh project, below ``folder`` or in ``home``, with what was imported from ``location``."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEMIPRUNE_ROOTS", str(folder))
        project = Workspace.open(home or folder / "home").create("Test")
        settings = ImportSettings(source=SourceSpec(kind, str(location)).to_json(), n_workers=1)
        import_source(project, settings, Collected())
    return project.workspace.project(project.name)


@pytest.fixture(scope="session")
def in_files(tmp_path_factory):
    """40 pictures in files of their own, labels, scores: imported once, copied by every test."""
    folder = tmp_path_factory.mktemp("files")
    return add_scores(imported(folder, "folder", make_class_folder(folder / "pictures", n=40)))


@pytest.fixture(scope="session")
def in_array(tmp_path_factory):
    """12 pictures whose originals are packed; every path and every class begins with one of the six triggers."""
    folder = tmp_path_factory.mktemp("array")
    images = np.random.default_rng(0).integers(0, 256, (12, 28, 28), dtype=np.uint8)
    paths = np.array([f"{TRIGGERS[number % 6]}cmd|'{number}.png" for number in range(12)])
    np.savez(folder / "pictures.npz", images=images, paths=paths)
    classes = tuple(f"{trigger}SUM(1,2)" for trigger in TRIGGERS)
    return add_scores(imported(folder, "npz", folder / "pictures.npz"), classes)


def copied(project, workspace):
    shutil.copytree(project.folder, workspace.root / project.name)
    return workspace.project(project.name)


@pytest.fixture
def project(in_files, workspace):
    return copied(in_files, workspace)


@pytest.fixture
def hostile(in_array, workspace):
    return copied(in_array, workspace)


@pytest.fixture
def own_project(tmp_path):
    """Like ``project``, with pictures that the test may change."""
    return add_scores(imported(tmp_path, "folder", make_class_folder(tmp_path / "pictures", n=12)))
