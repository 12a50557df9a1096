"""Features without an encoder, as an artifact that looks like the real one."""

import numpy as np

from semiprune_core.results.features import KIND, POOL_FILE, TEST_FILE, FeatureRun, segments_of


def add_features(project, features=None, *, encoder="efficientnet_lite0"):
    """Write ``features`` (N, D) of the pool as an encoder's job would; where None, the mean of each row of the images,
    of the test images too."""
    settings = {
        "encoder": encoder,
        "weights_hash": "0" * 64,
        "size": 28,
        "fit": "crop",
        "mean": [127.0],
        "std": [128.0],
    }
    tests = project.test_set()
    rows = {POOL_FILE: row_means(project.pool()) if features is None else np.asarray(features, np.float32)}
    if features is None and len(tests):
        rows[TEST_FILE] = row_means(tests)
    with project.draft(KIND, settings=settings, inputs={"pool": project.everything().hash}) as draft:
        for name, values in rows.items():
            np.save(draft.path(name), values, allow_pickle=False)
        draft.facts.update(
            n_images=len(rows[POOL_FILE]),
            n_test=len(rows.get(TEST_FILE, ())),
            n_dimensions=rows[POOL_FILE].shape[1],
            segments=list(segments_of(project)),
            n_problems=0,
            problems=[],
            engine="none",
        )
    return FeatureRun(project.latest(KIND))


def row_means(part):
    """(N, H) the mean of each row of the images: what tells bars apart."""
    return part.images().astype(np.float32).mean(axis=(2, 3)) / 255


def clouds_of(labels, *, n_dimensions=24, noise=1.2, seed=0):
    """(N, D) features around one direction for each class of ``labels`` (N,)."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(int(labels.max()) + 1, n_dimensions))
    return np.maximum(centres[labels] + noise * rng.normal(size=(len(labels), n_dimensions)), 0).astype(np.float32)
