"""ZCore: coverage and redundancy by their definition."""

import numpy as np
import pytest
from scipy import stats

from semiprune_core.baselines import zcore
from semiprune_core.baselines.features import KEPT_AS
from semiprune_core.baselines.settings import ZCoreSettings
from semiprune_core.errors import InvalidSettingError
from semiprune_core.progress import Collected, Stopped


def slow_twin(values, dims, points, *, n_redundant, exponent, start):
    """Sample by sample, as the paper writes it."""
    total = start.copy()
    for chosen, point in zip(dims, points):
        sub = values[:, chosen].astype(np.float64)
        winner = np.abs(sub - point).sum(1).argmin()
        total[winner] += 1
        apart = np.abs(sub - sub[winner]).sum(1)
        others = [i for i in np.argsort(apart, kind="stable") if i != winner]
        if apart[others[0]] == 0:
            total[others[0]] -= 1
            continue
        others = others[:n_redundant]
        shares = [1 / apart[i] ** exponent for i in others]
        for i, share in zip(others, shares):
            total[i] -= share / sum(shares)
    return (total - total.min()) / (total.max() - total.min())


@pytest.mark.parametrize("subspace, n_redundant, exponent", [(1, 3, 1.0), (2, 1000, 4.0), (3, 5, 2.0)])
def test_scores_equal_the_slow_twin(subspace, n_redundant, exponent):
    values = np.random.default_rng(1).normal(size=(40, 5)).astype(np.float32)
    settings = ZCoreSettings(n_samples=300, subspace=subspace, n_redundant=n_redundant, exponent=exponent)
    found = zcore.zcore_scores(values, settings=settings, rng=np.random.default_rng(7))
    rng = np.random.default_rng(7)
    start = rng.random(40)
    dims, points = zcore.draw_points(np.ascontiguousarray(values.T), 300, subspace, rng)
    wanted = slow_twin(values, dims, points, n_redundant=n_redundant, exponent=exponent, start=start)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert (found.min(), found.max()) == (0.0, 1.0)


def test_the_penalty_goes_to_the_neighbours_by_distance_and_all_of_it_to_a_copy():
    sub = np.array([[0.0, 1.0, 2.0, 10.0]])
    others, shares = zcore.redundancy(sub, 0, 2, 1.0)
    assert dict(zip(others.tolist(), shares.round(6).tolist())) == {1: pytest.approx(2 / 3), 2: pytest.approx(1 / 3)}
    others, shares = zcore.redundancy(np.array([[0.0, 5.0, 0.0]]), 0, 2, 4.0)
    assert (others.tolist(), shares.tolist()) == ([2], [1.0])


def test_an_image_its_copy_and_a_lonely_one_have_known_scores():
    """At 0, 0 and 1 a point is nearer to 1 with chance 1/4. Per draw the first then gains 3/4 and loses 1/8 beside the
    lonely one, its copy loses 3/4 and 1/8, the lonely one gains 1/4: in [0, 1] these are 1, 0 and 3/4."""
    settings = ZCoreSettings(n_samples=40_000, subspace=1, random_start=False)
    found = zcore.zcore_scores(np.array([[0.0], [0.0], [1.0]]), settings=settings, rng=np.random.default_rng(0))
    assert found[:2].tolist() == [1.0, 0.0] and found[2] == pytest.approx(0.75, abs=0.01)


def test_points_follow_the_triangle_between_smallest_median_and_largest():
    column = np.array([[0.0, 0.0, 1.0, 1.0, 4.0], [3.0, 3.0, 3.0, 3.0, 3.0]], dtype=np.float32)
    _, points = zcore.draw_points(column[:1], 4000, 1, np.random.default_rng(0))
    assert stats.kstest(points[:, 0], stats.triang(c=0.25, loc=0, scale=4).cdf).pvalue > 0.001
    _, still = zcore.draw_points(column[1:], 50, 1, np.random.default_rng(0))
    assert (still == 3).all()


@pytest.mark.parametrize("n_dimensions, subspace", [(20, 3), (4, 3), (3, 3)])
def test_subspaces_have_different_dimensions_and_all_are_drawn(n_dimensions, subspace):
    columns = np.random.default_rng(0).normal(size=(n_dimensions, 9)).astype(np.float32)
    dims, _ = zcore.draw_points(columns, 2000, subspace, np.random.default_rng(0))
    assert (np.diff(dims, axis=1) > 0).all()
    assert set(np.unique(dims)) == set(range(n_dimensions))


def test_the_number_of_samples_grows_with_the_pool_up_to_the_papers():
    assert zcore.n_samples_for(600, ZCoreSettings()) == 100_000
    assert zcore.n_samples_for(6_000, ZCoreSettings()) == 120_000
    assert zcore.n_samples_for(50_000, ZCoreSettings()) == 1_000_000
    assert zcore.n_samples_for(600, ZCoreSettings(n_samples=7)) == 7


def test_a_stop_is_honoured_and_too_wide_a_subspace_refused():
    values = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(Stopped):
        zcore.zcore_scores(
            values, settings=ZCoreSettings(), rng=np.random.default_rng(0), progress=Collected(0, [{"done": 0}])
        )
    with pytest.raises(InvalidSettingError, match="subspace must be"):
        zcore.zcore_scores(values, settings=ZCoreSettings(subspace=5), rng=np.random.default_rng(0))


def test_features_far_from_zero_score_as_they_are_kept():
    """Half precision would make neighbours of images that differ: a large offset leaves few bits for the rest."""
    values = (100 + 0.05 * np.random.default_rng(0).normal(size=(200, 16))).astype(np.float32)
    settings = ZCoreSettings(n_samples=400)

    def scores(features):
        return zcore.zcore_scores(features, settings=settings, rng=np.random.default_rng(0))

    kept = np.asarray(values, dtype=KEPT_AS)
    assert np.array_equal(scores(kept), scores(values))
    assert stats.spearmanr(scores(values.astype(np.float16)), scores(values)).statistic < 0.9
