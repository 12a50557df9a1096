"""Scores carried from the labeled images to the others: by neighbours, and by a graph network."""

import numpy as np
import pytest
import torch
from scipy import stats

from semiprune_core import streams
from semiprune_core.baselines import extrapolate, graph
from semiprune_core.baselines.extrapolate import choose_k, extrapolate_knn
from semiprune_core.baselines.settings import GraphSettings
from semiprune_core.progress import Collected, Stopped
from semiprune_core.streams import Purpose


def test_neighbours_give_the_weighted_mean_and_known_scores_stay():
    values = np.array([[0.0], [1.0], [3.0], [9.0]])
    found = extrapolate_knn(values, np.array([0, 2]), {"dual": np.array([1.0, 5.0])}, k=2)["dual"]
    assert found[[0, 2]].tolist() == [1.0, 5.0]
    apart = np.array([[1.0, 2.0], [9.0, 6.0]])  # of images 1 and 3 to the known ones
    weight = np.exp(-apart / apart.mean())
    np.testing.assert_allclose(found[[1, 3]], (weight * [1.0, 5.0]).sum(1) / weight.sum(1), rtol=1e-5)


def test_neighbours_equal_a_slow_twin():
    rng = np.random.default_rng(0)
    values, known_idx = rng.normal(size=(40, 4)), rng.permutation(40)[:12]
    known = {"aum": rng.normal(size=12), "dual": rng.random(12)}
    found = extrapolate_knn(values, known_idx, known, k=3)
    rest = [i for i in range(40) if i not in known_idx]
    apart = np.array([[np.linalg.norm(values[i] - values[j]) for j in known_idx] for i in rest])
    near = np.argsort(apart, axis=1)[:, :3]
    scale = np.take_along_axis(apart, near, 1).mean()
    for name, scores in known.items():
        for row, i in enumerate(rest):
            weight = [np.exp(-apart[row, j] / scale) for j in near[row]]
            wanted = sum(w * scores[j] for w, j in zip(weight, near[row])) / sum(weight)
            assert found[name][i] == pytest.approx(wanted, rel=1e-4)


def test_with_fewer_known_images_than_neighbours_all_of_them_count():
    found = extrapolate_knn(np.zeros((3, 2)), np.array([0, 1]), {"dual": np.array([1.0, 3.0])}, k=20)
    assert found["dual"].tolist() == [1.0, 3.0, 2.0]
    whole = extrapolate_knn(np.zeros((2, 2)), np.array([1, 0]), {"dual": np.array([1.0, 3.0])}, k=1)
    assert whole["dual"].tolist() == [3.0, 1.0]


def test_the_number_of_neighbours_is_the_one_that_carries_known_scores_best():
    rng = np.random.default_rng(0)
    line = rng.random((200, 1))
    smooth = np.sin(12 * line[:, 0])
    noisy = line[:, 0] + rng.normal(0, 1.0, 200)
    near = choose_k(line, smooth, among=(3, 100), rng=np.random.default_rng(1))
    far = choose_k(line, noisy, among=(1, 50), rng=np.random.default_rng(1))
    assert (near, far) == (3, 50)  # waves want few neighbours, noise wants many
    assert choose_k(line[:4], smooth[:4], rng=rng) == 3, "too few to try"
    assert choose_k(line, np.ones(200), rng=rng) == 3, "constant scores tell nothing"


def slow_choose_k(values, scores, among, rng):
    """Each number of neighbours on its own, by carrying the scores to each fifth as to any other images."""
    parts = np.array_split(rng.permutation(len(scores)), 5)

    def agreement(k):
        guessed = np.empty(len(scores))
        for held in parts:
            known = np.setdiff1d(np.arange(len(scores)), held)
            guessed[held] = extrapolate_knn(values, known, {"score": scores[known]}, k=k)["score"][held]
        return stats.spearmanr(guessed, scores).statistic

    return max(among, key=agreement)


