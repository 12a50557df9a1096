"""Features without an encoder: the rows of bars, averaged, as an artifact that looks like the real one."""

import numpy as np

from semiprune_core.results.features import KIND, POOL_FILE, TEST_FILE, FeatureRun, segments_of


def add_features(project, encoder="efficientnet_lite0"):
    """The mean of each row of the images, in the place of an encoder's answer."""
    settings = {
        "encoder": encoder,
        "weights_hash": "0" * 64,
        "size": 28,
        "fit": "crop",
        "mean": [127.0],
        "std": [128.0],
    }
    with project.draft(KIND, settings=settings, inputs={"pool": project.everything().hash}) as draft:
        counts = {}
        for part, name in ((project.pool(), POOL_FILE), (project.test_set(), TEST_FILE)):
            counts[name] = len(part)
            if len(part):
                rows = part.images().astype(np.float32).mean(axis=(2, 3)) / 255
                np.save(draft.path(name), rows, allow_pickle=False)
        draft.facts.update(
            n_images=counts[POOL_FILE],
            n_test=counts[TEST_FILE],
            n_dimensions=rows.shape[1] if len(part) else 28,
            segments=list(segments_of(project)),
            n_problems=0,
            problems=[],
            engine="none",
        )
    return FeatureRun(project.latest(KIND))
