"""What a search tries, what it makes of the results, and where its values go."""

import numpy as np
import pytest

from semiprune_core import search
from semiprune_core.artifacts import open_artifact
from semiprune_core.coresets import CoresetRequest, build_coreset, build_coresets, with_searched
from semiprune_core.errors import InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.results import latest_scores
from semiprune_core.scored import settings_of
from semiprune_core.scoring import with_settings
from semiprune_core.search import (
    SearchRun,
    SearchSettings,
    best_epochs,
    best_values,
    make_grid,
    search_settings,
    submit_search,
    trial_table,
    write_search,
)
from semiprune_core.selection import Basis, default_knobs
from semiprune_core.starting import searched, searched_knobs, starting_knobs
from semiprune_core.trials import Trial
from tests.scored_projects import add_clusters, add_pseudo, add_trajectory, make_pool, make_scored

AUM, DUAL = "semi_aum_cutoff", "semi_dual_beta"


def result(right, n=100):
    return {"n_train": 10, "n_test": n, "n_correct": right, "seconds": 1.0}


def table(rows):
    """A table from (method, ratio, seed, value or None, T or None, right of 100)."""
    found = []
    for method, ratio, seed, value, n_epochs, right in rows:
        knob = {AUM: "cutoff", "elfs": "cutoff", DUAL: "c_d"}.get(method)
        trial = Trial(
            method=method,
            pruning_ratio=ratio,
            seed=seed,
            knobs={} if value is None else {knob: value},
            score_changes={} if n_epochs is None else {"dual_epochs": n_epochs},
        )
        found.append((trial, result(right)))
    return trial_table(found)


def keep(project, found, settings=None, n_epochs=None, scored=None):
    """A search artifact with these trials, for ``scored`` or the project's latest scores."""
    scored = scored or latest_scores(project)
    settings = settings or SearchSettings(scores=scored.artifact.id)
    inputs = {**scored.artifact.inputs, "scores": scored.artifact.hash}
    with project.draft("search", settings=settings.to_json(), inputs=inputs) as draft:
        draft.facts.update(write_search(draft.folder, found, best_values(found, n_epochs)))
        draft.facts.update(score_settings=settings_of(scored).to_json(), minutes=1.0, n_compared=100)
    return SearchRun(open_artifact(draft.folder))


def of_elfs(project, scored, best=0.2):
    """A search for ELFS that found ``best`` at 0.7."""
    rows = [
        ("elfs" if method == AUM else method, ratio, seed, best if value == 0.2 else value, *rest)
        for method, ratio, seed, value, *rest in GOOD
    ]
    return keep(project, table(rows), SearchSettings(method="elfs", scores=scored.artifact.id), scored=scored)


GOOD = [
    (search.RANDOM, 0.7, 0, None, None, 60),
    (search.RANDOM, 0.7, 1, None, None, 64),
    (AUM, 0.7, 0, 0.0, None, 50),
    (AUM, 0.7, 1, 0.0, None, 56),
    (AUM, 0.7, 0, 0.2, None, 70),
    (AUM, 0.7, 1, 0.2, None, 75),
]


@pytest.mark.parametrize(
    "ratio, cutoffs",
    [(0.3, (0.0, 0.1, 0.2, 0.3)), (0.05, (0.0,)), (0.25, (0.0, 0.1, 0.2)), (0.1, (0.0, 0.1))],
)
def test_cutoffs_go_from_0_to_the_ratio(ratio, cutoffs):
    grid = make_grid(SearchSettings(ratios=(ratio,)), 1000, 30, 10)
    assert grid.values[ratio] == cutoffs and not grid.epochs and not grid.epoch_trials()


def test_random_is_a_candidate_at_every_ratio_with_every_seed():
    grid = make_grid(SearchSettings(ratios=(0.3, 0.9), seeds=(4, 5, 6)), 1000, 30, 10)
    trials = grid.trials()
    assert {(t.pruning_ratio, t.seed) for t in trials if t.method == "random"} == {
        (ratio, seed) for ratio in (0.3, 0.9) for seed in (4, 5, 6)
    }
    assert len(trials) == 3 * (1 + 4 + 1 + 10)
    assert [t.seed for t in trials] == sorted(t.seed for t in trials), "every value has a first seed before a second"


