"""SwAV: balanced assignments, the swapped loss, and an encoder that learns something without labels."""

import numpy as np
import pytest
import torch

from semiprune_core import streams
from semiprune_core.baselines import swav
from semiprune_core.baselines.settings import SWAV, SwavSettings
from semiprune_core.baselines.swav import lr_at, sinkhorn, swapped_loss, train_encoder
from semiprune_core.errors import InvalidDataError, SemiPruneError
from semiprune_core.learning import sampling
from semiprune_core.progress import Collected, Stopped
from semiprune_core.streams import Purpose


def slow_sinkhorn(likeness, epsilon, rounds):
    q = np.exp(likeness / epsilon)
    for _ in range(rounds):
        for k in range(q.shape[1]):
            q[:, k] *= (len(q) / q.shape[1]) / q[:, k].sum()
        for i in range(len(q)):
            q[i] /= q[i].sum()
    return q


@pytest.mark.parametrize("rounds", [1, 3])
def test_sinkhorn_equals_scaling_rows_and_columns_in_turn(rounds):
    likeness = np.random.default_rng(0).uniform(-1, 1, (12, 5))
    found = sinkhorn(torch.from_numpy(likeness), epsilon=0.05, rounds=rounds).numpy()
    np.testing.assert_allclose(found, slow_sinkhorn(likeness, 0.05, rounds), rtol=1e-8)
    np.testing.assert_allclose(found.sum(1), 1)


def test_many_rounds_balance_the_prototypes_even_when_all_images_look_alike():
    likeness = torch.tensor([0.9, 0.1, 0.1, 0.1]).repeat(8, 1) + 0.01 * torch.randn(
        8, 4, generator=torch.Generator().manual_seed(0)
    )
    found = sinkhorn(likeness, epsilon=0.05, rounds=50)
    np.testing.assert_allclose(found.sum(0).numpy(), 2, atol=0.02)


def test_each_view_predicts_the_other_ones_assignments():
    rng = np.random.default_rng(0)
    views = [torch.from_numpy(rng.uniform(-1, 1, (6, 4))) for _ in range(2)]
    settings = SwavSettings(temperature=0.2, epsilon=0.1, rounds=2)
    wanted = 0.0
    for here, there in ((0, 1), (1, 0)):
        target = slow_sinkhorn(views[there].numpy(), 0.1, 2)
        logits = views[here].numpy() / 0.2
        logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        wanted += -(target * logs).sum(1).mean() / 2
    assert swapped_loss((views[0], views[1]), settings).item() == pytest.approx(wanted)


