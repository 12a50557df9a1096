"""Every selector, with every option: exactly the budget, each image once, the same for the same seed."""

import itertools

import numpy as np
import pytest

from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError
from semiprune_core.methods import select_coreset
from semiprune_core.records import Evidence, coreset_size
from semiprune_core.selection import SELECTORS

RATIOS = [percent / 100 for percent in range(100)]
OPTIONS = [
    dict(zip(("class_balanced", "keep_human", "same_annotation_budget", "min_per_class", "drop_duplicates"), values))
    for values in itertools.product((False, True), (False, True), (False, True), (0, 1), (False, True))
] + [
    {"class_balanced": False, "keep_human": human, "same_annotation_budget": False, "min_per_class": 0, **more}
    for human in (False, True)
    for more in ({"drop_duplicates": False, "class_share": 0.75}, {"drop_duplicates": True, "class_share": 1.0})
]


def plain(rng, n):
    return rng.uniform(-1, 1, n), rng.random(n) * 0.3, rng.random(n)


def constant(rng, n):
    return np.full(n, 0.5), np.full(n, 0.1), np.full(n, 0.5)


def tied(rng, n):
    return rng.integers(0, 3, n) / 4, rng.integers(0, 3, n) / 10, rng.integers(0, 3, n) / 2


def without_weight(rng, n):
    return rng.uniform(-1, 1, n), np.zeros(n), rng.integers(0, 2, n) * 1.0


def at_the_poles(rng, n):
    return rng.uniform(-1, 1, n), rng.random(n) * 0.3, rng.integers(0, 2, n) * 1.0


def one_far_away(rng, n):
    values = np.full(n, 1e-300)
    values[0] = 1e300
    return values, values.clip(0, 1), np.full(n, 1 - 1e-16)


KINDS = [plain, constant, tied, without_weight, at_the_poles, one_far_away]


def make(kind, n, seed=0, n_classes=4):
    rng = np.random.default_rng(seed)
    aum, dual, mean_prob = kind(rng, n)
    first_like_it = np.where(rng.random(n) < 0.1, 0, np.arange(n))
    return Evidence(
        n,
        {"aum": aum, "dual": dual},
        mean_prob=mean_prob,
        labels=rng.integers(0, n_classes, n),
        human_mask=rng.random(n) < 0.1,
        duplicate_of=first_like_it,
    )


def assert_exact(indices, budget, n):
    assert indices.shape == (budget,)
    found = np.zeros(n, dtype=bool)
    found[indices] = True
    assert found.sum() == budget


@pytest.mark.parametrize("name", list(SELECTORS))
@pytest.mark.parametrize("start", [1, 51, 101, 151])
def test_every_selector_returns_exactly_the_budget(name, start):
    """All N from 1 to 200 and all ratios from 0 to 0.99, going through the kinds of evidence."""
    select, rng = SELECTORS[name], np.random.default_rng(0)
    for n in range(start, start + 50):
        kinds = [make(kind, n) for kind in KINDS]
        for number, ratio in enumerate(RATIOS):
            budget = coreset_size(n, ratio)
            assert_exact(select(kinds[(n + number) % len(kinds)], budget, rng=rng), budget, n)


@pytest.mark.parametrize("name", list(SELECTORS))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 57])
def test_every_kind_of_evidence_meets_every_budget(name, kind, n):
    evidence, select = make(kind, n), SELECTORS[name]
    for budget in range(n + 1):
        assert_exact(select(evidence, budget, rng=np.random.default_rng(budget)), budget, n)


@pytest.mark.parametrize("name", list(SELECTORS))
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(str(int(v)) for v in options.values()))
def test_options_keep_the_budget_and_their_word(name, options):
    asked = 0
    for n, ratio in [(1, 0.0), (7, 0.0), (40, 0.5), (60, 0.3), (199, 0.77), (200, 0.0), (200, 0.9)]:
        evidence = make(plain if n % 2 else tied, n)
        budget = coreset_size(n, ratio)
        try:
            coreset = select_coreset(evidence, name, pruning_ratio=ratio, seed=3, **options)
        except InvalidSettingError as error:
            assert "Lower it" in str(error) or "keep duplicates" in str(error)
            continue
        asked += 1
        assert_exact(coreset.indices, budget, n)
        again = select_coreset(evidence, name, pruning_ratio=ratio, seed=3, **options)
        assert coreset.indices.tolist() == again.indices.tolist()
        human = evidence.human_mask
        keeps_human = options["keep_human"] or options["same_annotation_budget"]
        if keeps_human:
            assert coreset.mask[human].all()
        if options["drop_duplicates"]:
            kept = coreset.mask & ~(human if keeps_human else np.zeros(n, dtype=bool))
            contents = evidence.duplicate_of[kept]
            assert len(set(contents)) == len(contents)
        if options["min_per_class"]:
            assert set(evidence.labels[coreset.indices]) == set(evidence.labels)
    assert asked >= 4


@pytest.mark.parametrize("name", list(SELECTORS))
def test_another_seed_gives_other_choices_where_chance_decides(name):
    evidence = make(constant, 100)
    first, second = (select_coreset(evidence, name, pruning_ratio=0.5, seed=seed).indices for seed in (0, 1))
    assert set(first) != set(second)


@pytest.mark.parametrize("name", list(SELECTORS))
def test_equal_images_are_not_told_apart_by_position(name):
    """A pool sorted by class must not lose its last classes to ties."""
    evidence = make(constant, 400)
    kept = select_coreset(evidence, name, pruning_ratio=0.5, seed=0).mask
    assert 60 < kept[:200].sum() < 140


@pytest.mark.parametrize("name", [name for name in SELECTORS if SELECTORS.facts(name)["nested"]])
@pytest.mark.parametrize("kind", [plain, tied, constant])
def test_nested_selectors_give_a_part_of_the_larger_coreset(name, kind):
    evidence, select = make(kind, 60), SELECTORS[name]
    knobs = {"cutoff": 0.1} if name == "cutoff" else {}
    larger = select(evidence, 50, rng=np.random.default_rng(5), **knobs)
    for budget in (0, 1, 20, 49):
        smaller = select(evidence, budget, rng=np.random.default_rng(5), **knobs)
        assert larger[:budget].tolist() == smaller.tolist()


@pytest.mark.parametrize("name", list(SELECTORS))
def test_every_selector_tells_its_facts_and_what_it_misses(name):
    facts = SELECTORS.facts(name)
    assert facts["explain"].endswith(".") and isinstance(facts["nested"], bool)
    for need in facts["needs"]:
        scores = {other: np.zeros(3) for other in ("aum", "dual") if other != need}
        lacking = Evidence(3, scores, mean_prob=None if need == "mean_prob" else np.zeros(3))
        with pytest.raises(MissingStepError, match=need):
            SELECTORS[name](lacking, 1, rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", list(SELECTORS))
@pytest.mark.parametrize("budget", [-1, 4])
def test_a_budget_beyond_the_pool_is_refused(name, budget):
    with pytest.raises(InvalidSettingError, match="budget"):
        SELECTORS[name](make(plain, 3), budget, rng=np.random.default_rng(0))


@pytest.mark.parametrize("column", ["aum", "dual", "mean_prob"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_evidence_that_is_not_finite_never_reaches_a_selector(column, bad):
    values = np.array([0.1, bad, 0.3])
    with pytest.raises(InvalidDataError, match=f"{column} holds 1 values that are not finite"):
        Evidence(
            3, {} if column == "mean_prob" else {column: values}, mean_prob=values if column == "mean_prob" else None
        )
