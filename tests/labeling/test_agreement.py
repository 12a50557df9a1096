"""Agreement against slow twins written from the definitions, and the queue of what to settle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from semiprune_core.labeling.agreement import agreement, cohen_kappa, disagreements, fleiss_kappa, settle


def _slow_cohen(first, second):
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second)) / n
    chance = sum((list(first).count(c) / n) * (list(second).count(c) / n) for c in set(first) | set(second))
    return None if chance == 1 else (observed - chance) / (1 - chance)


def _slow_fleiss(counts):
    """Every ordered pair of raters of an image, then chance from all labels together."""
    observed = []
    for row in counts:
        given = [c for c, times in enumerate(row) for _ in range(times)]
        pairs = list(itertools.permutations(given, 2))
        observed.append(sum(a == b for a, b in pairs) / len(pairs))
    total = sum(map(sum, counts))
    chance = sum((sum(row[c] for row in counts) / total) ** 2 for c in range(len(counts[0])))
    return None if chance == 1 else (sum(observed) / len(observed) - chance) / (1 - chance)


@pytest.mark.parametrize("seed", range(8))
def test_kappas_equal_their_slow_twins(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, 50)
    second = np.where(rng.random(50) < 0.7, first, rng.integers(0, 4, 50))
    assert cohen_kappa(first, second) == pytest.approx(_slow_cohen(first.tolist(), second.tolist()))
    counts = rng.multinomial(3, [0.5, 0.3, 0.2], size=20)
    counts[::2, 0] += rng.integers(0, 2, 10)  # images with different numbers of raters
    assert fleiss_kappa(counts) == pytest.approx(_slow_fleiss(counts.tolist()))


def test_the_ends_of_kappa():
    same, other = np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0])
    assert cohen_kappa(same, same) == 1 and cohen_kappa(same, other) == -1
    assert cohen_kappa(np.zeros(3, int), np.zeros(3, int)) is None  # one class only: chance explains everything
    assert fleiss_kappa(np.array([[2, 0], [2, 0]])) is None and fleiss_kappa(np.array([[2, 0], [0, 2]])) == 1


def test_fleiss_published_example():
    """The worked example with 10 subjects and 14 raters of Wikipedia's article "Fleiss' kappa": 0.210."""
    rows = "0 0 0 0 14;0 2 6 4 2;0 0 3 5 6;0 3 9 2 0;2 2 8 1 1;7 7 0 0 0;3 2 6 3 0;2 5 3 2 2;6 5 2 1 0;0 2 2 3 7"
    counts = np.array([[int(cell) for cell in row.split()] for row in rows.split(";")])
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=0.0005)


def test_two_annotators_get_cohen_and_three_get_fleiss(store, event):
    assert agreement(store).raw is None
    for image, (first, second) in enumerate([(0, 0), (1, 1), (0, 1), (1, 0), (0, 0)]):
        store.append([event("label", image, first), event("label", image, second, annotator="ben")])
    store.append([event("label", 99, 0)])  # labeled once: says nothing about agreement
    found = agreement(store)
    assert (found.n_images, found.annotators, found.kind) == (5, ("ana", "ben"), "cohen")
    assert found.raw == pytest.approx(0.6) and found.kappa == pytest.approx(
        _slow_cohen([0, 1, 0, 1, 0], [0, 1, 1, 0, 0])
    )
    store.append([event("label", 0, 1, annotator="eva")])
    found = agreement(store)
    assert found.kind == "fleiss" and found.raw == pytest.approx((1 / 3 + 1 + 0 + 0 + 1) / 5)


def test_the_queue_of_disagreements_empties_by_settling(store, event):
    store.append([event("label", 2**64 - 1, 0), event("label", 2**64 - 1, 1, annotator="ben")])
    store.append([event("label", 4, 2), event("label", 4, 2, annotator="ben")])
    store.append([event("label", 5, 2), event("skip", 5, annotator="ben")])
    (found,) = disagreements(store)
    assert found.image_id == 2**64 - 1 and found.votes == {"ana": 0, "ben": 1}
    ack = settle(store, found.image_id, 1, annotator="eva", event_id="settled", expected_version=found.version)
    assert ack.status == "saved" and disagreements(store) == []
    assert agreement(store).raw == pytest.approx(0.5)  # the votes stay what they were
    store.append([event("undo", annotator="eva")])
    again = disagreements(store)[0]
    assert settle(store, again.image_id, 0, annotator="ana", event_id="s2").status == "conflict"
    assert (
        settle(store, again.image_id, 0, annotator="ana", event_id="s2", expected_version=again.version).status
        == "saved"
    )


def test_reference_labels_are_nobodys_vote(store, event):
    store.append([event("label", 1, 0, annotator="reference", source="reference"), event("label", 1, 1)])
    assert agreement(store).n_images == 0 and disagreements(store) == []
