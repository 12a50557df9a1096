"""Doubt in order, answers in the store, and what they make out of date."""

import numpy as np
import pytest

from semiprune_core import refresh
from semiprune_core.errors import InvalidDataError, MissingStepError, UnknownNameError
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.maps.map_view import columns_of
from semiprune_core.refresh import freshness
from semiprune_core.results import latest_pseudo
from semiprune_core.server.queues import QUEUES
from semiprune_core.server.review_queue import doubtful
from semiprune_core.trust import review
from tests.support.pseudo_runs import fake_pseudo, label_share


@pytest.fixture
def project(tmp_path, import_into):
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    pixels = rng.integers(0, 60, (200, 28, 28), dtype=np.uint8) + (labels * 90).astype(np.uint8)[:, None, None]
    np.savez(tmp_path / "pool.npz", images=pixels, labels=np.array(["ant", "bee"])[labels])
    made, _ = import_into(SourceSpec("npz", str(tmp_path / "pool.npz")))
    label_share(made, 0.2)
    fake_pseudo(made)
    return made


def test_ranks_are_shares_and_ties_are_equal():
    assert review.ranks(np.array([3.0, 1.0, 2.0])).tolist() == [1.0, 0.0, 0.5]
    assert review.ranks(np.array([5.0, 5.0])).tolist() == [0.5, 0.5]
    assert review.ranks(np.array([1.0])).tolist() == [0.0]


def test_the_margin_is_small_between_two_classes():
    features = np.array([[0.0, 0], [0.2, 0], [4, 0], [4.2, 0], [2.1, 0]])
    margin = review.feature_margin(features, np.array([0, 0, 1, 1, 0]), 3)
    assert margin.argmin() == 4 and (margin[:4] > 0.5).all()
    assert review.feature_margin(features, np.zeros(5, int), 2).tolist() == [0] * 5


def test_the_margin_equals_its_slow_twin():
    rng = np.random.default_rng(1)
    features, labels = rng.normal(size=(80, 5)), rng.integers(0, 4, 80)
    means = np.array([features[labels == c].mean(0) for c in range(4)])
    for i, found in enumerate(review.feature_margin(features, labels, 4)):
        distance = [np.linalg.norm(features[i] - mean) for mean in means]
        own = distance.pop(labels[i])
        assert found == pytest.approx((min(distance) - own) / (min(distance) + own))


def test_the_margin_is_the_models_own_where_it_was_kept(project):
    older = latest_pseudo(project)
    instead = review.feature_margin(older.features(), np.asarray(older.predicted()), 2)
    assert older.margin() is None and np.array_equal(review.margins(older), instead)
    kept = np.random.default_rng(3).random(200).astype(np.float32)
    run = fake_pseudo(project, margin=kept)
    assert np.array_equal(review.margins(run), kept)
    queue = review.review_queue(project, project.pool(), run, open_store(project), use=["margin"])
    assert (np.diff(kept[queue.order]) >= 0).all()  # the smallest margin first
    column = columns_of(project, project.pool())["margin"]
    assert np.allclose(column.values, kept) and column.title == "Margin"


def test_doubt_orders_by_all_signals_or_by_one():
    found = {"confidence": np.array([0.0, 1.0, 0.5]), "aum": np.array([1.0, 0.0, 0.9])}
    assert review.doubt(found).order.tolist() == [2, 0, 1]
    assert review.doubt(found, use=["confidence"]).order.tolist() == [1, 2, 0]
    assert review.doubt(found, leave_out=np.array([2])).order.tolist() == [0, 1]
    with pytest.raises(InvalidDataError, match="Choose at least one signal"):
        review.doubt(found, use=[])


def test_the_queue_holds_unlabeled_images_with_suggestions(project):
    store, pool = open_store(project), project.pool()
    cards = doubtful(store, pool, "bob", 30)
    run = latest_pseudo(project)
    positions = pool.positions(cards.ids)
    assert cards.round == "review" and len(cards.ids) == 30
    assert not run.labels().human_mask[positions].any()
    names = {one.class_id: one.name for one in store.classes.all()}
    for image_id, position in zip(cards.ids, positions, strict=True):
        class_id, confidence = cards.suggestions[int(image_id)]
        assert names[class_id] == run.class_names[run.predicted()[position]]
        assert confidence == pytest.approx(float(run.confidence()[position]))
    review.label_images(store, cards.ids[:5].tolist(), "bee", annotator="bob")
    assert doubtful(store, pool, "bob", 25).ids.tolist() == cards.ids[5:].tolist()


def test_signals_that_do_not_exist_yet_are_refused_in_words(project):
    store, pool = open_store(project), project.pool()
    with pytest.raises(MissingStepError, match="Runs disagree"):
        QUEUES["doubt_disagreement"](store, pool, "bob", 5)
    fake_pseudo(project, seed=4)
    assert len(QUEUES["doubt_disagreement"](store, pool, "bob", 5).ids) == 5


def test_corrections_are_human_labels_but_never_uniform_ones(project):
    store, pool = open_store(project), project.pool()
    image = int(pool.ids[np.flatnonzero(~latest_pseudo(project).labels().human_mask)[0]])
    before = store.uniform_labels().hash
    acks = review.label_images(store, [image], "bee", annotator="bob")
    assert [ack.status for ack in acks] == ["saved"]
    snapshot = store.snapshot()
    place = snapshot.ids.tolist().index(image)
    assert snapshot.class_names[snapshot.labels[place]] == "bee" and not snapshot.uniform_mask[place]
    assert store.uniform_labels().hash == before
    with pytest.raises(UnknownNameError, match="no class 'cow'"):
        review.label_images(store, [image], "cow", annotator="bob")


def test_a_correction_makes_what_follows_out_of_date(project):
    store, pool, run = open_store(project), project.pool(), latest_pseudo(project)
    with project.draft("trajectory", settings={}, inputs={"pool": pool.hash, "pseudo": run.artifact.hash}):
        pass
    assert freshness.out_of_date(project) == []
    review.label_images(store, [int(pool.ids[7])], "bee", annotator="bob")
    stale = freshness.out_of_date(project)
    assert [one.artifact.kind for one in stale] == ["pseudo", "trajectory"]
    assert "labels have changed" in stale[0].reason and "pseudo-0001" in stale[1].reason
    with pytest.raises(MissingStepError, match="its job was deleted"):
        refresh.bring_up_to_date(project)
    newer = fake_pseudo(project, seed=1)
    assert [one.artifact.kind for one in freshness.out_of_date(project)] == ["trajectory"]
    assert newer.artifact.id in freshness.out_of_date(project)[0].reason


def test_images_added_to_the_next_draw_wait_on_the_label_page(project):
    store, pool = open_store(project), project.pool()
    free = np.flatnonzero(~latest_pseudo(project).labels().human_mask)[:3]
    drawing = review.add_to_next_draw(store, pool, free, annotator="bob")
    assert sorted(drawing.ids.tolist()) == sorted(pool.ids[free].tolist()) and not drawing.uniform
    with pytest.raises(InvalidDataError, match="drawn already"):
        review.add_to_next_draw(store, pool, free, annotator="bob")


def test_a_slip_of_the_hand_over_a_million_images_is_refused(project):
    with pytest.raises(InvalidDataError, match="At most 20,000 images"):
        review.flag_images(open_store(project), range(20_001), annotator="bob")


def test_flags_are_kept(project):
    store, pool = open_store(project), project.pool()
    review.flag_images(store, [int(pool.ids[3])], annotator="bob")
    assert store.flagged_ids().tolist() == [int(pool.ids[3])]
