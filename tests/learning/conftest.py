"""One thread and a small pool for every test here."""

import numpy as np
import pytest
import torch

from tests.learning.pools import make_pool


@pytest.fixture(autouse=True)
def one_thread():
    """Bit-identical results need a fixed thread count, and the machine may be busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_pool():
    """60 images, 3 classes, 30 of them labeled: images, labels with -1, truth."""
    images, truth = make_pool()
    labels = np.where(np.arange(len(truth)) < 30, truth, -1)
    return images, labels, truth
