"""Class probabilities as they are kept: half precision, and the most likely classes where there are many."""

import numpy as np
import pytest

from semiprune_core.records import MOST_PROBS, ClassProbs


@pytest.mark.parametrize("n_classes", [3, MOST_PROBS, MOST_PROBS + 1, 400])
def test_they_come_back_with_rows_that_sum_to_one(n_classes):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(n_classes, 0.05), 50).astype(np.float32)
    kept = ClassProbs.room(50, n_classes)
    kept.put(slice(0, 30), probs[:30])
    kept.put(slice(30, 50), probs[30:])
    back = kept.dense(np.arange(50), n_classes)
    assert kept.values.shape == (50, min(n_classes, MOST_PROBS)) and kept.values.dtype == np.float16
    assert back.shape == probs.shape and np.allclose(back.sum(1), 1, atol=1e-5)
    assert np.abs(back - probs).max() < 1e-3
    assert (back.argmax(1) == kept.dense(np.arange(50), n_classes).argmax(1)).all()


@pytest.mark.parametrize("n_classes", [3, MOST_PROBS + 20])
def test_a_net_that_knows_some_classes_alone_gives_the_others_next_to_nothing(n_classes):
    probs = np.full((2, n_classes), 1 / n_classes, np.float32)
    labeled = np.arange(n_classes) * 2
    back = ClassProbs.of(probs).renumbered(labeled).dense(np.array([1]), 2 * n_classes)
    assert back.shape == (1, 2 * n_classes) and np.allclose(back.sum(), 1, atol=1e-5)
    if n_classes == 3:
        assert back[0, 1::2].sum() == 0
