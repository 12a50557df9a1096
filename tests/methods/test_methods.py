"""Methods: the paper's recipes by name, through the one door `select_coreset`."""

import json

import numpy as np
import pytest

from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.methods import METHODS, Method, needs_of, score_title, select_coreset
from semiprune_core.records import Evidence, coreset_size
from semiprune_core.scores import SCORES


@pytest.fixture
def evidence():
    rng = np.random.default_rng(0)
    own = {METHODS[name].score for name in METHODS} - {None, *SCORES}
    scores = {name: rng.random(80) for name in (*SCORES, *sorted(own))}
    return Evidence(80, scores, mean_prob=scores["mean_prob"], features=rng.random((80, 3)))


def test_the_papers_methods_are_there():
    assert {"semi_aum_cutoff", "semi_dual_beta", "semi_el2n", "semi_forgetting", "random"} <= set(METHODS)
    assert {"fully_supervised", "prototypicality", "zcore", "elfs", "elfs_self"} <= set(METHODS)
    assert {"cluster_el2n", "cluster_forgetting", "extrapolation_knn", "extrapolation_gnn"} <= set(METHODS)


def test_a_score_has_a_title_wherever_it_comes_from():
    assert (score_title("aum"), score_title("zcore"), score_title("odd")) == (SCORES.title("aum"), "Coverage", "odd")


@pytest.mark.parametrize("name, score", [("zcore", "zcore"), ("prototypicality", "prototypicality")])
def test_methods_by_features_keep_the_highest_of_their_own_score(name, score, evidence):
    kept = select_coreset(evidence, name, pruning_ratio=0.75, seed=0).indices
    assert kept.tolist() == np.argsort(-evidence.scores[score])[:20].tolist()


@pytest.mark.parametrize("name", ["extrapolation_knn", "extrapolation_gnn"])
def test_extrapolation_keeps_the_highest_dynamic_uncertainty(name, evidence):
    kept = select_coreset(evidence, name, pruning_ratio=0.75, seed=0).indices
    assert kept.tolist() == np.argsort(-evidence.scores["dynamic_uncertainty"])[:20].tolist()


@pytest.mark.parametrize("baseline, own", [("elfs", "semi_aum_cutoff"), ("fully_supervised", "semi_dual_beta")])
def test_a_baseline_with_the_same_selector_starts_from_the_same_knobs(baseline, own, evidence):
    for ratio in (0.3, 0.9):
        theirs, ours = (select_coreset(evidence, name, pruning_ratio=ratio, seed=0) for name in (baseline, own))
        assert theirs.settings == ours.settings


@pytest.mark.parametrize("name", list(METHODS))
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9, 0.99])
def test_every_method_keeps_exactly_the_budget_and_says_how(name, ratio, evidence):
    coreset = select_coreset(evidence, name, pruning_ratio=ratio, seed=1)
    assert len(coreset.indices) == coreset_size(80, ratio)
    assert (coreset.method, coreset.seed, coreset.pruning_ratio, coreset.n_pool) == (name, 1, ratio, 80)
    written = json.loads(json.dumps(coreset.settings))
    for by_name in (name, written["selector"]):
        chosen = {**written["knobs"], **written["options"]}
        again = select_coreset(evidence, by_name, pruning_ratio=ratio, seed=1, **chosen)
        assert again.indices.tolist() == coreset.indices.tolist()
        assert again.settings == coreset.settings


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_tells_its_facts_and_needs_no_more_than_it_says(name, evidence):
    facts = METHODS.facts(name)
    assert facts["explain"].endswith(".") and facts["title"]
    needs = needs_of(name)
    scores = {need: evidence.scores[need] for need in needs if need in evidence.scores}
    least = Evidence(80, scores, mean_prob=evidence.mean_prob if "mean_prob" in needs else None)
    assert len(select_coreset(least, name, pruning_ratio=0.5, seed=0).indices) == 40
    if needs:
        with pytest.raises(MissingStepError, match=needs[0]):
            select_coreset(Evidence(80), name, pruning_ratio=0.5, seed=0)


