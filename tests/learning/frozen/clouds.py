"""Features that look like an encoder's: one direction per class, noise around it, nothing below zero."""

import numpy as np

from semiprune_core.records import UNLABELED


def make_clouds(n=300, n_classes=4, n_dims=40, noise=1.0, seed=0, shares=None):
    """Features (n, n_dims) float32 and true classes (n,)."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n, p=shares)
    centres = rng.normal(size=(n_classes, n_dims))
    return np.maximum(centres[truth] + noise * rng.normal(size=(n, n_dims)), 0).astype(np.float32), truth


def some_labels(truth, n_labels, seed=0):
    """(N,) the truth for ``n_labels`` images drawn at random, unlabeled elsewhere."""
    labels = np.full(len(truth), UNLABELED)
    drawn = np.random.default_rng(seed).permutation(len(truth))[:n_labels]
    labels[drawn] = truth[drawn]
    return labels
