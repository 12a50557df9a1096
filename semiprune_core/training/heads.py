"""Heads on a project's features: what depends on the images alone, made once, and the fit on its labels.

A training run and the line that is shown while people label call the same two functions with the same seed, so that
equal labels give equal numbers. Nothing here loads torch.
"""

from __future__ import annotations

from dataclasses import dataclass

from semiprune_core.learning.frozen import (
    FrozenPool,
    FrozenResult,
    FrozenSettings,
    Views,
    fit_pool,
    near_duplicates,
    prepare_pool,
)
from semiprune_core.progress import Progress
from semiprune_core.records import IntArray
from semiprune_core.results.features import FeatureRun
from semiprune_core.training.data import PoolLabels


@dataclass(frozen=True, eq=False)
class PreparedFeatures:
    """Features made ready for heads, and ``groups`` (N,) of near-duplicates. ``hash`` names what they come from."""

    pool: FrozenPool
    groups: IntArray
    hash: str


def prepare_features(
    run: FeatureRun, settings: FrozenSettings, *, progress: Progress | None = None
) -> PreparedFeatures:
    """What heads with these ``settings`` are fitted on, from a project's features, mirrored images too."""
    groups = near_duplicates(run.features(), progress=progress)
    parts = run.parts()
    pool = prepare_pool(
        [own for own, _ in parts],
        settings,
        views=[Views() if mirrored is None else Views(weak=mirrored[None]) for _, mirrored in parts],
        progress=progress,
    )
    return PreparedFeatures(pool, groups, run.artifact.hash)


def fit_head(
    prepared: PreparedFeatures,
    labels: PoolLabels,
    n_classes: int,
    settings: FrozenSettings,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> FrozenResult:
    """A head fitted on ``labels`` and cross-fitted on those that were drawn uniformly."""
    return fit_pool(
        prepared.pool,
        labels.learned,
        n_classes=n_classes,
        measurable_mask=labels.measurable_mask,
        groups=prepared.groups,
        settings=settings,
        seed=seed,
        progress=progress,
    )
