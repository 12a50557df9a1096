"""A scored project, and trainings that take no time."""

import pytest

from semiprune_core.progress import Stopped
from semiprune_core.trials import run as trial_run
from tests.support.scored_projects import make_scored


@pytest.fixture
def project(workspace, tmp_path):
    return make_scored(workspace, tmp_path, n=60, n_classes=3, n_test=20)


@pytest.fixture
def quick(monkeypatch):
    """Trials that remember what they were given instead of training."""
    seen = []

    def train(images, labels, tests, truth, *, n_classes, settings, seed, progress, device):
        given = {"images": images, "labels": labels, "tests": tests, "truth": truth}
        seen.append({**given, "seed": seed, "batch": settings.batch_size, "epochs": settings.epochs})
        progress.report(1, 2, loss=1.0)
        if progress.should_stop():
            raise Stopped
        right = int(images.astype(int).sum() + 7 * seed) % (len(truth) + 1)
        return trial_run.TrialResult(right, len(truth), len(images), 0.6)

    monkeypatch.setattr(trial_run, "train_trial", train)
    return seen
