"""TEMI: the loss by its formula, clusters that are there to be found, and a run that can be stopped."""

import numpy as np
import pytest
import torch

from semiprune_core.baselines import temi
from semiprune_core.baselines.settings import HEADS, HeadSettings
from semiprune_core.baselines.temi import Heads, cluster, head_losses
from semiprune_core.errors import InvalidDataError, SemiPruneError, WorkspaceError
from semiprune_core.progress import Collected, Stopped

SMALL = HeadSettings(n_heads=3, n_neighbours=8, epochs=25, batch_size=32, hidden=16, bottleneck=8, n_components=0)


def three_groups(n=90, d=6, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3)
    return np.eye(d)[labels] * 3 + rng.normal(0, 0.3, (n, d)) + 1, labels


def slow_loss(student, teacher, shares, beta):
    """Head by head, pair by pair, cluster by cluster, in probabilities."""
    n_heads, n, n_clusters = student[0].shape
    losses = []
    for h in range(n_heads):
        total = 0.0
        for i in range(n):
            weight = np.mean([(teacher[0][k, i] * teacher[1][k, i]).sum() for k in range(n_heads)])
            pmi = [
                np.log(
                    sum((student[a][h, i, c] * teacher[b][h, i, c]) ** beta / shares[h, c] for c in range(n_clusters))
                )
                for a, b in ((0, 1), (1, 0))
            ]
            total += -weight * (pmi[0] + pmi[1]) / 2
        losses.append(total / n)
    return np.array(losses)


@pytest.mark.parametrize("beta", [0.6, 1.0])
def test_the_loss_equals_the_papers_formula(beta):
    rng = np.random.default_rng(0)
    probs = [rng.dirichlet(np.ones(4), (2, 5)) for _ in range(4)]
    shares = rng.dirichlet(np.ones(4), 2)
    logs = [torch.from_numpy(np.log(one)) for one in probs]
    found = head_losses((logs[0], logs[1]), (logs[2], logs[3]), torch.from_numpy(shares), beta=beta)
    np.testing.assert_allclose(found.numpy(), slow_loss(probs[:2], probs[2:], shares, beta), rtol=1e-10)


def test_sure_and_equal_answers_have_the_loss_minus_log_of_the_number_of_clusters():
    sure = torch.log(torch.eye(4).clamp(min=1e-30))[None]  # each pair in a cluster of its own, shares 1/4
    loss = head_losses((sure, sure), (sure, sure), torch.full((1, 4), 0.25), beta=1.0)
    assert loss.item() == pytest.approx(-np.log(4))


def test_heads_are_independent_of_each_other():
    torch.manual_seed(0)
    heads = Heads(6, 4, SMALL)
    x = torch.randn(5, 6)
    before = heads(x).detach().clone()
    with torch.no_grad():
        heads.first[1] += 1
    assert torch.equal(heads(x)[[0, 2]], before[[0, 2]]) and not torch.equal(heads(x)[1], before[1])
    assert before.abs().max() <= 1 + 1e-6  # cosine likenesses while the gains are 1


def groups_found(found, labels):
    """How many images lie in the cluster of their group, when every group has one of its own."""
    table = np.zeros((3, 3), int)
    np.add.at(table, (found.labels, labels), 1)
    return table.max(axis=1).sum() if (table.max(axis=0) > 25).all() else 0


def test_groups_that_are_there_are_found():
    values, labels = three_groups()
    found = cluster(values, n_clusters=3, settings=SMALL, seed=0, progress=Collected())
    assert groups_found(found, labels) >= 88
    assert found.losses.shape == (3,) and found.confidence.min() >= 1 / 3


@pytest.mark.parametrize("sound", [0, 1, 2])
def test_of_damaged_heads_the_sound_one_is_chosen_and_its_labels_are_given(sound, monkeypatch):
    class Damaged(Heads):
        """All heads but one answer the same to every image, so that their labels are worth nothing."""

        def forward(self, x):
            return super().forward(x) * (torch.arange(3) == sound)[:, None, None]

    monkeypatch.setattr(temi, "Heads", Damaged)
    values, labels = three_groups()
    found = cluster(values, n_clusters=3, settings=SMALL.replace(epochs=60), seed=0, progress=Collected())
    assert found.best == sound and groups_found(found, labels) >= 88


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    values, _ = three_groups()
    settings = SMALL.replace(epochs=6)

    def run(progress, folder):
        return cluster(values, n_clusters=3, settings=settings, seed=1, progress=progress, folder=folder)

    whole = run(Collected(), None)
    with pytest.raises(Stopped, match="Stopped after 7 of 18 steps"):
        run(StopAt(7), tmp_path)
    progress = Collected()
    again = run(progress, tmp_path)
    assert next(one["done"] for one in progress.reports if one["stage"] == "clustering") == 8
    np.testing.assert_array_equal(again.labels, whole.labels)
    np.testing.assert_array_equal(again.losses, whole.losses)
    with pytest.raises(WorkspaceError, match="another run"):
        cluster(values, n_clusters=3, settings=settings, seed=2, progress=Collected(), folder=tmp_path)


class StopAt(Collected):
    """Asks for a stop after so many steps of the clustering."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def should_stop(self):
        last = self.reports[-1] if self.reports else {}
        return last.get("stage") == "clustering" and last["done"] >= self.steps


def test_features_that_are_not_finite_give_no_clusters():
    values, _ = three_groups()
    values[5, 2] = np.nan
    with pytest.raises(SemiPruneError, match=r"diverged: its loss is nan at step 1 of.*or choose other features"):
        cluster(values, n_clusters=3, settings=SMALL, seed=0, progress=Collected())


@pytest.mark.parametrize("n_components", [0, 3])
def test_heads_see_zero_means_and_one_scale_and_the_features_stay_as_they_are(n_components):
    values = three_groups()[0].astype(np.float32)
    before = values.copy()
    seen = temi.prepared(values, SMALL.replace(n_components=n_components), Collected())
    assert seen.dtype == np.float32 and seen.shape[1] == (n_components or 6) and seen.std() == pytest.approx(1)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-6)
    if not n_components:
        centred = before - before.mean(axis=0)
        np.testing.assert_allclose(seen, centred / centred.std(), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(values, before)


def test_the_papers_preset_has_the_values_of_elfs_command():
    """The options of ELFS's README, else the defaults of its code, with a learning rate for batches of 256."""
    paper = HEADS["paper"]
    assert (paper.n_heads, paper.n_neighbours, paper.epochs, paper.batch_size) == (50, 50, 200, 1024)
    assert (paper.hidden, paper.bottleneck, paper.n_components) == (512, 256, 0)
    assert paper.lr == pytest.approx(1e-4 * 1024 / 256) and paper.warm_up * paper.epochs == 20
    assert (paper.beta, paper.temperature, paper.weight_decay) == (0.6, 0.1, 1e-4)
    assert (paper.teacher_momentum, paper.share_momentum) == (0.996, 0.9)


def test_too_few_images_for_the_clusters_are_refused():
    with pytest.raises(InvalidDataError, match="7 images are too few for 4 clusters"):
        cluster(np.eye(7), n_clusters=4, settings=SMALL, seed=0, progress=Collected())
