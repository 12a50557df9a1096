"""The parts of a head: logistic regression, propagation, powers; each beside a slow twin where there is one."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from semiprune_core.learning.frozen.experts import NEVER, Span, fit_powers, penalty_path, propagated, together
from semiprune_core.learning.frozen.logistic import fit_logistic
from semiprune_core.learning.frozen.neighbours import nearest, unit_rows
from semiprune_core.learning.frozen.prepare import Scaling, prepare_pool
from semiprune_core.learning.frozen.propagation import neighbour_graph, propagate
from semiprune_core.learning.frozen.results import Views
from semiprune_core.learning.frozen.settings import FrozenSettings
from tests.learning.frozen.clouds import make_clouds


def slope(head, x, labels, penalty):
    """The derivative of the loss, written from its definition."""
    probs = softmax(x @ head.weights + head.bias, axis=1)
    probs[np.arange(len(x)), labels] -= 1
    return x.T @ probs / len(x) + penalty * head.weights, probs.mean(0)


@pytest.mark.parametrize("penalty", [1e-1, 1e-3])
def test_logistic_regression_ends_where_the_loss_is_flat(penalty):
    x, labels = make_clouds(80, n_dims=10)
    head = fit_logistic(x, labels, 4, penalty=penalty)
    for part in slope(head, x, labels, penalty):
        assert np.abs(part).max() < 1e-4


def test_a_warm_start_leads_to_the_same_place():
    x, labels = make_clouds(80, n_dims=10)
    cold = fit_logistic(x, labels, 4, penalty=1e-2)
    warm = fit_logistic(x, labels, 4, penalty=1e-2, start=fit_logistic(x, labels, 4, penalty=1.0))
    assert np.allclose(cold.logits(x), warm.logits(x), atol=1e-2)


def test_a_class_without_a_label_is_never_predicted():
    x, labels = make_clouds(80, n_dims=10)
    head = fit_logistic(x[labels != 2], labels[labels != 2], 4, penalty=1e-2)
    assert (head.logits(x).argmax(1) != 2).all()


def test_in_the_span_of_the_labeled_rows_the_head_is_the_same():
    x, labels = make_clouds(30, n_dims=60)
    span = Span.of(x)
    (narrow,) = penalty_path(span.labeled, labels, 4, [1e-2])
    whole = fit_logistic(x, labels, 4, penalty=1e-2)
    assert span.labeled.shape[1] <= 30
    assert np.allclose(log_softmax(span.widen(narrow).logits(x), 1), log_softmax(whole.logits(x), 1), atol=0.02)


def test_neighbours_are_those_of_a_full_sort():
    rows = unit_rows(make_clouds(60)[0])
    places, cosines = nearest(rows, 5)
    everything = rows @ rows.T
    np.fill_diagonal(everything, -np.inf)
    assert np.allclose(cosines, -np.sort(-everything, axis=1)[:, :5], atol=1e-6)
    assert np.allclose(np.take_along_axis(everything, places, 1), cosines, atol=1e-6)


def test_neighbours_do_not_depend_on_the_blocks(monkeypatch):
    rows = unit_rows(make_clouds(60)[0])
    whole = nearest(rows, 5)[0]
    monkeypatch.setattr("semiprune_core.learning.frozen.neighbours.CELLS", 7 * 60)
    assert (nearest(rows, 5)[0] == whole).all()


def test_propagation_solves_its_equation():
    rows = unit_rows(make_clouds(50)[0])
    graph = neighbour_graph(*nearest(rows, 4))
    sources = np.eye(50, 3, dtype=np.float32)
    exact = 0.2 * np.linalg.solve(np.eye(50) - 0.8 * graph.toarray(), sources)
    assert np.allclose(propagate(graph, sources, alpha=0.8, steps=200), exact, atol=1e-5)
    assert np.allclose(graph.toarray(), graph.toarray().T)


def test_labels_flow_to_their_own_cloud():
    x, truth = make_clouds(200, noise=0.4)
    pool = prepare_pool(x, FrozenSettings())
    first = np.array([np.flatnonzero(truth == label)[0] for label in range(4)])
    arrived = propagated(pool, first, truth[first], 5, alpha=0.9)
    assert (arrived.argmax(1) == truth).mean() > 0.95
    assert (arrived[:, 4] == NEVER).all()


def test_a_kernel_gives_what_the_graph_gives():
    x, truth = make_clouds(100)
    pool = prepare_pool(x, FrozenSettings())
    some = np.arange(0, 100, 7)
    slow, fast = (propagated(one, some, truth[some], 4, alpha=0.9) for one in (pool, pool.with_kernel(0.9)))
    assert np.allclose(slow, fast, atol=1e-4)


def test_an_expert_that_only_guesses_gets_no_say():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    good = log_softmax(3 * np.eye(3)[labels] + rng.normal(size=(400, 3)), 1)
    bad = log_softmax(rng.normal(size=(400, 3)), 1)
    powers, _ = fit_powers([good, bad], labels)
    assert powers[0] > 0.5
    assert powers[1] < 0.15 * powers[0]


def test_powers_make_an_overconfident_expert_modest():
    rng = np.random.default_rng(0)
    truth = log_softmax(rng.normal(size=(3000, 4)), 1)
    labels = np.array([rng.choice(4, p=np.exp(row)) for row in truth])
    (power,), _ = fit_powers([4 * truth], labels)
    assert power == pytest.approx(0.25, abs=0.04)
    assert np.allclose(together([4 * truth], np.array([0.25])), np.exp(truth))


def test_scaling_gives_length_one_and_forgets_dimensions_that_never_change():
    x, _ = make_clouds(100)
    x[:, 3] = 0
    rows = Scaling.of(x)(x)
    assert (rows**2).sum(1).mean() == pytest.approx(1, abs=1e-4)
    assert (rows[:, 3] == 0).all()


def test_strong_views_are_scaled_as_the_images_are():
    x, _ = make_clouds(60)
    pool = prepare_pool(x, FrozenSettings(), views=Views(strong=x[None]))
    assert np.allclose(pool.strong[0], pool.rows, atol=1e-6)


def test_several_encoders_stand_side_by_side():
    x, _ = make_clouds(60)
    y, _ = make_clouds(60, n_dims=25, seed=1)
    pool = prepare_pool([x, y], FrozenSettings(smooth=False))
    assert pool.rows.shape == (60, 65)
    assert (pool.rows**2).sum(1).mean() == pytest.approx(1, abs=1e-3)
