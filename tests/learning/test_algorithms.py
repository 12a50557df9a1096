"""Every algorithm passes one suite; each formula meets a slow twin written from its paper."""

import math
import subprocess
import sys

import pytest
import torch

from semiprune_core.errors import InvalidSettingError, UnknownNameError
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.learning.ssl.fixmatch import FixMatch
from semiprune_core.learning.ssl.flexmatch import FlexMatch
from semiprune_core.learning.ssl.freematch import FreeMatch
from semiprune_core.learning.ssl.pseudo_label import PseudoLabel

N_CLASSES, N_IMAGES = 4, 50


def batch(seed=0, n=6, n_unlabeled=12):
    rng = torch.Generator().manual_seed(seed)
    return {
        "labeled": torch.randn(n, N_CLASSES, generator=rng),
        "labels": torch.randint(0, N_CLASSES, (n,), generator=rng),
        "weak": (3 * torch.randn(n_unlabeled, N_CLASSES, generator=rng)).softmax(-1),
        "strong": torch.randn(n_unlabeled, N_CLASSES, generator=rng),
        "idx": torch.randperm(N_IMAGES, generator=rng)[:n_unlabeled],
    }


def step_of(algorithm, b, state, done=0.5):
    targets, state = algorithm.targets(b["weak"], b["idx"], state, done=done)
    return algorithm.step(b["labeled"], b["labels"], b["strong"], targets), targets, state


def begin(algorithm):
    return algorithm.begin(torch.arange(N_CLASSES), N_IMAGES, N_CLASSES)


with_unlabeled = pytest.mark.parametrize("name", [name for name in ALGORITHMS if ALGORITHMS[name].view])


def test_the_five_algorithms_are_there():
    assert set(ALGORITHMS) >= {"fixmatch", "flexmatch", "freematch", "pseudo_label", "supervised"}
    with pytest.raises(UnknownNameError, match="Did you mean 'fixmatch'"):
        ALGORITHMS["fixmach"]


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_settings_make_the_round_trip_through_json(name):
    algorithm = ALGORITHMS[name]()
    assert ALGORITHMS[name].from_json(algorithm.to_json()) == algorithm
    assert ALGORITHMS.title(name) != name and ALGORITHMS.facts(name)["about"]


@with_unlabeled
def test_every_algorithm_gives_a_finite_loss_with_gradients_and_the_same_twice(name):
    algorithm, b = ALGORITHMS[name](), batch()
    b["labeled"].requires_grad_()
    b["strong"].requires_grad_()
    step, targets, _ = step_of(algorithm, b, begin(algorithm))
    step.loss.backward()
    assert torch.isfinite(step.loss) and all(torch.isfinite(value) for value in step.log.values())
    assert b["labeled"].grad.abs().sum() > 0
    assert targets.weights.min() >= 0 and targets.weights.max() <= 1 and targets.labels.max() < N_CLASSES
    again, _, _ = step_of(algorithm, b, begin(algorithm))
    assert torch.equal(step.loss, again.loss)


@with_unlabeled
def test_a_state_taken_out_and_put_back_goes_on_the_same(name):
    algorithm = ALGORITHMS[name]()
    state = begin(algorithm)
    for seed in range(3):
        _, _, state = step_of(algorithm, batch(seed), state)
    copied = {key: value.clone() for key, value in state.items()}
    one, _, end = step_of(algorithm, batch(9), state)
    other, _, other_end = step_of(algorithm, batch(9), copied)
    assert torch.equal(one.loss, other.loss)
    assert all(torch.equal(end[key], other_end[key]) for key in end)
    assert all(torch.equal(state[key], copied[key]) for key in state), "targets() must not change the state it is given"


@with_unlabeled
def test_no_confident_image_leaves_the_supervised_loss(name):
    algorithm, b = ALGORITHMS[name](), batch()
    b["weak"] = torch.full_like(b["weak"], 1 / N_CLASSES)
    step, targets, _ = step_of(algorithm, b, begin(algorithm))
    if not targets.weights.any():
        assert step.loss == pytest.approx(float(step.log["supervised_loss"]))


def test_fixmatch_equals_its_slow_twin():
    """The paper's two sums, image by image: l_s over the labeled batch B, l_u over mu B with tau."""
    b, tau, weight = batch(), 0.8, 0.7
    step, targets, _ = step_of(FixMatch(threshold=tau, unlabeled_weight=weight), b, {})
    supervised = 0.0
    for logits, label in zip(b["labeled"].tolist(), b["labels"].tolist()):
        supervised += -math.log(math.exp(logits[label]) / sum(math.exp(z) for z in logits))
    unsupervised, confident = 0.0, 0
    for q, logits in zip(b["weak"].tolist(), b["strong"].tolist()):
        if max(q) >= tau:
            confident += 1
            unsupervised += -math.log(math.exp(logits[q.index(max(q))]) / sum(math.exp(z) for z in logits))
    assert 0 < confident < len(b["weak"])
    assert float(step.loss) == pytest.approx(supervised / 6 + weight * unsupervised / 12, rel=1e-5)
    assert float(step.log["mask_share"]) == pytest.approx(confident / 12)