def test_dual_finds_t_first_at_03_and_then_c_d():
    settings = SearchSettings(method=DUAL, ratios=(0.3, 0.7))
    grid = make_grid(settings, 1000, 30, 10)
    first = grid.epoch_trials()
    assert {t.score_changes["dual_epochs"] for t in first} == {10, 20, 30}
    assert {t.pruning_ratio for t in first} == {0.3} and len(first) == 6
    then = grid.value_trials(20)
    assert {t.score_changes.get("dual_epochs") for t in then} == {20, None}
    assert {t.knobs["c_d"] for t in then if t.method == DUAL} == set(search.C_D_GRID)
    for n_epochs in grid.epochs:  # the count does not depend on which T wins
        assert len({t.key for t in (*first, *grid.value_trials(n_epochs))}) == len(grid.trials())


def test_the_papers_values_limit_the_grid_to_themselves_and_neighbours():
    grid = make_grid(SearchSettings(start="paper:cifar100", ratios=(0.3, 0.9)), 50_000, 200, 10)
    assert grid.values == {0.3: (0.0, 0.1, 0.2), 0.9: (0.6, 0.7, 0.8)}
    grid = make_grid(SearchSettings(start="paper:cifar10", ratios=(0.3, 0.9)), 50_000, 200, 10)
    assert grid.values[0.3] == (0.0, 0.1), "a cutoff below 0 is not legal"
    grid = make_grid(SearchSettings(method=DUAL, start="paper:imagenet1k", ratios=(0.5,)), 50_000, 200, 10)
    assert grid.epochs == (60,) and grid.values[0.5] == (10.0, 11.0, 12.0) and not grid.epoch_trials()
    short = make_grid(SearchSettings(method=DUAL, start="paper:imagenet1k", ratios=(0.5,)), 5_000, 20, 10)
    assert short.epochs == (20,)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"method": "random"}, "nothing to search for"),
        ({"ratios": ()}, "ratios"),
        ({"ratios": (0.0,)}, "ratio must be above 0"),
        ({"ratios": (0.5, 0.5)}, "different"),
        ({"seeds": ()}, "seeds"),
        ({"start": "cifar10"}, "start must be paper:"),
        ({"validation": 0.9}, "validation"),
    ],
)
def test_illegal_settings_are_refused(changes, message):
    with pytest.raises(InvalidSettingError, match=message):
        SearchSettings(**changes)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="semi_aum_cutoff"):
        SearchSettings(method="semi_aum")
    with pytest.raises(UnknownNameError, match="cifar100"):
        SearchSettings(start="paper:mnist")


def test_cheap_is_a_third_of_the_schedule():
    assert SearchSettings().supervised().epochs == 15 and "cheap" in SearchSettings().in_words
    assert SearchSettings(cheap=False).supervised().epochs == 30
    assert SearchSettings(training={"epochs": 5}).supervised().epochs == 3


def test_the_best_value_is_compared_with_random_in_pairs():
    (best,) = best_values(table(GOOD), None)
    assert (best.value, best.n_seeds, best.verdict) == (0.2, 2, "better")
    assert best.mean == pytest.approx(0.725) and best.random_mean == pytest.approx(0.62)
    assert best.difference == pytest.approx(0.105)  # (0.10 + 0.11) / 2
    pooled = np.sqrt((np.var([-0.10, -0.08], ddof=1) + np.var([0.10, 0.11], ddof=1)) / 2)
    assert best.difference_spread == pytest.approx(pooled)
    assert best.sentence == "cutoff 0.2 beats Random by 10.5 ± 1.1 points."
    assert best.knobs == {"cutoff": 0.2}


@pytest.mark.parametrize(
    "rights, verdict, words",
    [
        ((61, 63), "equal", "Nothing beats Random beyond the spread"),
        ((50, 54), "worse", "Random is better"),
        ((90, 40), "equal", "Nothing beats"),
    ],
)
def test_it_says_plainly_when_nothing_beats_random(rights, verdict, words):
    rows = [*GOOD[:2], *((AUM, 0.7, seed, 0.1, None, right) for seed, right in enumerate(rights))]
    (best,) = best_values(table(rows), None)
    assert best.verdict == verdict and words in best.sentence


