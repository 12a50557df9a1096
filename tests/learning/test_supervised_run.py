"""The supervised loop: every image once per epoch, its facts recorded from the training pass, resumed to the bit."""

import math

import numpy as np
import pytest
import torch

from semiprune_core.errors import InvalidDataError
from semiprune_core.learning import sampling, supervised_run
from semiprune_core.learning.supervised_run import COLUMNS, MemoryRecorder, columns, train_supervised
from semiprune_core.progress import Collected, Stopped
from semiprune_core.streams import Purpose
from tests.support.pools import make_pool, supervised_settings


def run(n=50, *, progress=None, record=None, seed=0, folder=None, tests=False, **changes):
    images, truth = make_pool(n)
    more, more_truth = make_pool(30, seed=1)
    return train_supervised(
        images,
        truth,
        n_classes=3,
        settings=supervised_settings(**changes),
        seed=seed,
        progress=progress or Collected(),
        folder=folder,
        record=record,
        eval_images=more if tests else None,
        eval_labels=more_truth if tests else None,
        eval_every=1 if tests else 0,
    )


def recorded(record):
    t = record.trajectory()
    return [t.target_prob, t.margin, t.correct, t.el2n, t.last_entropy]


def test_the_learning_rate_falls_to_where_it_was_asked_to_end():
    to_zero, to_end = (run(epochs=2, batch_size=5, lr=0.1, lr_end=end).history[-1]["lr"] for end in (0.0, 0.05))
    assert 0 < to_zero < 0.01
    assert to_end == pytest.approx(0.05 + to_zero / 2)


def test_random_parts_of_the_images_may_be_learned_from():
    seen = [run(epochs=1, crop=crop).history[0]["train_loss"] for crop in ("shift", "resized", "resized")]
    assert seen[0] != seen[1] == seen[2]


def test_columns_equal_their_definitions():
    logits = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 1.0, 1.0]])
    labels = torch.tensor([2, 1, 0])
    found = columns(logits, labels)
    assert tuple(found) == COLUMNS
    for i, (row, label) in enumerate(zip(logits.tolist(), labels.tolist())):
        total = sum(math.exp(z) for z in row)
        p = [math.exp(z) / total for z in row]
        other = max(p[c] for c in range(3) if c != label)
        assert found["target_prob"][i] == pytest.approx(p[label], abs=1e-6)
        assert found["margin"][i] == pytest.approx(p[label] - other, abs=1e-6)
        assert found["el2n"][i] == pytest.approx(math.sqrt(sum((p[c] - (c == label)) ** 2 for c in range(3))), abs=1e-6)
        assert found["entropy"][i] == pytest.approx(-sum(q * math.log(q) for q in p), abs=1e-6)
    assert found["correct"].tolist() == [0, 1, 0]  # a tie is not correct


@pytest.mark.parametrize("n, batch_size, batches", [(50, 16, 4), (49, 16, 4), (33, 16, 3), (17, 16, 2), (5, 16, 1)])
def test_every_image_is_seen_exactly_once_per_epoch(n, batch_size, batches, monkeypatch):
    seen = []
    take = supervised_run.Images.take
    monkeypatch.setattr(supervised_run.Images, "take", lambda self, idx: seen.append(idx) or take(self, idx))
    run(n, batch_size=batch_size, epochs=2)
    assert len(seen) == 2 * batches
    for epoch in (seen[:batches], seen[batches:]):
        assert sorted(np.concatenate(epoch)) == list(range(n))
        assert min(map(len, epoch)) >= min(n, 2) and max(map(len, epoch)) <= batch_size
    assert not np.array_equal(np.concatenate(seen[:batches]), np.concatenate(seen[batches:]))


