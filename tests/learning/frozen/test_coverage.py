"""The 95% interval of the cross-fitted accuracy holds the truth, on real images of the demo pool.

Their pixels in main directions stand for features, so that no encoder is needed. The count is reduced;
SEMIPRUNE_FULL=1 draws 2,000 times, and 600 labels too.
"""

import numpy as np
import pytest

from semiprune_core.importing.sources.demo import DEMO
from semiprune_core.learning.frozen import FrozenSettings, prepare_pool
from semiprune_core.learning.frozen.coverage import simulate_coverage
from semiprune_core.learning.frozen.prepare import main_directions
from tests.support.effort import FULL

SETTINGS = FrozenSettings(smooth=False, penalties=(1e-2, 1e-3))


@pytest.fixture(scope="module")
def demo():
    with np.load(DEMO) as file:
        pool = np.flatnonzero(file["split"] == "pool")[: 4000 if FULL else 2000]
        pixels, truth = file["images"][pool].reshape(len(pool), -1).astype(np.float32), file["labels"][pool]
    features = main_directions(pixels - pixels.mean(0), 32)
    return prepare_pool(features, SETTINGS).with_kernel(SETTINGS.alpha), truth.astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("n_labels, n_draws", [(60, 2000), (150, 2000), (600, 2000)] if FULL else [(60, 30), (150, 15)])
def test_the_interval_holds_the_truth_and_is_not_much_wider_than_wilsons(demo, n_labels, n_draws):
    found = simulate_coverage(*demo, n_labels, range(n_draws), SETTINGS)
    assert found.covered >= 0.93
    assert found.wider <= 1.25


def test_the_part_of_the_folds_is_told_apart_from_that_of_the_samples(demo):
    found = simulate_coverage(*demo, 60, range(3), SETTINGS)
    assert found.n_draws == 3 and np.isfinite(found.shared) and found.shared > -1
