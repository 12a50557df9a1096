"""What a search tries, what it makes of the results, and where its values go."""

import dataclasses

import numpy as np
import pytest

from semiprune_core import search
from semiprune_core.coresets import CoresetRequest, build_coreset, build_coresets, with_searched
from semiprune_core.coresets.starting_values import searched, searched_knobs, starting_knobs
from semiprune_core.dynamics.scoring import with_settings
from semiprune_core.errors import InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.learning import machine
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.results import latest_scores
from semiprune_core.results.score_source import settings_of
from semiprune_core.results.search import SearchRun, SearchSettings, best_values, write_search
from semiprune_core.search import best_epochs, make_grid, search_settings, submit_search, trial_table
from semiprune_core.selection import Basis, default_knobs
from semiprune_core.trials import Trial
from tests.support.effort import FULL
from tests.support.scored_projects import add_clusters, add_pseudo, add_trajectory, make_pool, make_scored

AUM, DUAL = "semi_aum_cutoff", "semi_dual_beta"
N_DRAWS = 300 if FULL else 60


def result(right, n=100):
    return {"n_train": 10, "n_test": n, "n_correct": right, "seconds": 1.0}


def table(rows, n=100):
    """A table from (method, ratio, seed, value or None, T or None, right of ``n``)."""
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
        found.append((trial, result(right, n)))
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


def test_t_of_a_run_on_features_is_all_of_it():
    grid = make_grid(SearchSettings(method=DUAL, ratios=(0.7,)), 1000, 40, 10, on_features=True)
    assert grid.epoch_trials() == [] and not grid.finds_epochs and best_epochs(trial_table([]), grid) == 40
    assert {t.score_changes["dual_epochs"] for t in grid.trials() if t.method == DUAL} == {40}


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
        ({"ratios": (0.5, 0.5)}, "each once"),
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


def test_cheap_is_half_of_the_schedule():
    assert SearchSettings().supervised().epochs == 15 and "cheap" in SearchSettings().in_words
    assert SearchSettings(cheap=False).supervised().epochs == 30
    assert SearchSettings(training={"epochs": 5}).supervised().epochs == 3


def test_the_best_value_is_compared_with_random_in_pairs():
    (best,) = best_values(table(GOOD), None)
    assert (best.value, best.n_seeds, best.verdict) == (0.2, 2, "better")
    assert best.mean == pytest.approx(0.725) and best.random_mean == pytest.approx(0.62)
    assert best.difference == pytest.approx(0.105)  # (0.10 + 0.11) / 2
    pooled = np.sqrt((np.var([-0.10, -0.08], ddof=1) + np.var([0.10, 0.11], ddof=1)) / 2)
    assert best.difference_half == pytest.approx(6.205347 * pooled / np.sqrt(2), rel=1e-6)  # t(1 - 0.025 / 2, 2)
    assert best.sentence == "cutoff 0.2 beats Random by 10.5 ± 4.9 points."
    assert best.knobs == {"cutoff": 0.2}


def against_random(rights):
    """One value at 0.7 with so many right of 100 by seed, and Random with 60 and 64."""
    (best,) = best_values(table([*GOOD[:2], *((AUM, 0.7, seed, 0.1, None, n) for seed, n in enumerate(rights))]), None)
    return best


@pytest.mark.parametrize(
    "rights, verdict, words",
    [
        ((61, 64), "unclear", "cutoff 0.1, the only value, is 0.5 ± 9.0 points above Random: that may be chance"),
        ((60, 63), "unclear", "is 0.5 ± 9.0 points below Random: that may be chance"),
        ((90, 40), "unclear", "the interval contains zero, so the starting value stays."),
        ((40, 44), "worse", "Random is better: even cutoff 0.1 is 20.0 ± 9.0 points below it."),
    ],
)
def test_it_says_plainly_when_nothing_beats_random(rights, verdict, words):
    best = against_random(rights)
    assert best.verdict == verdict and words in best.sentence