def test_the_trajectory_has_every_epoch_and_ends_with_entropy():
    record = MemoryRecorder()
    result = run(record=record, epochs=4, tests=True)
    trajectory = record.trajectory()
    assert trajectory.target_prob.shape == (4, 50) and trajectory.correct.dtype == bool
    assert np.array_equal(trajectory.correct, trajectory.margin > 0)
    assert trajectory.correct[-1].mean() > trajectory.correct[0].mean()
    assert trajectory.last_entropy.shape == (50,)
    assert [entry["train_accuracy"] for entry in result.history] == pytest.approx(trajectory.correct.mean(1), abs=1e-6)
    assert (
        result.accuracy.value == pytest.approx(result.history[-1]["test_accuracy"], abs=1e-6)
        and result.accuracy.n == 30
    )


def test_the_recorded_facts_come_from_the_training_pass():
    """With a vanishing learning rate epoch 1 is what the fresh net says in train mode, batch by batch."""
    record = MemoryRecorder()
    run(n=32, record=record, epochs=1, lr=1e-12, weight_decay=0.0, shift=0.0, batch_size=16)
    images, truth = make_pool(32)
    pixels = supervised_run.Images(images, torch.device("cpu"))
    fresh = supervised_run.Trainer(supervised_settings(), pixels, n_classes=3, seed=0, world=supervised_run.World()).net
    order = sampling.permutation(32, 0, Purpose.EPOCH, 0)
    for idx in (order[:16], order[16:]):
        logits = fresh(pixels.normalise(pixels.take(idx))).detach()
        wanted = columns(logits, torch.from_numpy(truth[idx]))["target_prob"]
        assert record.rows[0]["target_prob"][idx] == pytest.approx(wanted.numpy(), abs=1e-5)


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path):
    whole = MemoryRecorder()
    result = run(record=whole)
    record = MemoryRecorder()
    for stop in (1, 4, 6, 10):
        with pytest.raises(Stopped):
            run(record=record, folder=tmp_path, progress=Collected(stop_after=stop))
    resumed = run(record=record, folder=tmp_path)
    assert all(np.array_equal(a, b) for a, b in zip(recorded(record), recorded(whole)))
    assert resumed.history == result.history
    assert all(torch.equal(a, b) for a, b in zip(resumed.net.state_dict().values(), result.net.state_dict().values()))


def test_epochs_recorded_after_the_checkpoint_are_taken_back(tmp_path):
    record = MemoryRecorder()
    with pytest.raises(Stopped):
        run(record=record, folder=tmp_path, progress=Collected(stop_after=6))
    record.rows += record.rows  # as if a kill had come between recording and the checkpoint
    run(record=record, folder=tmp_path)
    assert record.epochs_done == 3


def test_a_lost_trajectory_is_not_papered_over(tmp_path):
    with pytest.raises(Stopped):
        run(record=MemoryRecorder(), folder=tmp_path, progress=Collected(stop_after=6))
    with pytest.raises(InvalidDataError, match="epoch 1, but the recorded trajectory ends after 0"):
        run(record=MemoryRecorder(), folder=tmp_path)


def test_micro_batches_give_the_same_first_gradient_step(monkeypatch):
    """Without normalisation in between, two halves add up to the whole."""
    images, truth = make_pool(16)
    pixels = supervised_run.Images(images, torch.device("cpu"))
    heads = []
    for parts in (1, 2):
        loop = supervised_run.SupervisedRun(
            pixels,
            truth,
            n_classes=3,
            settings=supervised_settings(),
            seed=0,
            progress=Collected(),
            folder=None,
            record=None,
            world=supervised_run.World(),
        )
        loop.trainer.net.eval()
        loop.trainer.micro_batches = parts
        loop.one_step()
        heads.append(loop.trainer.net.head.weight.detach().clone())
    assert torch.allclose(*heads, atol=1e-6)


@pytest.mark.parametrize(
    "labels, sentence",
    [
        ([0, 1], "one label each; got 3 and 2"),
        ([0, 1, -1], "1 have none, the first is image 2 with -1"),
        ([0, 1, 3], "in 0..2"),
    ],
)
def test_labels_that_cannot_work_are_refused(labels, sentence):
    images, _ = make_pool(3)
    with pytest.raises(InvalidDataError, match=sentence):
        train_supervised(
            images, np.array(labels), n_classes=3, settings=supervised_settings(), seed=0, progress=Collected()
        )
