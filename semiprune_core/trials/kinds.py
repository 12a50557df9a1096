"""The kinds of test that a trial may be, and what a probe is given. Nothing here loads torch.

A probe fits a linear head to features in a fraction of a second. The other two train a net on the coreset's images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import MissingStepError
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.project.workspace import Project
from semiprune_core.records import coreset_size
from semiprune_core.results.features import FeatureRun, feature_runs, latest_features
from semiprune_core.results.search import FINETUNE, PROBE, SCRATCH
from semiprune_core.settings import Settings

TESTS = {PROBE: "Probe on features", FINETUNE: "Fine-tuned", SCRATCH: "From scratch"}
"""How coresets are tested, and its name for people."""
TESTED_BY = {
    PROBE: "a linear probe on pretrained features",
    FINETUNE: "a network that began with an encoder's weights",
    SCRATCH: "a network trained from scratch",
}
PROBE_SECONDS, PROBED_PER_SECOND = 0.02, 40_000
"""What a probe takes on a core: so much, and a second for so many images."""
FEATURES = "features"
"""The pin of a job of probes."""
DIRECTIONS, PENALTY = 256, 0.12
"""Found with Random coresets of tuning images alone, see docs/evaluate.md."""


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(Settings):
    """Whose features (``features`` is their artifact's hash), in how many main directions, and the penalty.

    The penalty on the squared weights is divided by the number of images, as a prior of fixed width is.
    """

    encoder: str
    features: str
    directions: int = DIRECTIONS
    penalty: float = PENALTY

    def check(self) -> None:
        check_range("directions", self.directions, low=1)
        check_range("penalty", self.penalty, low=0, low_open=True)

    @property
    def epochs(self) -> int:
        """Progress is counted in images; a probe sees each once."""
        return 1

    def for_coreset(self, pruning_ratio: float) -> ProbeSettings:
        """The same for every coreset."""
        return self

    def images_seen(self, n_images: int, pruning_ratio: float) -> int:
        return coreset_size(n_images, pruning_ratio)


TrialSettings = SupervisedSettings | ProbeSettings


def for_full(training: TrialSettings, pruning_ratios: Iterable[float], n_images: int) -> TrialSettings:
    """How a pool of ``n_images`` is trained on as a whole beside coresets at these ratios: never for fewer epochs or
    fewer steps than any of them, so that it is the line from above. A probe is exact and cannot be trained longer.

    >>> for_full(SupervisedSettings(epochs=30, stretch=3), (0.5, 0.9), 1000).epochs
    90
    """
    if isinstance(training, ProbeSettings):
        return training
    epochs, n_steps = training.epochs, 0
    for ratio in pruning_ratios:
        coreset = training.for_coreset(ratio)
        epochs = max(epochs, coreset.epochs)
        n_steps = max(n_steps, coreset.epochs * math.ceil(coreset_size(n_images, ratio) / coreset.batch_size))
    per_epoch = max(1, math.ceil(n_images / training.batch_size))
    return training.replace(epochs=max(epochs, math.ceil(n_steps / per_epoch)))


def check_test(test: str) -> None:
    check_choice("test", test, tuple(TESTS))


def usual_test(project: Project) -> str:
    """A probe where the pool's features are there, else a net from scratch."""
    return PROBE if _current(project) is not None else SCRATCH


def pinned_features(project: Project, pins: Mapping[str, str]) -> FeatureRun:
    """The features that a job of probes was queued with."""
    for run in feature_runs(project):
        if run.artifact.hash == pins.get(FEATURES):
            return run
    raise MissingStepError("The features that these probes were queued with are gone. Start a new run.")


def probe_on(features: FeatureRun) -> ProbeSettings:
    return ProbeSettings(encoder=features.encoder, features=features.artifact.hash)


def _current(project: Project) -> FeatureRun | None:
    try:
        return latest_features(project)
    except MissingStepError:
        return None
