"""A trial: trained from scratch, tested once, the same again."""

import numpy as np
import pytest

from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.presets import SUPERVISED_PRESETS, supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.progress import Collected, Stopped
from semiprune_core.records import coreset_size
from semiprune_core.trials import Trial, TrialBook
from semiprune_core.trials import run as trial_run
from semiprune_core.trials.run import TrialResult, Workbench, train_trial
from tests.support.pools import make_pool, supervised_settings


def trial(ratio=0.5, seed=0, method="random", **knobs):
    return Trial(method=method, pruning_ratio=ratio, seed=seed, knobs=knobs)


@pytest.fixture
def bench(tmp_path):
    images, labels = make_pool(60)
    tests, truth = make_pool(30, seed=1)
    return Workbench(
        images,
        labels,
        tests,
        truth,
        n_classes=3,
        training=supervised_settings(epochs=2),
        book=TrialBook(tmp_path / "book.jsonl"),
        progress=Collected(),
        device="cpu",
        n_trials=3,
        total=2 * (30 + 30 + 6),
    )


@pytest.mark.parametrize("ratio, batch", [(0.0, 128), (0.79, 128), (0.8, 64), (0.89, 64), (0.9, 32), (0.99, 32)])
def test_the_batch_is_halved_at_80_and_again_at_90(ratio, batch):
    assert SupervisedSettings().for_coreset(ratio).batch_size == batch
    assert SupervisedSettings(batch_size=2).for_coreset(ratio).batch_size == 2
    assert SupervisedSettings(halve=False).for_coreset(ratio).batch_size == 128


@pytest.mark.parametrize("name", [name for name in SUPERVISED_PRESETS if name.startswith("paper:")])
def test_the_paper_keeps_the_batch_on_imagenet_1k_alone(name):
    preset = supervised_preset(name)
    share = 1 if name == "paper:imagenet1k" else 4
    assert preset.for_coreset(0.9).batch_size == preset.batch_size // share
    assert preset.for_coreset(0.7).batch_size == preset.batch_size


def test_settings_from_before_batches_could_be_kept_still_hold():
    """Results and evidence are found by a hash of the settings: those of every other preset must not change."""
    for name in SUPERVISED_PRESETS:
        said = supervised_preset(name).to_json()
        assert ("halve" in said) == (name == "paper:imagenet1k")
        assert SupervisedSettings.from_json(said) == supervised_preset(name)
    assert supervised_preset("paper:imagenet1k").replace(epochs=5).halve is False


@pytest.mark.parametrize("ratio, epochs", [(0.0, 30), (0.3, 43), (0.5, 60), (0.7, 90), (0.9, 90), (0.99, 90)])
def test_a_short_schedule_is_stretched_for_small_coresets(ratio, epochs):
    assert supervised_preset("quick").for_coreset(ratio).epochs == epochs
    assert supervised_preset("paper:cifar10").for_coreset(ratio).epochs == 200
    assert supervised_preset("brief").images_seen(1000, ratio) <= 1.02 * supervised_preset("brief").images_seen(1000, 0)
    assert supervised_preset("quick").images_seen(1000, ratio) == coreset_size(1000, ratio) * epochs


def test_it_learns_and_repeats_itself():
    images, labels = make_pool(60)
    tests, truth = make_pool(30, seed=1)
    settings = supervised_settings(epochs=8)
    found = [
        train_trial(images, labels, tests, truth, n_classes=3, settings=settings, seed=1, progress=Collected())
        for _ in range(2)
    ]
    assert found[0].n_correct == found[1].n_correct and (found[0].n_train, found[0].n_test) == (60, 30)
    assert found[0].accuracy > 0.6
    assert (
        found[0].n_by_class == tuple(np.bincount(truth, minlength=3))
        and found[0].right_by_class == found[1].right_by_class
    )
    assert sum(found[0].right_by_class) == found[0].n_correct


def test_the_book_holds_what_was_right_of_each_class():
    answers, truth = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 2, 0])
    result = TrialResult.of(answers, truth, 4, n_train=9, seconds=1.0)
    assert (result.n_correct, result.n_test) == (3, 5)
    assert result.right_by_class == (1, 1, 1, 0) and result.n_by_class == (2, 2, 1, 0)


def test_the_last_epoch_is_tested_and_no_other(monkeypatch):
    tested = []
    original = trial_run.train_supervised
    monkeypatch.setattr(trial_run, "train_supervised", lambda *a, **k: tested.append(original(*a, **k)) or tested[-1])
    images, labels = make_pool(20)
    train_trial(
        images, labels, images, labels, n_classes=3, settings=supervised_settings(), seed=0, progress=Collected()
    )
    assert not any("test_accuracy" in entry for entry in tested[0].history)
    with pytest.raises(InvalidDataError, match="no image to test on"):
        train_trial(
            images,
            labels,
            images[:0],
            labels[:0],
            n_classes=3,
            settings=supervised_settings(),
            seed=0,
            progress=Collected(),
        )


def test_equal_coresets_are_trained_on_once_and_the_book_knows_the_rest(bench, monkeypatch):
    trained = []
    original = trial_run.train_trial
    monkeypatch.setattr(trial_run, "train_trial", lambda *a, **k: trained.append(len(a[0])) or original(*a, **k))
    first = bench.run(trial(), lambda _: np.arange(30), words="one")
    second = bench.run(trial(method="other"), lambda _: np.arange(30)[::-1], words="two")
    assert trained == [30] and second["n_correct"] == first["n_correct"] and "trained once" in second["note"]
    bench.run(trial(seed=1), lambda _: np.arange(30), words="three")
    assert trained == [30, 30], "another seed is another training"
    again = Workbench(**{**vars_of(bench), "book": TrialBook(bench.book.path)})
    assert again.run(trial(), lambda _: pytest.fail("chosen again"), words="one") == first
    assert again.done == 60


def vars_of(bench):
    names = ("images", "labels", "test_images", "test_labels", "n_classes", "training", "progress", "device")
    return {**{name: getattr(bench, name) for name in names}, "n_trials": bench.n_trials, "total": bench.total}


def test_progress_counts_images_and_trials(bench):
    bench.run(trial(), lambda _: np.arange(30), words="one")
    bench.run(trial(ratio=0.9), lambda _: np.arange(6), words="two")
    reports = bench.progress.reports
    done = [report["done"] for report in reports]
    assert done == sorted(done) and done[-1] == 72 and {report["total"] for report in reports} == {132}
    assert reports[-1]["trials_done"] == 2 and reports[-1]["trials_total"] == 3 and reports[-1]["trial"] == "two"


def test_a_stop_between_batches_leaves_the_book_without_the_trial(bench):
    bench.run(trial(), lambda _: np.arange(30), words="one")
    bench.progress.stop_after = 70
    with pytest.raises(Stopped):
        bench.run(trial(seed=1), lambda _: np.arange(30), words="two")
    assert len(TrialBook(bench.book.path)) == 1


def test_too_small_a_coreset_is_named(bench):
    with pytest.raises(InvalidDataError, match=r"0\.99 leaves 1 of 60"):
        bench.run(trial(ratio=0.99), lambda _: np.arange(1), words="tiny")
