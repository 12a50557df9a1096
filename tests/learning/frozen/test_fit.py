"""The frozen start from features and labels to answers, folds and quality."""

import numpy as np
import pytest

from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.learning.frozen import FrozenSettings, Views, fit_frozen
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.progress import Collected, Stopped
from semiprune_core.records import UNLABELED
from tests.learning.frozen.clouds import make_clouds, some_labels

QUICK = FrozenSettings(n_folds=4, penalties=(1e-2, 1e-3), n_steps=20, batch_size=16)


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(300, noise=1.2)


@pytest.mark.parametrize("head", ["combined", "logistic", "propagation", "ssl"])
def test_every_head_answers_for_all_images_and_twice_the_same(clouds, head):
    x, truth = clouds
    labels = some_labels(truth, 60)
    results = [fit_frozen(x, labels, settings=QUICK.replace(head=head), seed=3) for _ in range(2)]
    first, second = results
    assert first.probs.shape == (300, 4)
    assert np.allclose(first.probs.sum(1), 1)
    assert (first.labels[labels != UNLABELED] == labels[labels != UNLABELED]).all()
    assert (first.labels == truth).mean() > 0.8
    assert first.probs.tobytes() == second.probs.tobytes()
    assert first.out_of_fold.probs.tobytes() == second.out_of_fold.probs.tobytes()


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_every_algorithm_of_the_registry_trains_a_head(clouds, algorithm):
    x, truth = clouds
    rng = np.random.default_rng(0)
    strong = np.maximum(x + 0.5 * rng.normal(size=(2, *x.shape)), 0).astype(np.float32)
    settings = QUICK.replace(head="ssl", algorithm=algorithm)
    result = fit_frozen(x, some_labels(truth, 60), settings=settings, views=Views(strong=strong))
    assert (result.labels == truth).mean() > 0.8


def test_the_semi_supervised_head_uses_unlabeled_images_from_the_first_step(clouds, monkeypatch):
    x, truth = clouds
    seen = []
    algorithm = ALGORITHMS["fixmatch"]
    targets = algorithm.targets

    def watched(self, probs, idx, state, *, done):
        seen.append(bool((probs.max(-1).values >= 0.95).any()))
        return targets(self, probs, idx, state, done=done)

    monkeypatch.setattr(algorithm, "targets", watched)
    fit_frozen(x, some_labels(truth, 60), settings=QUICK.replace(head="ssl"))
    assert seen[0]


def test_answers_of_the_folds_are_there_for_every_label_and_by_models_that_had_not_seen_it(clouds):
    x, _ = clouds
    noise = np.random.default_rng(1).integers(0, 4, len(x))  # labels without sense: whoever saw them would know them
    labels = some_labels(noise, 200)
    result = fit_frozen(x, labels, settings=QUICK)
    out = result.out_of_fold
    assert sorted(out.positions) == np.flatnonzero(labels != UNLABELED).tolist()
    assert (out.labels == labels[out.positions]).all()
    assert out.right.mean() < 0.36
    assert result.quality.accuracy.n == 200
    assert result.quality.accuracy.low < 0.25 < result.quality.accuracy.high


def test_labels_added_on_purpose_train_and_do_not_measure(clouds):
    x, truth = clouds
    labels = some_labels(truth, 80)
    labeled = np.flatnonzero(labels != UNLABELED)
    measurable = np.ones(len(x), bool)
    measurable[labeled[:30]] = False
    result = fit_frozen(x, labels, measurable_mask=measurable, settings=QUICK)
    assert sorted(result.out_of_fold.positions) == labeled[30:].tolist()


def test_copies_of_one_image_are_never_on_both_sides(clouds):
    x, _ = clouds
    noise = np.random.default_rng(1).integers(0, 4, 100)
    features, classes = np.concatenate([x[:100], x[:100]]), np.concatenate([noise, noise])
    groups = np.concatenate([np.arange(100), np.arange(100)])
    split = fit_frozen(features, classes, settings=QUICK)
    together = fit_frozen(features, classes, groups=groups, settings=QUICK)
    assert split.out_of_fold.right.mean() > 0.6  # flattered by the copies
    assert together.out_of_fold.right.mean() < 0.4
    folds = together.out_of_fold.folds[np.argsort(together.out_of_fold.positions)]
    assert (folds[:100] == folds[100:]).all()


def test_a_class_without_a_label_stops_nothing(clouds):
    x, truth = clouds
    labels = some_labels(truth, 80)
    labels[labels == 2] = UNLABELED
    result = fit_frozen(x, labels, n_classes=5, settings=QUICK)
    assert result.missing.tolist() == [2, 4]
    assert not set(result.labels) & {2, 4}
    assert (result.probs[:, [2, 4]] == 0).all()


@pytest.mark.parametrize("head", ["combined", "ssl"])
def test_a_class_with_one_label_is_learned_all_the_same(clouds, head):
    x, truth = clouds
    labels = some_labels(truth, 80)
    labels[np.flatnonzero(labels == 1)[1:]] = UNLABELED
    result = fit_frozen(x, labels, settings=QUICK.replace(head=head))
    assert len(result.missing) == 0
    assert np.isfinite(result.out_of_fold.probs).all()


def test_with_very_few_labels_there_is_an_answer_and_no_number():
    x, truth = make_clouds(40, noise=0.3)
    labels = np.full(40, UNLABELED)
    labels[[np.flatnonzero(truth == label)[0] for label in range(4)]] = range(4)
    result = fit_frozen(x, labels, settings=QUICK)
    assert result.quality is None and result.balanced is None
    assert (result.labels == truth).mean() > 0.8


def test_one_class_is_refused_in_words(clouds):
    x, truth = clouds
    labels = np.where(some_labels(truth, 50) == 1, 1, UNLABELED)
    with pytest.raises(InvalidDataError, match="at least two classes"):
        fit_frozen(x, labels)


def test_features_that_are_not_finite_are_refused(clouds):
    x, truth = clouds
    broken = x.copy()
    broken[5, 5] = np.nan
    with pytest.raises(InvalidDataError, match="not finite"):
        fit_frozen(broken, some_labels(truth, 50))


def test_an_unknown_head_is_refused():
    with pytest.raises(InvalidSettingError):
        FrozenSettings(head="forest")


def test_a_stop_is_honoured_between_folds(clouds):
    x, truth = clouds
    with pytest.raises(Stopped):
        fit_frozen(x, some_labels(truth, 60), settings=QUICK, progress=Collected(stop_after=1))


def test_parts_are_timed(clouds):
    x, truth = clouds
    result = fit_frozen(x, some_labels(truth, 60), settings=QUICK)
    assert {"prepare", "span", "cross-fit", "fit"} == set(result.seconds)
    assert all(seconds >= 0 for seconds in result.seconds.values())


def test_images_that_differ_from_their_like_by_being_mirrored_are_told_apart():
    """The mean of an arrow to the left and its mirrored image is that of an arrow to the right."""
    x, truth = make_clouds(300, n_classes=2, noise=0.5)
    turned = np.array([x[truth == 1].mean(0) if label == 0 else x[truth == 0].mean(0) for label in truth])
    noise = np.random.default_rng(1).normal(scale=0.5, size=x.shape)
    mirrored = (turned + noise).astype(np.float32)
    result = fit_frozen(x, some_labels(truth, 60), views=Views(weak=mirrored[None]), settings=QUICK)
    assert (result.labels == truth).mean() > 0.95
