"""A trained model's traces, without training one."""

import numpy as np

from semiprune_core.results import write_pseudo


def give_model(project, *, pool_hash, features=None):
    """A finished SSL run whose confidence falls from the first image of the pool to the last."""
    n = len(project.pool())
    with project.draft("pseudo", settings={}, inputs={"pool": pool_hash}, seed=0) as draft:
        write_pseudo(
            draft,
            labels=np.zeros(n, np.int64),
            predicted=np.zeros(n, np.int64),
            confidence=np.linspace(1, 0.5, n),
            human_mask=np.zeros(n, bool),
            held_out_mask=np.zeros(n, bool),
            features=np.arange(n * 2.0).reshape(n, 2) if features is None else features,
            class_names=("cat", "dog"),
            quality=None,
            history=[],
        )
