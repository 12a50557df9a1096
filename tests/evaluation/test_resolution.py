"""The smallest lead that test images and seeds can show."""

import numpy as np
import pytest

from semiprune_core.errors import SemiPruneError
from semiprune_core.evaluation.data import DIFFER, resolution_words, smallest_difference


def test_more_images_and_more_seeds_show_smaller_leads():
    assert smallest_difference(59, 3) > smallest_difference(59, 10) > smallest_difference(600, 10)
    assert smallest_difference(400, 3) == pytest.approx(smallest_difference(100, 3) / 2)
    assert smallest_difference(1, 1) == 100.0


def test_it_is_seen_four_times_in_five():
    """Simulated: half of what two networks differ by belongs to the methods and images, half to the seeds."""
    n, seeds, rng = 500, 3, np.random.default_rng(0)
    lead = smallest_difference(n, seeds) / 100
    side = rng.choice([-1.0, 0.0, 1.0], p=[DIFFER / 4, 1 - DIFFER / 2, DIFFER / 4], size=(2000, n))
    own = rng.choice([-1.0, 0.0, 1.0], p=[DIFFER / 4, 1 - DIFFER / 2, DIFFER / 4], size=(seeds, 2000, n)).mean(0)
    found = lead + (side + own).mean(1)
    error = lead / (1.96 + 0.84)
    assert 0.75 < (found > 1.96 * error).mean() < 0.85


def test_the_sentence_counts():
    assert "59 test images and 3 seeds, leads below about 12 points" in resolution_words(59, 3)
    assert "1 test image and 1 seed" in resolution_words(1, 1)
    with pytest.raises(SemiPruneError):
        smallest_difference(0, 3)