def test_values_that_rise_and_fall_alike_prove_nothing_on_few_images():
    """The differences are equal; the deviation is taken for one image of a hundred, and t(0.975, 1) is 12.7."""
    assert against_random((69, 73)).difference_half == pytest.approx(12.706205 * 0.01 / np.sqrt(2), rel=1e-6)
    assert against_random((68, 72)).verdict == "unclear" and against_random((69, 73)).verdict == "better"


def test_random_that_wavers_little_by_luck_does_not_make_values_sure():
    rows = [(search.RANDOM, 0.7, seed, None, None, 60) for seed in (0, 1)]
    rows += [
        (AUM, 0.7, seed, value, None, 60 + (9 if (seed + number) % 2 else -9))
        for number, value in enumerate((0.0, 0.1, 0.2, 0.3))
        for seed in (0, 1)
    ]
    (best,) = best_values(table(rows), None)
    one = np.sqrt(8 * 0.09**2 / 4)  # of a training: eight times nine points beside all means, four degrees of freedom
    assert best.difference_half == pytest.approx(4.314656 * np.sqrt(2) * one / np.sqrt(2))  # t(1 - 0.025 / 4, 4)


def noise(rng, n_values, n_seeds, *, alike=0.0, lead=0.0):
    """A search at one ratio in which no value differs from Random but the last, by ``lead`` points.

    Trainings waver by one point and seeds by another; ``alike`` is how much the values waver together.
    """
    by_seed, together = rng.normal(size=(2, n_seeds))
    own = np.sqrt(1 - alike) * rng.normal(size=(n_values, n_seeds)) + np.sqrt(alike) * together
    own[-1] += lead
    rows = [(search.RANDOM, 0.9, seed, None, None, value) for seed, value in enumerate(rng.normal(size=n_seeds))]
    rows += [(AUM, 0.9, seed, k / 10, None, own[k, seed]) for k in range(n_values) for seed in range(n_seeds)]
    return [(*place, round(1000 * (70 + value + by_seed[place[2]]))) for *place, value in rows]


def verdicts(n_draws, *shape, **options):
    """The verdicts on ``n_draws`` such searches, measured on 100,000 images."""
    rng = np.random.default_rng(7)
    return [best_values(table(noise(rng, *shape, **options), n=100_000), None)[0].verdict for _ in range(n_draws)]


@pytest.mark.parametrize("alike", [0.0, 0.5])
@pytest.mark.parametrize("shape", [(10, 2), (4, 2), (10, 3), (1, 2)])
def test_on_noise_alone_hardly_anything_beats_random(shape, alike):
    """At most 5%: of 60 draws 3, and 8 are within three deviations of that (of 300 draws 15 and 26)."""
    found = verdicts(N_DRAWS, *shape, alike=alike)
    most = 0.05 * N_DRAWS + 3 * (0.05 * 0.95 * N_DRAWS) ** 0.5
    assert len(found) - found.count("unclear") <= most


@pytest.mark.parametrize("shape, lead", [((10, 2), 6.0), ((10, 3), 4.0), ((4, 2), 8.0)])
def test_a_clear_lead_is_still_found(shape, lead):
    """Leads of four to eight deviations of a training are told in nine searches of ten."""
    assert verdicts(100, *shape, lead=lead).count("better") >= 90


def test_one_seed_gives_no_verdict():
    (best,) = best_values(table([GOOD[0], GOOD[4]]), None)
    assert best.verdict == "unknown" and best.spread == 0 and best.difference_half is None
    assert "with one seed, this may be chance" in best.sentence


def test_the_trials_that_chose_t_count_among_the_values_tried():
    rows = [(search.RANDOM, 0.3, seed, None, None, 60 + seed) for seed in (0, 1)]
    values = [(DUAL, 0.3, seed, c_d, 20, 61 + 2 * seed) for c_d in (1.0, 2.0) for seed in (0, 1)]
    sought = [(DUAL, 0.3, seed, 2.0, n_epochs, 59) for n_epochs in (10, 30) for seed in (0, 1)]
    (alone,), (both,) = best_values(table([*rows, *values]), 20), best_values(table([*rows, *values, *sought]), 20)
    assert (alone.n_tried, both.n_tried) == (2, 4) and alone.value == both.value == 1.0