def test_one_seed_gives_no_verdict():
    (best,) = best_values(table([GOOD[0], GOOD[4]]), None)
    assert best.verdict == "unknown" and best.spread == best.difference_spread == 0
    assert "one seed cannot tell" in best.sentence


def test_values_without_every_seed_are_not_chosen():
    rows = [*GOOD, (AUM, 0.7, 0, 0.5, None, 99)]
    (best,) = best_values(table(rows), None)
    assert best.value == 0.2


def test_t_is_the_best_on_average_and_others_do_not_count():
    settings = SearchSettings(method=DUAL, ratios=(0.9,))
    grid = make_grid(settings, 1000, 30, 10)
    rights = {10: (60, 70), 20: (69, 64), 30: (62, 62)}
    rows = [(DUAL, 0.3, seed, grid.first_value, t, rights[t][seed]) for t in rights for seed in (0, 1)]
    rows += [(DUAL, 0.3, 0, 7.7, 30, 99), (DUAL, 0.9, 0, grid.first_value, 10, 99)]
    assert best_epochs(table(rows), grid) == 20
    found = table([*rows, (search.RANDOM, 0.9, 0, None, None, 50), (DUAL, 0.9, 0, 3.0, 20, 60)])
    by_ratio = {one.pruning_ratio: one for one in best_values(found, 20)}
    assert by_ratio[0.9].knobs == {"c_d": 3.0, "n_epochs": 20}


@pytest.fixture
def project(workspace, tmp_path):
    return make_scored(workspace, tmp_path)


def test_searched_values_are_the_defaults_of_a_coreset(project):
    before = build_coreset(project, CoresetRequest(method=AUM, pruning_ratio=0.7))
    assert searched_knobs(project, AUM, 0.7) is None
    keep(project, table(GOOD))
    assert searched_knobs(project, AUM, 0.7) == {"cutoff": 0.2}
    after = build_coreset(project, CoresetRequest(method=AUM, pruning_ratio=0.7))
    known = default_knobs(AUM, 0.7, latest_scores(project).basis()).selector
    assert before.artifact.settings["knobs"]["cutoff"] == known["cutoff"] != 0.2
    assert after.artifact.settings["knobs"]["cutoff"] == 0.2
    own = build_coreset(project, CoresetRequest(method=AUM, pruning_ratio=0.7, cutoff=0.0))
    assert own.artifact.settings["knobs"]["cutoff"] == 0.0
    nested = build_coresets(project, CoresetRequest(method=AUM), (0.7, 0.9), nested=True)
    assert [run.artifact.settings["knobs"]["cutoff"] for run in nested] == [0.2, 0.2]


def test_a_searched_value_is_used_near_its_ratio_only(project):
    keep(project, table([(method, 0.2, *rest) for method, _, *rest in GOOD]))
    assert searched_knobs(project, AUM, 0.25) == {"cutoff": 0.2}
    assert searched_knobs(project, AUM, 0.15) == {"cutoff": 0.15}, "a cutoff above the ratio is not legal"
    assert searched_knobs(project, AUM, 0.26) is None and searched_knobs(project, "semi_el2n", 0.2) is None
    assert searched_knobs(project, "random", 0.2) is None
    request = CoresetRequest(method=AUM, pruning_ratio=0.5)
    assert with_searched(project, request) is request


