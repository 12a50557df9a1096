"""Labels that were added on purpose teach; how common a class is, only uniformly drawn ones say."""

import numpy as np
import pytest
import torch

from semiprune_core.learning import sampling, ssl_run
from semiprune_core.learning.frozen.fit import fit_frozen
from semiprune_core.learning.frozen.settings import FrozenSettings
from semiprune_core.learning.pretrained import first_head
from semiprune_core.learning.shares import drawn_counts, image_weights
from semiprune_core.learning.ssl_run import UNKNOWN_SHARES, train_ssl
from semiprune_core.progress import Collected
from tests.support.pools import NAMES, make_pool, ssl_settings

DRAWN, ADDED = np.repeat([0, 1, 2], [20, 10, 10]), np.repeat([1], [60])
LABELS = np.concatenate([DRAWN, ADDED])
UNIFORM = np.arange(100) < 40


def test_only_uniformly_drawn_labels_count():
    assert drawn_counts(LABELS, UNIFORM, 3).tolist() == [20, 10, 10]
    assert drawn_counts(LABELS, None, 3).tolist() == [20, 70, 10]
    assert drawn_counts(LABELS, np.ones(100, bool), 3).tolist() == [20, 70, 10]


def test_a_class_that_was_never_drawn_is_rare_but_there():
    assert drawn_counts(np.append(LABELS, 3), np.append(UNIFORM, False), 5).tolist() == [20, 10, 10, 0.5, 0]


def test_too_few_drawn_labels_say_nothing():
    assert drawn_counts(LABELS, np.arange(100) < 19, 3) is None
    assert image_weights(LABELS, None) is None


def test_weights_give_every_class_its_drawn_share():
    weights = image_weights(LABELS, drawn_counts(LABELS, UNIFORM, 3))
    assert np.bincount(LABELS, weights).tolist() == pytest.approx([20, 10, 10])
    assert image_weights(DRAWN, drawn_counts(DRAWN, None, 3)) is None


def test_batches_show_a_class_as_often_as_it_was_drawn_and_all_its_images():
    order = sampling.LabeledOrder(LABELS, drawn_counts(LABELS, UNIFORM, 3), seed=0)
    row = order.take(0, 400)
    for turn in row.reshape(10, 40):
        assert np.bincount(LABELS[turn]).tolist() == [20, 10, 10]
    of_class = row[LABELS[row] == 1]
    assert sorted(of_class[:70]) == np.flatnonzero(LABELS == 1).tolist()  # all of it before one comes twice
    assert np.array_equal(order.take(37, 50), row[37:87])
    assert not np.array_equal(np.sort(row[:40]), row[:40])


def test_without_added_labels_a_turn_is_a_permutation():
    row = sampling.LabeledOrder(DRAWN, drawn_counts(DRAWN, None, 3), seed=0).take(0, 80)
    assert sorted(row[:40]) == sorted(row[40:]) == list(range(40))
    unknown = sampling.LabeledOrder(LABELS, None, seed=0).take(0, 100)
    assert sorted(unknown) == list(range(100))


@pytest.fixture
def added():
    """60 images with 40 labels, 24 of them drawn: the others are all of class 0."""
    images, truth = make_pool()
    drawn = np.arange(24)
    more = np.setdiff1d(np.flatnonzero(truth == 0), drawn)
    labels = np.full(60, -1)
    labels[drawn], labels[more] = truth[drawn], 0
    return images, labels, np.isin(np.arange(60), drawn)


def test_alignment_and_batches_of_a_run_go_by_the_drawn_labels(added, monkeypatch):
    images, labels, uniform = added
    runs = []

    class Watched(ssl_run.SSLRun):
        def train(self):
            runs.append(self)
            return super().train()

    monkeypatch.setattr(ssl_run, "SSLRun", Watched)
    settings = ssl_settings(epochs=1, steps_per_epoch=1, distribution_alignment="labels", held_out=0.0)
    train_ssl(
        images, labels, class_names=NAMES, settings=settings, seed=0, progress=Collected(), measurable_mask=uniform
    )
    (run,) = runs
    drawn = np.bincount(labels[uniform], minlength=3)
    assert run.state["align_wanted"].tolist() == pytest.approx((drawn / 24).tolist())
    assert np.bincount(labels[run.train_idx][run.order.take(0, 24)], minlength=3).tolist() == drawn.tolist()


def test_a_run_without_drawn_labels_says_that_it_aligns_nothing(added):
    images, labels, uniform = added
    settings = ssl_settings(epochs=1, steps_per_epoch=1, distribution_alignment="labels", held_out=0.0)
    few = uniform & (np.arange(60) < 5)
    known = {"class_names": NAMES, "seed": 0, "progress": Collected(), "measurable_mask": few}
    assert train_ssl(images, labels, settings=settings, **known).notes == (UNKNOWN_SHARES,)
    assert not train_ssl(images, labels, settings=settings.replace(distribution_alignment="none"), **known).notes


@pytest.mark.parametrize("head", ["logistic", "ssl"])
def test_added_labels_do_not_pull_a_head_towards_their_class(head):
    """Two classes that features cannot tell apart at all: what a head answers is how common it takes them to be."""
    rows = np.random.default_rng(0).standard_normal((400, 3)).astype(np.float32)
    labels = np.full(400, -1)
    labels[:60], labels[60:200] = np.arange(60) % 2, 1  # the last 140 were added on purpose
    settings = FrozenSettings(head=head, n_steps=60, n_folds=2, smooth=False)
    uniform = np.arange(400) < 60
    known, blind = (
        fit_frozen(rows, labels, settings=settings, measurable_mask=mask).probs[:, 1].mean() for mask in (uniform, None)
    )
    assert known == pytest.approx(0.5, abs=0.1) and blind > 0.75


def test_the_first_head_of_a_pretrained_net_goes_by_the_drawn_labels():
    rows = np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32)
    weights = image_weights(LABELS, drawn_counts(LABELS, UNIFORM, 3))
    logits = torch.from_numpy(first_head(rows, LABELS, 3, weights).logits(rows))
    assert logits.softmax(-1).mean(0).tolist() == pytest.approx([0.5, 0.25, 0.25], abs=0.03)
