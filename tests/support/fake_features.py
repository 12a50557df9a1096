"""Features of a project's images, without an encoder."""

import numpy as np

from semiprune_core.results.features import FeatureRun, latest_features, segments_of


def give_features(project, features) -> FeatureRun:
    """Write ``features`` (N, D) of the pool as the artifact that an encoder's job would have left."""
    with project.draft(
        "features", settings={"encoder": "efficientnet_lite0"}, inputs={"pool": project.pool().hash}
    ) as draft:
        np.save(draft.path("features.npy"), np.asarray(features, np.float32))
        draft.facts.update(
            n_images=len(features), n_dimensions=features.shape[1], segments=list(segments_of(project)), n_problems=0
        )
    return latest_features(project)


def clouds_of(labels, *, n_dimensions=24, noise=1.2, seed=0):
    """(N, D) features around one direction for each class of ``labels`` (N,)."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(int(labels.max()) + 1, n_dimensions))
    return np.maximum(centres[labels] + noise * rng.normal(size=(len(labels), n_dimensions)), 0).astype(np.float32)
