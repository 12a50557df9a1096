"""Small pools and settings that learn something within a second."""

import numpy as np

from semiprune_core.learning.settings import SSLSettings, SupervisedSettings

NAMES = ("a", "b", "c")


def make_pool(n=60, n_classes=3, size=12, channels=1, seed=0):
    """Images of horizontal bars at a height that depends on the class, with noise; and their classes."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % n_classes)
    images = rng.integers(0, 60, (n, size, size, channels), dtype=np.uint8)
    height = size // n_classes
    for image, label in zip(images, truth):
        image[label * height : (label + 1) * height] += 150
    return images, truth.astype(np.int64)


def ssl_settings(**changes):
    values = {
        "epochs": 3,
        "steps_per_epoch": 4,
        "batch_size": 8,
        "unlabeled_ratio": 2,
        "ema_decay": 0.8,
        "precision": "fp32",
        "checkpoint_every": 3,
        "flip": False,
        "shift": 0.0,
        "strength": 0.3,
    }
    return SSLSettings(**{**values, **changes})


def supervised_settings(**changes):
    values = {"epochs": 3, "batch_size": 16, "lr": 0.05, "precision": "fp32", "checkpoint_every": 3, "flip": False}
    return SupervisedSettings(**{**values, **changes})