def test_neighbours_are_looked_for_once_per_fifth_and_the_choice_is_that_of_trying_each(monkeypatch):
    looked = []
    search = extrapolate.nearest

    def nearest(queries, among, k, **more):
        looked.append((len(queries), len(among), k))
        return search(queries, among, k, **more)

    chosen = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(60, 3))
        scores = np.sin((seed + 1) * values[:, 0]) + rng.normal(0, 0.3 * seed, 60)
        wanted = slow_choose_k(values, scores, (3, 5, 10, 20), np.random.default_rng(1))
        looked.clear()
        with monkeypatch.context() as patch:
            patch.setattr(extrapolate, "nearest", nearest)
            found = choose_k(values, scores, among=(3, 5, 10, 20, 50), rng=np.random.default_rng(1))
        assert found == wanted and looked == [(12, 48, 20)] * 5  # 50 of 48 cannot be tried
        chosen.add(found)
    assert len(chosen) > 1


def test_choosing_the_number_of_neighbours_tells_where_it_is_and_stops_between_fifths():
    rng = np.random.default_rng(0)
    values, scores, progress = rng.normal(size=(60, 3)), rng.random(60), Collected()
    choose_k(values, scores, rng=rng, progress=progress)
    assert [one["done"] for one in progress.reports if one["unit"] == "parts"] == [1, 2, 3, 4, 5]
    stopped = Collected(2)
    with pytest.raises(Stopped):
        choose_k(values, scores, rng=rng, progress=stopped)
    assert stopped.reports[-1]["done"] == 2


NOTHING = (torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long))
"""No node shows its label."""


def dense_graph(places, weights):
    """D^-1/2 (A + I) D^-1/2, cell by cell."""
    n = len(places)
    a = np.zeros((n, n))
    for i in range(n):
        for j, w in zip(places[i], weights[i]):
            a[i, j] = a[j, i] = max(a[i, j], a[j, i], w)
    a += np.eye(n)
    degree = a.sum(1)
    return a / np.sqrt(np.outer(degree, degree))


def test_a_graph_convolution_equals_its_dense_twin():
    rng = np.random.default_rng(0)
    places = np.array([rng.permutation([j for j in range(9) if j != i])[:3] for i in range(9)])
    weights = rng.random((9, 3))
    sparse = graph.normalised_graph(places, weights)
    dense = dense_graph(places, weights)
    np.testing.assert_allclose(sparse.toarray(), dense, atol=1e-12)
    net = graph.GraphNet((4, 5, 2), dropout=0.5).eval()
    x = rng.normal(size=(9, 4)).astype(np.float32)
    with torch.no_grad():
        found = net(torch.from_numpy(x), NOTHING, graph.as_torch(sparse)).numpy()
    first, second = (layer for layer in net.layers)
    hidden = np.maximum(dense @ x @ first.weight.detach().numpy().T + first.bias.detach().numpy(), 0)
    wanted = dense @ hidden @ second.weight.detach().numpy().T + second.bias.detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("n_shown", [0, 1, 5, 9])
@pytest.mark.parametrize("hidden", [(), (6,), (6, 5)])
def test_labels_shown_by_number_equal_one_hot_inputs(n_shown, hidden):
    """The twin has what the network does without: a matrix (N, C + D) with a one-hot label beside the features."""
    rng = np.random.default_rng(0)
    places = np.array([rng.permutation([j for j in range(9) if j != i])[:3] for i in range(9)])
    edges = torch.from_numpy(dense_graph(places, rng.random((9, 3))))
    x, wanted = (torch.from_numpy(rng.normal(size=shape)) for shape in ((9, 4), (9, 2)))
    nodes, labels = torch.from_numpy(rng.permutation(9)[:n_shown]), torch.from_numpy(rng.integers(0, 3, n_shown))
    net = graph.GraphNet((3 + 4, *hidden, 2), dropout=0.0).double()

    def twin():
        one_hot = torch.zeros(9, 3, dtype=torch.float64)
        one_hot[nodes, labels] = 1
        out = torch.cat([one_hot, x], dim=1)
        for number, layer in enumerate(net.layers):
            out = edges @ (out @ layer.weight.T) + layer.bias
            out = torch.relu(out) if number < len(hidden) else out
        return out

    answers, gradients = [], []
    for out in (net(x, (nodes, labels), edges.to_sparse()), twin()):
        answers.append(out.detach().numpy().copy())
        gradients.append(torch.autograd.grad(((out - wanted) ** 2).mean(), list(net.parameters())))
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-12)
    for mine, theirs in zip(*gradients):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-12)


