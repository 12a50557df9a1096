"""Every score: against a slow twin written from its paper, its direction, its first T epochs, and NaN refused."""

import math
import statistics

import numpy as np
import pytest

from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.progress import Collected, Stopped
from semiprune_core.records import Trajectory
from semiprune_core.scores import SCORES, ScoreSettings, available_scores, compute_scores, score_settings_of
from semiprune_core.scores.aum import aum
from semiprune_core.scores.dual import dual
from semiprune_core.scores.dynamic_uncertainty import dynamic_uncertainty
from semiprune_core.scores.el2n import el2n
from semiprune_core.scores.entropy import entropy
from semiprune_core.scores.forgetting import forgetting
from semiprune_core.scores.windows import sliding_moments


def trajectory_of(target_prob, *, margin=None, correct=None, el2n=None, last_entropy=None, kind=np.float64):
    prob = np.asarray(target_prob, dtype=kind)
    return Trajectory(
        prob,
        np.asarray(2 * prob - 1 if margin is None else margin, dtype=kind),
        np.asarray(prob > 0.5 if correct is None else correct, dtype=bool),
        np.asarray(1 - prob if el2n is None else el2n, dtype=kind),
        None if last_entropy is None else np.asarray(last_entropy, dtype=kind),
    )


def softmax_run(seed=0, n_epochs=24, n_images=40, n_classes=5, kind=np.float32):
    """A trajectory made from logits the long way, and the probabilities (T, N, C) and labels (N,) behind it."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_images)
    logits = rng.normal(size=(n_epochs, n_images, n_classes)) * 2
    logits[:, np.arange(n_images), labels] += np.linspace(0, 6, n_epochs)[:, None] * rng.random(n_images)
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    target = probs[:, np.arange(n_images), labels]
    others = probs.copy()
    others[:, np.arange(n_images), labels] = -1
    onehot = np.eye(n_classes)[labels]
    trajectory = Trajectory(
        target.astype(kind),
        (target - others.max(-1)).astype(kind),
        probs.argmax(-1) == labels,
        np.linalg.norm(probs - onehot, axis=-1).astype(kind),
        -(probs[-1] * np.log(probs[-1])).sum(-1).astype(kind),
    )
    return trajectory, probs, labels


def slow_aum(probs, label, n_epochs):
    total = 0.0
    for p in probs[:n_epochs]:
        total += p[label] - max(p[c] for c in range(len(p)) if c != label)
    return total / n_epochs


def slow_dual(probs, label, n_epochs, window=10, gamma=1.0):
    p = [float(row[label]) for row in probs[:n_epochs]]
    total = 0.0
    for k in range(n_epochs - window + 1):
        piece = p[k : k + window]
        mean = sum(piece) / window
        sigma = math.sqrt(sum((value - mean) ** 2 for value in piece) / (window - 1))
        total += (1 - mean) * sigma**gamma
    return total / (n_epochs - window + 1)


def slow_dynamic_uncertainty(probs, label, n_epochs, window=10):
    """U = mean of U_k over the whole training; U_k^2 = sum of (p - mean)^2 over J epochs / (J - 1)."""
    p = [float(row[label]) for row in probs]
    return statistics.fmean(statistics.stdev(p[k : k + window]) for k in range(len(p) - window + 1))


def slow_el2n(probs, label, n_epochs):
    lengths = [math.sqrt(sum((p[c] - (c == label)) ** 2 for c in range(len(p)))) for p in probs[: min(10, n_epochs)]]
    return statistics.fmean(lengths)


def slow_forgetting(probs, label, n_epochs):
    right = [int(np.argmax(p)) == label for p in probs[:n_epochs]]
    if not any(right):
        return n_epochs
    return sum(right[t] and not right[t + 1] for t in range(n_epochs - 1))


def slow_mean_prob(probs, label, n_epochs):
    return statistics.fmean(float(p[label]) for p in probs[:n_epochs])


def slow_variability(probs, label, n_epochs):
    return statistics.stdev(float(p[label]) for p in probs[:n_epochs])


def slow_entropy(probs, label, n_epochs):
    return -sum(float(p) * math.log(p) for p in probs[-1])


TWINS = {
    "aum": slow_aum,
    "dual": slow_dual,
    "dynamic_uncertainty": slow_dynamic_uncertainty,
    "el2n": slow_el2n,
    "entropy": slow_entropy,
    "forgetting": slow_forgetting,
    "mean_prob": slow_mean_prob,
    "variability": slow_variability,
}


def settings_for(n_epochs):
    return ScoreSettings(aum_epochs=n_epochs, dual_epochs=n_epochs)


@pytest.mark.parametrize("name", [name for name in SCORES if "paper" in SCORES.facts(name)])
@pytest.mark.parametrize("n_epochs", [10, 11, 17, 24])
def test_every_score_equals_its_slow_twin(name, n_epochs):
    trajectory, probs, labels = softmax_run()
    table = compute_scores(trajectory, settings=settings_for(n_epochs), names=[name])
    expected = [TWINS[name](probs[:, i], label, n_epochs) for i, label in enumerate(labels)]
    np.testing.assert_allclose(table[name], expected, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("name", list(SCORES))
def test_every_score_points_where_it_says(name):
    """Image 0 is learned at once and kept, image 1 wavers below it."""
    prob = np.full((12, 2), 0.95)
    prob[:, 1] = np.tile([0.2, 0.6], 6)
    easy, hard = compute_scores(trajectory_of(prob, last_entropy=[0.1, 0.6]))[name]
    assert (easy > hard) == (SCORES.facts(name)["higher_is"] == "easier")


@pytest.mark.parametrize("name", list(SCORES))
def test_every_score_tells_its_facts(name):
    facts = SCORES.facts(name)
    assert facts["higher_is"] in ("easier", "harder")
    assert facts["explain"].endswith(".") and facts["title"]
    assert ("paper" in facts) == (name in TWINS)
    assert all(knob.help.endswith(".") and knob.words for knob in score_settings_of(name).values())
    assert {*score_settings_of(name)} <= {*ScoreSettings()}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [name for name in SCORES if name != "forgetting"])
def test_every_score_refuses_what_is_not_finite(name, bad):
    prob = np.full((12, 5), 0.5)
    prob[3 if name in TWINS else -1, 4] = bad  # a newcomer may look at late epochs alone
    last = [0, 0, 0, 0, bad]
    with pytest.raises(InvalidDataError, match="1 of 5 images"):
        SCORES[name](trajectory_of(prob, margin=prob, el2n=prob, correct=np.ones((12, 5)), last_entropy=last))


@pytest.mark.parametrize("name", ["aum", "dual", "mean_prob", "variability", "forgetting"])
def test_the_first_epochs_alone_decide(name):
    trajectory, _, _ = softmax_run()
    cut = Trajectory(
        *(column[:12] for column in (trajectory.target_prob, trajectory.margin, trajectory.correct, trajectory.el2n))
    )
    assert SCORES[name](trajectory, n_epochs=12).tolist() == SCORES[name](cut).tolist()
    assert SCORES[name](trajectory, n_epochs=12).tolist() != SCORES[name](trajectory).tolist()
    for wrong in (0, 25):
        with pytest.raises(InvalidSettingError, match="n_epochs"):
            SCORES[name](trajectory, n_epochs=wrong)


@pytest.mark.parametrize("block", [1, 7, 39, 40, 1000])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_blocks_change_nothing(block, kind):
    trajectory, _, _ = softmax_run(kind=kind)
    whole = compute_scores(trajectory)
    parts = compute_scores(trajectory, block=block)
    assert list(parts.columns) == list(SCORES)
    for name in SCORES:
        assert parts[name].dtype == np.float64
        np.testing.assert_array_equal(parts[name], whole[name])


class Watched:
    """A column that remembers which images were read."""

    def __init__(self, array):
        self.array, self.shape, self.reads = array, array.shape, []

    def __getitem__(self, key):
        self.reads.append(range(self.shape[1])[key[1]])
        return self.array[key]


def test_one_pass_reads_every_image_once_and_no_more_than_a_block_at_a_time():
    trajectory, _, _ = softmax_run()
    columns = [trajectory.target_prob, trajectory.margin, trajectory.correct, trajectory.el2n]
    watched = [Watched(column) for column in columns]
    table = compute_scores(Trajectory(*watched), block=16)
    assert {"aum", "dual", "el2n", "forgetting"} <= set(table.columns)
    for column in watched:
        assert column.reads == [range(16), range(16, 32), range(32, 40)]


def test_dual_divides_by_j_minus_one():
    prob = np.array([[0.0], [1.0]])
    assert dual(trajectory_of(prob), window=2)[0] == pytest.approx(0.5 * math.sqrt(0.5))  # over J it would be 0.25


def test_dual_takes_the_exponent_on_the_deviation_alone():
    prob = np.array([[0.0], [0.5], [1.0], [0.5]])  # windows of 3: mean 1/2, sigma 1/2; mean 2/3, sigma 0.2887
    sigma = math.sqrt(1 / 12)
    expected = (0.5 * 0.5**0.5 + (1 / 3) * sigma**0.5) / 2
    assert dual(trajectory_of(prob), window=3, gamma=0.5)[0] == pytest.approx(expected)


def test_dual_with_one_window_is_that_window():
    trajectory, probs, labels = softmax_run(n_epochs=10)
    assert dual(trajectory)[3] == pytest.approx(slow_dual(probs[:, 3], labels[3], 10), rel=1e-6)


def test_dual_says_what_to_do_when_the_window_is_longer_than_the_run():
    with pytest.raises(InvalidSettingError, match="windows of 10 epochs, but only 6 .* window to 6 or less, or score"):
        dual(trajectory_of(np.full((6, 2), 0.5)))
    with pytest.raises(InvalidSettingError, match="only 8 are scored"):
        dual(trajectory_of(np.full((20, 2), 0.5)), n_epochs=8)


@pytest.mark.parametrize("knob, value", [("window", 1), ("gamma", 0.0), ("gamma", 1.5), ("gamma", float("nan"))])
def test_dual_refuses_knobs_outside_the_papers_range(knob, value):
    with pytest.raises(InvalidSettingError, match=knob):
        dual(trajectory_of(np.full((20, 2), 0.5)), **{knob: value})


@pytest.mark.parametrize("rest", [0.0, 1e-7, 0.1, 0.3, 1 - 1e-7, 1.0])
@pytest.mark.parametrize("gamma", [1.0, 0.05])
def test_a_probability_at_rest_has_dual_zero_exactly(rest, gamma):
    """Running sums of squares would leave about 1e-8 of deviation, and a small gamma would make 0.4 of it."""
    prob = np.full((200, 3), rest, dtype=np.float32)
    assert dual(trajectory_of(prob, kind=np.float32), gamma=gamma).tolist() == [0, 0, 0]


@pytest.mark.parametrize("middle", [0.0, 1.0])
@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_dual_keeps_its_digits_next_to_0_and_1(middle, size):
    rng = np.random.default_rng(0)
    prob = np.abs(middle - size * rng.random((60, 20))).astype(np.float32)
    expected = [slow_dual(prob[:, i, None].astype(np.float64), 0, 60) for i in range(20)]
    np.testing.assert_allclose(dual(trajectory_of(prob, kind=np.float32)), expected, rtol=1e-9)


@pytest.mark.parametrize("window", [2, 5, 10, 23, 24])
def test_dynamic_uncertainty_takes_every_window_of_the_whole_run(window):
    trajectory, probs, labels = softmax_run(kind=np.float64)
    expected = [slow_dynamic_uncertainty(probs[:, i], label, 24, window) for i, label in enumerate(labels)]
    np.testing.assert_allclose(dynamic_uncertainty(trajectory, window=window), expected, rtol=1e-10)
    table = compute_scores(trajectory, settings=ScoreSettings(aum_epochs=1, dual_epochs=window, window=window))
    np.testing.assert_allclose(table["dynamic_uncertainty"], expected, rtol=1e-10)  # T of others is not its own


def test_dynamic_uncertainty_divides_by_j_minus_one_and_asks_not_how_likely_the_label_was():
    prob = np.array([[0.0, 0.9, 0.3], [0.1, 1.0, 0.3]])
    assert dynamic_uncertainty(trajectory_of(prob), window=2) == pytest.approx([0.1 * math.sqrt(0.5)] * 2 + [0])
    assert dynamic_uncertainty(trajectory_of(prob), window=2)[2] == 0


def test_dynamic_uncertainty_says_what_to_do_when_the_window_is_longer_than_the_run():
    with pytest.raises(InvalidSettingError, match="Dynamic uncertainty looks at windows of 10 epochs, but only 6 are"):
        dynamic_uncertainty(trajectory_of(np.full((6, 2), 0.5)))
    with pytest.raises(InvalidSettingError, match="window"):
        dynamic_uncertainty(trajectory_of(np.full((6, 2), 0.5)), window=1)


@pytest.mark.parametrize("window", [2, 3, 4, 5, 7, 8, 10, 15, 16, 30])
def test_sliding_moments_equal_numpy(window):
    values = np.random.default_rng(1).random((30, 6))
    mean, m2 = sliding_moments(values, window)
    views = np.lib.stride_tricks.sliding_window_view(values, window, axis=0)
    np.testing.assert_allclose(mean, views.mean(-1), rtol=1e-13)
    np.testing.assert_allclose(m2 / window, views.var(-1), rtol=1e-11)
    assert mean.shape == m2.shape == (31 - window, 6)


@pytest.mark.parametrize(
    "right, count",
    [("1111", 0), ("0111", 0), ("1010", 2), ("0101", 1), ("0000", 4), ("1000", 1), ("0001", 0), ("1", 0), ("0", 1)],
)
def test_forgetting_counts_steps_from_right_to_wrong(right, count):
    correct = np.array([[int(char)] for char in right])
    assert forgetting(trajectory_of(np.ones(correct.shape), correct=correct)).tolist() == [count]


def test_never_learned_is_harder_than_forgotten_as_often_as_possible():
    correct = np.array([[1, 0], [0, 0]] * 50)
    most, never = forgetting(trajectory_of(np.ones((100, 2)), correct=correct))
    assert never > most == 50


@pytest.mark.parametrize("right, count", [("0000", 0), ("1010", 2), ("0001", 0)])
def test_forgetting_by_events_alone_calls_the_never_learned_easy(right, count):
    correct = np.array([[int(char)] for char in right])
    trajectory = trajectory_of(np.ones(correct.shape), correct=correct)
    assert forgetting(trajectory, never_learned="easiest").tolist() == [count]
    settings = ScoreSettings(forgetting_never_learned="easiest")
    assert compute_scores(trajectory, settings=settings, names=["forgetting"])["forgetting"].tolist() == [count]
    with pytest.raises(InvalidSettingError, match="never_learned"):
        ScoreSettings(forgetting_never_learned="unknown")


def test_el2n_looks_at_the_first_ten_epochs_only():
    error = np.concatenate([np.full((10, 1), 0.25), np.full((10, 1), 9.0)])
    assert el2n(trajectory_of(error, el2n=error)).tolist() == [0.25]
    assert el2n(trajectory_of(error[:4], el2n=error[:4])).tolist() == [0.25]
    assert el2n(trajectory_of(error, el2n=error), n_epochs=20)[0] > 4
    with pytest.raises(InvalidSettingError, match="n_epochs"):
        el2n(trajectory_of(error), n_epochs=0)


def test_aum_is_the_mean_of_all_epochs_not_the_last_margin():
    margin = np.array([[1.0], [0.0], [-0.25]])
    assert aum(trajectory_of(margin, margin=margin)).tolist() == [0.25]


def test_variability_of_a_single_epoch_is_zero():
    assert SCORES["variability"](trajectory_of([[0.5, 0.7]])).tolist() == [0, 0]


def test_entropy_is_left_out_of_the_table_when_it_was_not_recorded():
    trajectory = trajectory_of(np.full((10, 2), 0.5))
    assert "entropy" not in available_scores(trajectory)
    table = compute_scores(trajectory)
    assert set(table.columns) == set(SCORES) - {"entropy"}
    with pytest.raises(MissingStepError, match="'entropy' was not computed"):
        table["entropy"]
    with pytest.raises(MissingStepError, match="no entropy"):
        entropy(trajectory)


def test_entropy_is_a_copy():
    last = np.array([0.5, 0.5])
    entropy(trajectory_of(np.ones((1, 2)), last_entropy=last))[0] = 7
    assert last.tolist() == [0.5, 0.5]


def test_a_table_becomes_evidence_with_its_mean_probability():
    trajectory, _, labels = softmax_run()
    table = compute_scores(trajectory, settings=ScoreSettings(dual_epochs=15))
    evidence = table.evidence(labels=labels)
    assert evidence.mean_prob is table["mean_prob"]
    assert evidence.labels is labels and set(evidence.scores) == set(SCORES)
    np.testing.assert_allclose(table["mean_prob"], trajectory.target_prob[:15].astype(float).mean(0))
    np.testing.assert_allclose(table["aum"], trajectory.margin.astype(float).mean(0))


def test_scores_report_and_stop_between_blocks():
    trajectory, _, _ = softmax_run()
    progress = Collected()
    compute_scores(trajectory, block=15, progress=progress)
    assert [report["done"] for report in progress.reports] == [15, 30, 40]
    with pytest.raises(Stopped):
        compute_scores(trajectory, block=15, progress=Collected(stop_after=15))


def test_a_misspelt_score_gets_a_hint():
    trajectory, _, _ = softmax_run()
    with pytest.raises(UnknownNameError, match="Did you mean 'dual'"):
        compute_scores(trajectory, names=["daul"])


@pytest.mark.parametrize("wrong", [{"window": 1}, {"gamma": 0}, {"gamma": 1.1}, {"aum_epochs": 0}, {"el2n_epochs": 0}])
def test_settings_are_checked_when_they_are_made(wrong):
    with pytest.raises(InvalidSettingError, match=next(iter(wrong))):
        ScoreSettings(**wrong)