@pytest.mark.parametrize("top, counted", [(0.94, 0.0), (0.95, 1.0), (0.99, 1.0)])
def test_the_threshold_is_inclusive(top, counted):
    probs = torch.tensor([[top, 1 - top]])
    targets, _ = FixMatch(threshold=0.95).targets(probs, torch.tensor([0]), {}, done=0)
    assert targets.weights.item() == counted


def test_flexmatch_lowers_the_bar_of_classes_learned_less():
    algorithm = FlexMatch(threshold=0.9, warm_up=False)
    state = {"confident_as": torch.tensor([0, 0, 0, 0, 1, 1, -1, -1, -1, -1])}
    assert algorithm.learned(state["confident_as"], 3).tolist() == [1.0, 0.5, 0.0]
    probs = torch.tensor([[0.5, 0.4, 0.1], [0.35, 0.55, 0.1], [0.3, 0.3, 0.4]])
    targets, after = algorithm.targets(probs, torch.tensor([6, 7, 8]), state, done=0)
    assert targets.weights.tolist() == [0.0, 1.0, 1.0]  # bars 0.9, 0.9 * (0.5 / 1.5) = 0.3 and 0
    assert torch.equal(after["confident_as"], state["confident_as"])  # none was above 0.9


def test_flexmatch_warm_up_counts_images_without_a_label():
    status = FlexMatch().learned(torch.tensor([0, 0, 1, -1, -1, -1, -1, -1]), 2)
    assert status.tolist() == pytest.approx([2 / 5, 1 / 5])


def test_freematch_equals_its_slow_twin():
    b, algorithm = batch(3), FreeMatch(momentum=0.9, fairness_weight=0.5)
    step, targets, state = step_of(algorithm, b, begin(algorithm))
    weak = b["weak"].tolist()
    n = len(weak)
    tau = 0.9 / N_CLASSES + 0.1 * sum(max(q) for q in weak) / n
    mean = [0.9 / N_CLASSES + 0.1 * sum(q[c] for q in weak) / n for c in range(N_CLASSES)]
    hist = [0.9 / N_CLASSES + 0.1 * sum(q.index(max(q)) == c for q in weak) / n for c in range(N_CLASSES)]
    assert float(state["confidence"]) == pytest.approx(tau, rel=1e-5)
    assert state["mean_prob"].tolist() == pytest.approx(mean, rel=1e-5)
    assert state["histogram"].tolist() == pytest.approx(hist, rel=1e-5)
    sure = [i for i, q in enumerate(weak) if max(q) >= tau * mean[q.index(max(q))] / max(mean)]
    assert torch.nonzero(targets.weights)[:, 0].tolist() == sure
    strong = [b["strong"][i].softmax(-1).tolist() for i in sure]
    batch_mean = [sum(p[c] for p in strong) / len(sure) for c in range(N_CLASSES)]
    batch_hist = [sum(p.index(max(p)) == c for p in strong) / len(sure) for c in range(N_CLASSES)]
    ours = [p / h for p, h in zip(mean, hist)]
    theirs = [p / h if h else 0.0 for p, h in zip(batch_mean, batch_hist)]
    fair = sum(a / sum(ours) * math.log(t / sum(theirs) + 1e-12) for a, t in zip(ours, theirs))
    base = float(step.log["supervised_loss"] + step.log["unsupervised_loss"])
    assert float(step.loss) == pytest.approx(base + 0.5 * fair, rel=1e-4)


@pytest.mark.parametrize("done, weight", [(0.0, 0.0), (0.2, 0.5), (0.4, 1.0), (0.9, 1.0)])
def test_pseudo_label_weight_grows_over_the_ramp(done, weight):
    targets, _ = PseudoLabel(ramp=0.4).targets(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), {}, done=done)
    assert targets.weights.item() == pytest.approx(weight)


@pytest.mark.parametrize("name, values", [("fixmatch", {"threshold": 1.1}), ("freematch", {"momentum": 1.0})])
def test_illegal_options_are_refused(name, values):
    with pytest.raises(InvalidSettingError, match="must be"):
        ALGORITHMS[name](**values)


def test_listing_algorithms_and_presets_does_not_load_torch():
    code = "import sys, semiprune_core.learning.presets as p; p.ssl_preset('quick'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