@pytest.mark.parametrize(
    "name, score, hardest_last",
    [("semi_aum_cutoff", "aum", True), ("semi_el2n", "el2n", False), ("semi_forgetting", "forgetting", False)],
)
def test_cutoff_methods_look_at_their_own_score(name, score, hardest_last, evidence):
    kept = select_coreset(evidence, name, pruning_ratio=0.5, seed=0, cutoff=0.25).indices
    by_score = np.argsort(evidence.scores[score])
    from_hard = by_score if hardest_last else by_score[::-1]
    assert kept.tolist() == from_hard[20:60].tolist()


def test_semi_dual_uses_the_defaults_of_small_pools_unless_told(evidence):
    assert select_coreset(evidence, "semi_dual_beta", pruning_ratio=0.9, seed=0).settings["knobs"]["c_d"] == 3.0
    assert select_coreset(evidence, "semi_dual_beta", pruning_ratio=0.5, seed=0).settings["knobs"]["c_d"] == 2.0
    told = select_coreset(evidence, "semi_dual_beta", pruning_ratio=0.5, seed=0, c_d=4)
    assert told.settings["knobs"]["c_d"] == 4


def test_an_unknown_name_or_knob_gets_a_hint(evidence):
    with pytest.raises(UnknownNameError, match="Did you mean 'semi_dual_beta'.* Known: .*stratified"):
        select_coreset(evidence, "semi_daul_beta", pruning_ratio=0.5, seed=0)
    with pytest.raises(InvalidSettingError, match="'beta' has no setting 'cutoff'. It has: c_d"):
        select_coreset(evidence, "semi_dual_beta", pruning_ratio=0.5, seed=0, cutoff=0.1)
    with pytest.raises(InvalidSettingError, match="It has: none"):
        select_coreset(evidence, "random", pruning_ratio=0.5, seed=0, cutoff=0.1)


@pytest.mark.parametrize("ratio", [-0.1, 1.0, float("nan")])
def test_a_ratio_outside_its_range_is_refused(ratio, evidence):
    with pytest.raises(InvalidSettingError, match="pruning_ratio"):
        select_coreset(evidence, "random", pruning_ratio=ratio, seed=0)


def test_a_method_may_bring_its_own_score_from_features(evidence, monkeypatch):
    def far(evidence, *, rng, power=1.0):
        return np.linalg.norm(evidence.features, axis=1) ** power

    monkeypatch.setitem(METHODS._things, "far", Method("top", "far", "none", scorer=far, higher_is="harder"))
    monkeypatch.setitem(METHODS._facts, "far", {"title": "Far", "needs": ("features",)})
    kept = select_coreset(evidence, "far", pruning_ratio=0.75, seed=0, power=2.0, keep="hardest")
    assert kept.indices.tolist() == np.argsort(-np.linalg.norm(evidence.features, axis=1))[:20].tolist()
    assert kept.settings["knobs"]["power"] == 2.0 and kept.settings["knobs"]["keep"] == "hardest"
    assert needs_of("far") == ("features",)


def test_a_score_of_its_own_must_be_finite(evidence, monkeypatch):
    broken = Method("top", "broken", "none", scorer=lambda evidence, *, rng: np.full(80, np.nan), higher_is="harder")
    monkeypatch.setitem(METHODS._things, "broken", broken)
    with pytest.raises(InvalidDataError, match="broken holds 80 values"):
        select_coreset(evidence, "broken", pruning_ratio=0.5, seed=0)


def test_levels_of_the_house_hold():
    """Scores, selection and methods import neither torch nor streamlit."""
    import subprocess
    import sys

    code = (
        "import sys, semiprune_core.methods, semiprune_core.results.trajectory_store\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'streamlit', 'pandas')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