def test_nothing_as_wide_as_the_classes_is_made(monkeypatch):
    """With 5,000 classes one matrix (N, C) were 100 times the features."""
    values, known_idx, known, labels = sides()
    widest = []
    forward = torch.nn.functional.linear

    def linear(x, weight):
        widest.append(x.shape[1])
        return forward(x, weight)

    monkeypatch.setattr(graph.F, "linear", linear)
    graph.extrapolate_graph(
        values,
        known_idx,
        known,
        labels,
        n_classes=5000,
        judged_by="dual",
        settings=GraphSettings(n_neighbours=5, hidden=(16,), epochs=2),
        seed=0,
        progress=Collected(),
    )
    assert set(widest) == {3, 16}


def test_a_graph_network_learns_that_one_side_is_harder():
    rng = np.random.default_rng(0)
    side = np.arange(80) % 2
    values = rng.normal(0, 0.2, (80, 3)) + side[:, None]
    known_idx = rng.permutation(80)[:24]
    known = {"dual": 0.1 + 0.3 * side[known_idx] + rng.normal(0, 0.01, 24), "aum": -side[known_idx].astype(float)}
    settings = {
        "n_classes": 2,
        "judged_by": "dual",
        "settings": GraphSettings(n_neighbours=5, hidden=(16,), epochs=60),
        "seed": 0,
    }

    def run(progress):
        return graph.extrapolate_graph(values, known_idx, known, side[known_idx], **settings, progress=progress)

    found = run(Collected())
    rest = np.setdiff1d(np.arange(80), known_idx)
    assert found["dual"][rest][side[rest] == 1].min() > found["dual"][rest][side[rest] == 0].max()
    np.testing.assert_array_equal(found["aum"][known_idx], known["aum"])
    np.testing.assert_array_equal(found["dual"], run(Collected())["dual"])
    with pytest.raises(Stopped):
        run(Collected(3))


def sides(n=80, n_known=40):
    """Features (n, 3) of two groups, the known images among them, their scores and labels."""
    rng = np.random.default_rng(0)
    side = np.arange(n) % 2
    values = rng.normal(0, 0.2, (n, 3)) + side[:, None]
    known_idx = rng.permutation(n)[:n_known]
    return values, known_idx, {"dual": 0.3 * side[known_idx] + rng.normal(0, 0.05, n_known)}, side[known_idx]


def watched(monkeypatch, labels, *, known=None, judged_by="dual", epochs=8, lr=0.01):
    """What the graph network saw and answered: a list of (training, one-hot labels (N, 2), answers (N, S))."""
    values, known_idx, usual, _ = sides()
    seen = []
    forward = graph.GraphNet.forward

    def watch(net, x, shown, edges):
        out = forward(net, x, shown, edges)
        one_hot = np.zeros((len(x), 2))
        one_hot[shown[0].numpy(), shown[1].numpy()] = 1
        seen.append((net.training, one_hot, out.detach().numpy().copy()))
        return out

    monkeypatch.setattr(graph.GraphNet, "forward", watch)
    found = graph.extrapolate_graph(
        values,
        known_idx,
        known or usual,
        labels,
        n_classes=2,
        judged_by=judged_by,
        settings=GraphSettings(n_neighbours=5, hidden=(16,), epochs=epochs, lr=lr),
        seed=0,
        progress=Collected(),
    )
    monkeypatch.setattr(graph.GraphNet, "forward", forward)
    return seen, found