def test_what_was_searched_for_a_baseline_holds_for_its_very_evidence(project):
    with pytest.raises(MissingStepError, match="What ELFS chooses by was not made yet.* --method elfs --ratio 0.5"):
        search_settings(project, method="elfs")
    old = add_clusters(project)
    of_elfs(project, old)
    keep(project, table(GOOD))  # Semi-AUM's own, with another value below it
    request = CoresetRequest(method="elfs", pruning_ratio=0.7)
    assert searched_knobs(project, "elfs", 0.7) == {"cutoff": 0.2}
    assert build_coreset(project, request).artifact.settings["knobs"]["cutoff"] == 0.2
    nested = build_coresets(project, CoresetRequest(method="elfs"), (0.7, 0.9), nested=True)
    assert [run.artifact.settings["knobs"]["cutoff"] for run in nested] == [0.2, 0.2]
    new = add_clusters(project, seed=1)
    assert searched_knobs(project, "elfs", 0.7) is None and searched_knobs(project, "elfs", 0.7, old) == {"cutoff": 0.2}
    known = default_knobs("elfs", 0.7, new.basis(latest_scores(project).basis())).selector
    assert build_coreset(project, request).artifact.settings["knobs"]["cutoff"] == known["cutoff"]
    assert build_coreset(project, request, kept=old).artifact.settings["knobs"]["cutoff"] == 0.2
    assert "Not searched at this ratio" in starting_knobs(project, "elfs", 0.7, new, Basis(120, 12)).why


def test_a_newer_search_wins(project):
    keep(project, table(GOOD))
    keep(project, table([*GOOD, (AUM, 0.7, 0, 0.3, None, 90), (AUM, 0.7, 1, 0.3, None, 90)]))
    assert searched(project, AUM, 0.7).value == 0.3


def test_a_search_of_other_scores_does_not_count(project, tmp_path):
    keep(project, table(GOOD))
    with_settings(project, aum_epochs=5)
    assert searched(project, AUM, 0.7) is None, "AUM is another one now"
    with_settings(project, aum_epochs=None, dual_epochs=11)
    assert searched(project, AUM, 0.7) is not None, "T of DUAL does not touch AUM"
    add_pseudo(project, seed=5)
    from semiprune_core.scoring import score_runs

    score_runs(project, [add_trajectory(project, tmp_path / "new", seed=1)])
    assert searched(project, AUM, 0.7) is None


def test_searched_t_scores_anew(project):
    settings = SearchSettings(method=DUAL, ratios=(0.7,), scores=latest_scores(project).artifact.id)
    rows = [(search.RANDOM, 0.7, 0, None, None, 50), (DUAL, 0.7, 0, 3.0, 10, 60)]
    keep(project, table(rows), settings, n_epochs=10)
    run = build_coreset(project, CoresetRequest(method=DUAL, pruning_ratio=0.7))
    assert run.artifact.settings["knobs"]["c_d"] == 3.0
    assert project.latest("scores").settings["dual_epochs"] == 10
    assert searched_knobs(project, DUAL, 0.7) == {"c_d": 3.0, "n_epochs": 10}, "its own T does not end it"


def test_it_trains_as_the_dynamics_run_did_and_cheaply_on_a_cpu(project, monkeypatch):
    monkeypatch.setattr(search.machine, "places", lambda device, nproc=1: "cpu")
    settings = search_settings(project, ratios=(0.5,))
    assert settings.cheap and settings.preset == "quick" and settings.scores == "scores-0001"
    monkeypatch.setattr(search.machine, "places", lambda device, nproc=1: "cuda:0")
    assert not search_settings(project).cheap


def test_what_cannot_be_searched_is_refused_before_it_is_queued(project, workspace, tmp_path):
    with pytest.raises(InvalidSettingError, match=r"0\.99 leaves 1 images for 4 classes"):
        submit_search(project, ratios=(0.5, 0.99), device="cpu")
    with pytest.raises(MissingStepError, match="no scores yet"):
        submit_search(make_pool(workspace, tmp_path, name="Bare"), device="cpu")
    assert not list(project.runs_folder.iterdir())


def test_the_plan_counts_images_over_all_epochs(project):
    plan = search.plan_search(project, SearchSettings(ratios=(0.5,), seeds=(0,), training={"epochs": 9}))
    assert plan.n_trials == 7 and plan.n_images == 7 * 54 * 8 and plan.seconds is None


def test_without_a_search_the_default_for_such_scores_is_where_to_start(project):
    scores = latest_scores(project)
    known = starting_knobs(project, AUM, 0.7, scores, scores.basis())
    assert known.selector == default_knobs(AUM, 0.7, scores.basis()).selector
    assert known.why.endswith("Not searched at this ratio.")
