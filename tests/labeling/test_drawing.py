"""Drawing: uniform, extendable, deaf to the pool's growth, duplicates as one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.labeling.drawing import (
    chance_of_fewer,
    draw_count,
    draw_coverage,
    draw_uncertainty,
    draw_uniform,
    pixel_features,
    preview,
    ranks,
)


def _ids(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def _draw(store, ids, duplicate_of=None, **settings):
    duplicate_of = np.arange(len(ids)) if duplicate_of is None else duplicate_of
    return store.drawings.draw(pool_hash="h", ids=ids, duplicate_of=duplicate_of, annotator="ana", **settings)


@pytest.mark.parametrize("ids", [_ids(40), np.arange(40, dtype=np.uint64)], ids=["hashed", "counted"])
def test_every_image_and_every_pair_is_equally_likely(ids):
    n_seeds, count = 3000, 8
    single, pairs = np.zeros(40), np.zeros((40, 40))
    where = {int(image): place for place, image in enumerate(ids)}
    for seed in range(n_seeds):
        drawn = [where[int(image)] for image in draw_uniform(ids, count, seed=seed)]
        single[drawn] += 1
        pairs[np.ix_(drawn, drawn)] += 1
    # without replacement the counts vary less than a multinomial's: by (1 - count / 40) * 40 / 39
    expected = n_seeds * count / 40
    statistic = ((single - expected) ** 2 / expected).sum() / ((1 - count / 40) * 40 / 39)
    assert 0.001 < stats.chi2.sf(statistic, 39) < 0.999
    upper = pairs[np.triu_indices(40, 1)]
    expected = n_seeds * count * (count - 1) / (40 * 39)
    assert abs(upper.mean() - expected) < 1e-9 and np.abs(upper - expected).max() < 5 * np.sqrt(expected)


def test_the_order_is_uniform_too():
    ids = _ids(5, 1)
    first = [int(draw_uniform(ids, 5, seed=seed)[0]) for seed in range(2000)]
    counts = np.array([first.count(int(image)) for image in ids])
    assert stats.chisquare(counts).pvalue > 0.001


def test_seeds_differ_and_repeat():
    ids = _ids(1000)
    assert np.array_equal(draw_uniform(ids, 100, seed=3), draw_uniform(ids[::-1], 100, seed=3))
    assert not np.array_equal(draw_uniform(ids, 100, seed=3), draw_uniform(ids, 100, seed=4))
    assert abs(np.corrcoef(ranks(ids, 3).astype(float), ranks(ids, 4).astype(float))[0, 1]) < 0.1


def test_a_larger_fraction_keeps_the_earlier_draw_as_its_beginning(store):
    ids = _ids(500)
    small = _draw(store, ids, fraction=0.1, seed=5)
    large = _draw(store, ids, fraction=0.25, seed=5)
    assert len(small) == 50 and len(large) == 125 and large.extends == small.drawing_id
    assert np.array_equal(large.ids[:50], small.ids) and len(set(large.ids.tolist())) == 125
    assert np.array_equal(store.drawings.latest().ids, large.ids)
    assert np.array_equal(large.ids, draw_uniform(ids, 125, seed=5))  # as if drawn at once


def test_drawing_the_same_again_is_the_same_drawing(store):
    ids = _ids(100)
    assert _draw(store, ids, count=10).drawing_id == _draw(store, ids, fraction=0.1).drawing_id == 1
    assert _draw(store, ids, count=10, seed=1).drawing_id == 2
    assert [one.extends for one in store.drawings.all()] == [None, None]


def test_a_grown_pool_loses_no_drawn_image_and_stays_uniform(store):
    ids = _ids(1000)
    before = _draw(store, ids[:500], fraction=0.1)
    after = _draw(store, ids, fraction=0.1)
    assert np.array_equal(after.ids[:50], before.ids)
    # what is drawn is exactly the images up to some rank, whichever part of the pool they are from
    cut = ranks(after.ids, 0).max()
    assert set(after.ids.tolist()) == set(ids[ranks(ids, 0) <= cut].tolist()) and 100 <= len(after) <= 125


def test_copies_are_drawn_as_one(store):
    ids = _ids(9)
    duplicate_of = np.array([0, 1, 1, 3, 0, 5, 1, 7, 7])
    drawing = _draw(store, ids, duplicate_of, fraction=1.0)
    assert sorted(drawing.ids.tolist()) == sorted(ids[[0, 1, 3, 5, 7]].tolist()) and drawing.n_groups == 5


@pytest.mark.parametrize(
    "settings", [{}, {"fraction": 0.1, "count": 1}, {"fraction": 0}, {"fraction": 1.1}, {"count": 11}]
)
def test_impossible_amounts_are_refused(settings):
    with pytest.raises(InvalidSettingError):
        draw_count(10, **settings)


def test_a_tiny_pool_gives_at_least_one_image():
    assert draw_count(3, fraction=0.1) == 1 and draw_count(10, fraction=0.25) == 2
    with pytest.raises(MissingStepError):
        draw_count(0, fraction=0.1)


def test_overlap_marks_its_share_and_stays_when_extended(store):
    ids = _ids(4000)
    small = _draw(store, ids, fraction=0.25, overlap=0.2)
    large = _draw(store, ids, fraction=0.5, overlap=0.2)
    assert 0.15 < (small.needs == 2).mean() < 0.25 and np.array_equal(large.needs[:1000], small.needs)


def test_uncertainty_takes_the_doubtful_first_and_is_not_uniform(store, event):
    ids = _ids(20)
    confidence = np.linspace(1, 0, 20)
    _draw(store, ids, count=2)
    taken = set(store.drawings.latest().ids.tolist())
    drawing = _draw(store, ids, count=3, method="uncertainty", confidence=confidence)
    wanted = [int(image) for image in ids[::-1] if int(image) not in taken][:3]
    assert drawing.ids.tolist() == wanted and not drawing.uniform
    store.append([event("label", int(image), 0) for image in ids])
    assert set(store.uniform_labels().ids.tolist()) == taken


def _met_by_coverage(store, event, clock):
    """Uniform 40 with the first 10 labeled, coverage 30 all labeled, then the uniform drawing goes on to 200."""
    ids = _ids(300)
    first = _draw(store, ids, count=40).ids
    store.append([event("label", int(image), 0) for image in first[:10]])
    features = np.random.default_rng(0).normal(size=(300, 4))
    clock.now += 1
    covered = _draw(store, ids, count=30, method="coverage", features=features).ids
    store.append([event("label", int(image), 1) for image in covered])
    clock.now += 1
    return first, covered, _draw(store, ids, count=200).ids


def test_labels_of_another_drawing_count_as_uniform_only_in_their_turn(store, event, clock):
    first, covered, order = _met_by_coverage(store, event, clock)
    assert np.isin(covered, order).any()  # otherwise this shows nothing
    assert set(store.uniform_labels().ids.tolist()) == set(first[:10].tolist())
    assert store.snapshot().uniform_mask.sum() == 10
    clock.now += 1
    foreign = int(np.flatnonzero(np.isin(order, covered))[0])
    store.append([event("label", int(image), 0) for image in order[10:foreign]])
    after = foreign
    while order[after] in covered:
        after += 1
    assert set(store.uniform_labels().ids.tolist()) == set(order[:after].tolist())
    store.append([event("label", int(image), 0) for image in order[after + 1 :]])  # one is left out
    assert set(store.uniform_labels().ids.tolist()) == set(order[:after].tolist())
    store.append([event("skip", int(order[after]))])
    assert set(store.uniform_labels().ids.tolist()) == set(order.tolist()) - {int(order[after])}


def test_labels_from_before_the_drawing_count_in_their_turn(store, event, clock):
    ids = _ids(60)
    store.append([event("label", int(image), 0, source="import") for image in ids[:30]])
    clock.now += 1
    order = _draw(store, ids, count=20).ids
    known = np.isin(order, ids[:30])
    assert known.any() and not known.all()
    assert len(store.uniform_labels()) == int(np.flatnonzero(~known)[0])


def test_labels_from_before_the_drawing_are_told_by_their_order_and_not_by_the_clock(store, event, clock):
    ids = _ids(60)
    store.append([event("label", int(image), 0, source="import") for image in ids[:30]])
    clock.now -= 3600  # it was set back
    order = _draw(store, ids, count=20).ids
    known = np.isin(order, ids[:30])
    assert len(store.uniform_labels()) == int(np.flatnonzero(~known)[0])


def test_a_plain_uniform_drawing_counts_whatever_the_order(store, event, clock):
    ids = _ids(50)
    order = _draw(store, ids, count=10).ids
    clock.now += 1
    store.append([event("label", int(image), 0) for image in order[5:]])
    other = _draw(store, ids, count=10, seed=9).ids
    assert set(store.uniform_labels().ids.tolist()) == set(order[5:].tolist())
    store.append([event("label", int(other[-1]), 0)])
    assert set(store.uniform_labels().ids.tolist()) == set(order[5:].tolist()) | {int(other[-1])}


def test_coverage_reaches_every_cluster():
    rng = np.random.default_rng(0)
    centres = np.repeat(np.arange(5), [200, 200, 200, 5, 5])
    features = np.eye(5)[centres] * 20 + rng.normal(size=(610, 5))
    ids = _ids(610)
    drawn = draw_coverage(ids, 30, seed=0, features=features)
    assert len(set(drawn.tolist())) == 30 and set(centres[np.isin(ids, drawn)]) == set(range(5))
    assert np.array_equal(drawn, draw_coverage(ids, 30, seed=0, features=features))


def test_methods_say_what_they_miss(store):
    ids = _ids(10)
    with pytest.raises(MissingStepError, match="confidence"):
        _draw(store, ids, count=1, method="uncertainty")
    with pytest.raises(UnknownNameError, match="Did you mean 'coverage'"):
        _draw(store, ids, count=1, method="coverag")
    with pytest.raises(InvalidDataError, match="9 values for 10"):
        _draw(store, ids, count=1, method="uncertainty", confidence=np.ones(9))
    with pytest.raises(InvalidDataError, match="not finite"):
        draw_uncertainty(ids, 1, seed=0, confidence=np.full(10, np.nan))
    _draw(store, ids, count=10)
    with pytest.raises(InvalidSettingError, match="already been drawn"):
        _draw(store, ids, count=1, method="uncertainty", confidence=np.ones(10))
    assert len(store.drawings.all()) == 1


def test_pixel_features_tell_dark_from_bright():
    images = np.concatenate([np.zeros((8, 4, 4, 3), np.uint8), np.full((8, 4, 4, 3), 255, np.uint8)])
    features = pixel_features(images, n_components=4, sample=10)
    assert features.shape == (16, 4) and abs(features[0, 0] - features[-1, 0]) > 5 * np.ptp(features[:8, 0]) + 1


def test_a_preview_counts_reference_classes_as_the_drawing_will(store):
    ids = _ids(300)
    duplicate_of = np.arange(300)
    duplicate_of[200:] = np.arange(100)
    labels = np.where(np.arange(300) % 10 == 9, 2, np.arange(300) % 2)
    labels[200:] = labels[:100]
    seen = preview(ids, duplicate_of, fraction=0.2, seed=4, reference_labels=labels, class_names=("a", "b", "c"))
    drawn = _draw(store, ids, duplicate_of, fraction=0.2, seed=4).ids
    assert list(seen.per_class.values()) == np.bincount(labels[:200][np.isin(ids[:200], drawn)]).tolist()
    assert (seen.n_images, seen.n_groups, seen.rarest_class) == (40, 200, "c")


def test_a_preview_without_reference_gives_the_chance_of_too_few():
    ids = _ids(1000)
    seen = preview(ids, np.arange(1000), count=100, rarest_share=0.02)
    assert seen.per_class is None and seen.rarest_expected == pytest.approx(2.0)
    rng = np.random.default_rng(0)
    pool = np.arange(1000) < 20
    tries = [rng.permutation(pool)[:100].sum() < 4 for _ in range(4000)]
    assert seen.chance_of_few == pytest.approx(np.mean(tries), abs=0.03)
    assert chance_of_fewer(100, 0.0, 10) == 1.0 and chance_of_fewer(100, 1.0, 10) == 0.0