def judgements(seen):
    """The first answer after each step of training: the one the epoch is judged by."""
    return [after for before, after in zip(seen, seen[1:]) if before[0]]


def test_the_labels_of_held_out_images_do_not_touch_what_they_are_judged_by(monkeypatch):
    _, known_idx, _, labels = sides()
    held = streams.rng(streams.derived(0, Purpose.GRAPH_RUN), Purpose.SPLIT).permutation(40)[:4]
    turned = labels.copy()
    turned[held] = 1 - turned[held]
    first, second = (watched(monkeypatch, one)[0] for one in (labels, turned))
    assert len(judgements(first)) == len(judgements(second)) == 8
    for one, other in zip(judgements(first), judgements(second)):
        np.testing.assert_array_equal(one[2], other[2])
        assert not one[1][known_idx[held]].any()
        assert one[1].sum() == 36  # all learned images have their label, as in use


def test_half_of_the_learned_images_go_without_their_label_in_each_epoch(monkeypatch):
    _, known_idx, _, labels = sides()
    seen, found = watched(monkeypatch, labels)
    shown = [one_hot for training, one_hot, _ in seen if training]
    learned = streams.rng(streams.derived(0, Purpose.GRAPH_RUN), Purpose.SPLIT).permutation(40)[4:]
    right = np.zeros((80, 2))
    right[known_idx[learned], labels[learned]] = 1
    for one_hot in shown:
        assert (one_hot <= right).all() and 8 <= one_hot.sum() <= 28  # of 36
    assert len({one_hot.tobytes() for one_hot in shown}) == 8, "each epoch leaves out others"
    np.testing.assert_array_equal(found["dual"], watched(monkeypatch, labels)[1]["dual"])


def test_every_label_that_is_known_serves_the_answer(monkeypatch):
    _, known_idx, _, labels = sides()
    seen, found = watched(monkeypatch, labels)
    last = [(one_hot, answers) for training, one_hot, answers in seen if not training and one_hot.sum() == 40]
    assert last and all((one_hot[known_idx, labels] == 1).all() for one_hot, _ in last)
    rest = np.setdiff1d(np.arange(80), known_idx)
    _, _, known, _ = sides()
    scale, mean = known["dual"].std(), known["dual"].mean()
    np.testing.assert_allclose(found["dual"][rest], last[-1][1][rest, 0] * scale + mean, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("judged_by", ["dual", "aum"])
def test_the_epoch_counts_that_carries_the_score_chosen_by_best(judged_by, monkeypatch):
    _, known_idx, known, labels = sides()
    known["aum"] = np.random.default_rng(1).normal(size=40)  # chance: learning it makes held-out errors larger
    seen, found = watched(monkeypatch, labels, known=known, judged_by=judged_by, epochs=40, lr=0.05)
    wanted = np.stack(list(known.values()), axis=1)
    mean, scale = wanted.mean(axis=0), wanted.std(axis=0)
    held = streams.rng(streams.derived(0, Purpose.GRAPH_RUN), Purpose.SPLIT).permutation(40)[:4]
    apart = np.array([answers[known_idx[held]] - ((wanted - mean) / scale)[held] for _, _, answers in judgements(seen)])
    errors = (apart**2).mean(axis=1)  # (epochs, scores)
    best_of_each = errors.argmin(axis=0).tolist()
    assert len({*best_of_each, 39}) == 3, "another epoch for each score, and not the last"
    best = best_of_each[list(known).index(judged_by)]

    judged = [place for place, before in enumerate(seen) if before[0]][best] + 1
    training, shown, answers = seen[judged + 1]
    assert not training and shown.sum() == 40
    rest = np.setdiff1d(np.arange(80), known_idx)
    for number, name in enumerate(known):  # all scores from that epoch
        np.testing.assert_allclose(found[name][rest], answers[rest, number] * scale[number] + mean[number], rtol=1e-5)