def test_a_search_from_before_intervals_is_judged_anew(project):
    run = keep(project, table(GOOD))
    old = [
        {
            **{name: value for name, value in one.items() if name not in ("difference_half", "n_tried")},
            "verdict": "equal",
        }
        for one in run.artifact.facts["best"]
    ]
    manifest = {**run.artifact.manifest, "facts": {**run.artifact.facts, "best": old}}
    assert SearchRun(dataclasses.replace(run.artifact, manifest=manifest)).best == run.best


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
    own = build_coreset(project, CoresetRequest(method=AUM, pruning_ratio=0.7, given={"cutoff": 0.0}))
    assert own.artifact.settings["knobs"]["cutoff"] == 0.0
    nested = build_coresets(project, CoresetRequest(method=AUM), (0.7, 0.9), nested=True)
    assert [run.artifact.settings["knobs"]["cutoff"] for run in nested] == [0.2, 0.2]


@pytest.mark.parametrize("rights", [(61, 64), (40, 44)])
def test_a_value_that_may_be_chance_or_harm_leaves_the_starting_value(project, rights):
    keep(project, table([*GOOD[:2], *((AUM, 0.7, seed, 0.1, None, n) for seed, n in enumerate(rights))]))
    scores = latest_scores(project)
    usual = default_knobs(AUM, 0.7, scores.basis()).selector
    assert searched_knobs(project, AUM, 0.7) == {}
    known = starting_knobs(AUM, 0.7, scores.basis(), searched(project, AUM, 0.7, scores))
    assert known.selector == usual and known.why.startswith("Searched, 2 seeds: ")
    run = build_coreset(project, CoresetRequest(method=AUM, pruning_ratio=0.7))
    assert run.artifact.settings["knobs"]["cutoff"] == usual["cutoff"]


def test_a_searched_value_is_used_near_its_ratio_only(project):
    keep(project, table([(method, 0.2, *rest) for method, _, *rest in GOOD]))
    assert searched_knobs(project, AUM, 0.25) == {"cutoff": 0.2}
    assert searched_knobs(project, AUM, 0.15) == {"cutoff": 0.15}, "a cutoff above the ratio is not legal"
    assert searched_knobs(project, AUM, 0.26) is None and searched_knobs(project, "semi_el2n", 0.2) is None
    assert searched_knobs(project, "random", 0.2) is None
    request = CoresetRequest(method=AUM, pruning_ratio=0.5)
    assert with_searched(project, request) is request


def test_what_was_searched_for_a_baseline_holds_for_its_very_evidence(project):
    with pytest.raises(
        MissingStepError, match="The evidence for ELFS has not been made yet.* --method elfs --ratio 0.5"
    ):
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
    assert build_coreset(project, request, own=old).artifact.settings["knobs"]["cutoff"] == 0.2
    best = searched(project, "elfs", 0.7, new)
    assert "Not searched at this ratio" in starting_knobs("elfs", 0.7, Basis(120, 12), best).why


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
    from semiprune_core.dynamics.scoring import score_runs

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
    monkeypatch.setattr(machine, "devices_for", lambda device, nproc=1: "cpu")
    settings = search_settings(project, ratios=(0.5,))
    assert settings.cheap and settings.preset == "quick" and settings.scores == "scores-0001"
    monkeypatch.setattr(machine, "devices_for", lambda device, nproc=1: "cuda:0")
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
    known = starting_knobs(AUM, 0.7, scores.basis(), searched(project, AUM, 0.7, scores))
    assert known.selector == default_knobs(AUM, 0.7, scores.basis()).selector
    assert known.why.endswith("Not searched at this ratio.")