def streaks(n=96):
    """Lines across or along, each of its own grey, under noise: nothing but their direction tells the two classes."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    lines = np.broadcast_to(rng.normal(0, 40, (n, 16, 1)), (n, 16, 16))
    lines = np.where(labels[:, None, None] == 0, lines, lines.transpose(0, 2, 1))
    grey = 128 + lines - lines.mean((1, 2), keepdims=True) + rng.normal(0, 30, (n, 16, 16))
    return np.clip(grey, 0, 255).astype(np.uint8)[..., None], labels


def neighbour_accuracy(features, labels):
    rows = features.astype(np.float64)
    apart = ((rows[:, None] - rows[None]) ** 2).sum(-1) + np.diag(np.full(len(rows), np.inf))
    return (labels[apart.argmin(1)] == labels).mean()


SMALL = SwavSettings(epochs=20, batch_size=32, n_prototypes=6, hidden=16, projection=8, lr=0.2, n_ops=0, cutout=0.0)


def test_training_without_labels_brings_a_class_together_that_the_untrained_net_does_not():
    images, labels = streaks()

    def run(settings):
        progress = Collected()
        features = train_encoder(images, settings=settings, seed=0, progress=progress)
        assert features.shape == (96, 128) and features.dtype == np.float16 and np.isfinite(features).all()
        return neighbour_accuracy(features, labels), [one["loss"] for one in progress.reports]

    untrained, flat = run(SMALL.replace(lr=1e-12))
    trained, losses = run(SMALL)
    assert len(losses) == len(flat) == 60
    assert np.mean(losses[-3:]) < 0.5 * np.mean(losses[:3]) and np.mean(flat[-3:]) > 0.8 * np.mean(flat[:3])
    assert untrained < 0.75 and trained > 0.9


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    images, _ = streaks(64)

    def run(progress, folder):
        return train_encoder(images, settings=SMALL.replace(epochs=4), seed=0, progress=progress, folder=folder)

    whole = run(Collected(), None)
    with pytest.raises(Stopped):
        run(Collected(3), tmp_path)
    np.testing.assert_array_equal(run(Collected(), tmp_path), whole)


def test_a_run_that_diverges_is_refused_and_not_given_as_features():
    images, _ = streaks(64)
    with pytest.raises(
        SemiPruneError, match=r"diverged: its loss is nan at step \d of 4\. Lower the lr of swav \(now 1e\+20\)"
    ):
        train_encoder(images, settings=SMALL.replace(epochs=2, lr=1e20), seed=0, progress=Collected())


def test_weights_that_only_the_last_step_broke_are_refused():
    images, _ = streaks(64)
    with pytest.raises(SemiPruneError, match="its last step left weights that are not finite") as error:
        train_encoder(
            images, settings=SMALL.replace(epochs=1, batch_size=64, lr=float("inf")), seed=0, progress=Collected()
        )
    assert error.value.code == "DIVERGED"


def test_the_learning_rate_rises_in_a_line_and_falls_along_a_cosine():
    settings = SwavSettings(lr=0.2, warm_up=0.25)
    found = [lr_at(step, 16, settings) for step in range(16)]
    np.testing.assert_allclose(found[:5], [0, 0.05, 0.1, 0.15, 0.2])
    np.testing.assert_allclose(found[4:], [0.1 * (1 + np.cos(np.pi * step / 12)) for step in range(12)])
    assert lr_at(0, 16, SwavSettings(lr=0.2)) == 0.2  # without warming up it begins at its height


def test_training_follows_the_learning_rate(monkeypatch):
    given = []
    monkeypatch.setattr(swav, "set_lr", lambda optimizer, lr: given.append(lr))
    settings = SMALL.replace(epochs=4, warm_up=0.5)
    train_encoder(streaks(64)[0], settings=settings, seed=0, progress=Collected())
    assert given == [lr_at(step, 8, settings) for step in range(8)]


@pytest.mark.parametrize("frozen, moved", [(1.0, [False] * 4), (0.5, [False, False, True, True]), (0.0, [True] * 4)])
def test_prototypes_stay_where_they_are_for_a_share_of_the_steps(frozen, moved, monkeypatch):
    made, states = [], []

    class Kept(swav.Projector):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    class Watch(Collected):
        def report(self, done, total, /, **facts):
            super().report(done, total, **facts)
            states.append(made[0].prototypes.detach().clone())

    monkeypatch.setattr(swav, "Projector", Kept)
    settings = SMALL.replace(epochs=2, weight_decay=0.1, frozen=frozen)
    train_encoder(streaks(64)[0], settings=settings, seed=0, progress=Watch())
    with sampling.fresh_weights(streams.derived(0, Purpose.ENCODER_RUN), 1):
        begun = [swav.Projector(128, settings).prototypes.detach(), *states]
    assert [not torch.allclose(one, other, atol=1e-6) for one, other in zip(begun, states)] == moved


def test_the_papers_preset_has_the_values_of_its_cifar_run():
    """The command of swav-cifar10, which ELFS names: 50,000 images in batches of 512, the last short one left out."""
    paper, n_steps = SWAV["paper"], 500 * (50_000 // 512)
    assert (paper.net, paper.epochs, paper.batch_size) == ("resnet50", 500, 512)
    assert (paper.n_prototypes, paper.temperature, paper.epsilon, paper.rounds) == (30, 0.5, 0.05, 3)
    assert (paper.hidden, paper.projection, paper.weight_decay) == (2048, 128, 1e-6)
    assert round(paper.frozen * n_steps) == 900
    rates = [lr_at(step, n_steps, paper) for step in range(0, n_steps, 97)]
    assert max(rates) == rates[10] == 0.06 and rates[0] == 0


def test_the_quick_preset_does_not_warm_up():
    quick = SWAV["quick"]
    assert (quick.net, quick.n_prototypes, quick.temperature, quick.warm_up) == ("compact", 100, 0.1, 0.0)


def test_a_handful_of_images_is_refused():
    with pytest.raises(InvalidDataError, match="at least 4 images to train on; there are 3"):
        train_encoder(streaks()[0][:3], settings=SMALL, seed=0, progress=Collected())
