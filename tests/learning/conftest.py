"""A small pool for every test here."""

import numpy as np
import pytest

from tests.support.pools import make_pool


@pytest.fixture
def small_pool():
    """60 images, 3 classes, 30 of them labeled: images, labels with -1, truth."""
    images, truth = make_pool()
    labels = np.where(np.arange(len(truth)) < 30, truth, -1)
    return images, labels, truth
