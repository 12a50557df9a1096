"""The pre-flight estimate counts the steps that will be made."""

import pytest

from semiprune_core.learning.estimate import estimate_ssl, estimate_supervised
from tests.support.pools import ssl_settings, supervised_settings


@pytest.mark.parametrize(
    "changes, steps", [({}, 12), ({"refit": True}, 24), ({"cross_fit": 3}, 36), ({"warm_up": 0.5}, 12)]
)
def test_ssl_estimates_scale_one_step_to_all_rounds(small_pool, changes, steps):
    images, labels, _ = small_pool
    found = estimate_ssl(images, labels, n_classes=3, settings=ssl_settings(**changes), timed_steps=1)
    assert found.n_steps == steps and found.seconds == pytest.approx(steps * found.step_seconds)
    assert found.images_per_s == pytest.approx(24 / found.step_seconds) and found.memory_mb > 0


def test_supervised_estimates_count_batches(small_pool):
    images, _, truth = small_pool
    found = estimate_supervised(images, truth, n_classes=3, settings=supervised_settings(), timed_steps=1)
    assert found.n_steps == 3 * 4 and found.images_per_s == pytest.approx(15 / found.step_seconds)
