"""The estimated error of a coreset's pseudo-labels: the pool's own for a random one, a model's for the others."""

import json

import numpy as np
import pytest

from semiprune_core.coresets import CoresetRequest, build_coreset, error_model
from semiprune_core.coresets.error_coverage import made_up_pool, simulate_error
from semiprune_core.coresets.label_error import ErrorEstimate
from semiprune_core.coresets.score_view import open_view
from semiprune_core.coresets.select_view import preview, saved_error
from semiprune_core.learning.quality import wilson
from semiprune_core.project.workspace import Workspace
from semiprune_core.results import PseudoRun, latest_scores
from tests.support.scored_projects import make_scored


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("errors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMIPRUNE_ROOTS", str(folder))
        return make_scored(Workspace.open(folder / "home"), folder, n=300, human=0.4, held_out=0.8)


@pytest.fixture(scope="module")
def view(project):
    return open_view(project, latest_scores(project))


def error_of(view, **request):
    return preview(view, CoresetRequest(**request)).error


def test_a_random_coreset_has_the_pools_error(view):
    blind = view.pseudo.blind_answers()
    n, wrong = len(blind), int((~blind.right).sum())
    plain = wilson(wrong, n)
    for ratio in (0.5, 0.8):
        found = error_of(view, method="random", pruning_ratio=ratio)
        assert found.n == n and found.value == found.everywhere == wrong / n
        assert found.low < plain.low and found.high > plain.high  # the coreset is a sample too


@pytest.mark.parametrize("method", ["semi_aum_cutoff", "semi_dual_beta", "random"])
@pytest.mark.parametrize("ratio", [0.5, 0.95])
def test_no_interval_is_a_point(view, method, ratio):
    found = error_of(view, method=method, pruning_ratio=ratio)
    assert found.low <= found.value <= found.high and found.high - found.low > 0.03


def test_without_any_wrong_label_the_error_is_still_not_known_to_be_none(view, monkeypatch):
    right = view.pseudo.blind_answers()
    monkeypatch.setattr(PseudoRun, "predicted", lambda self: np.asarray(self.labels().labels))
    fresh = PseudoRun(view.pseudo.artifact)
    assert fresh.blind_answers().right.all() and len(fresh.blind_answers()) == len(right)
    cells = cells_of_few()
    kept, _, _ = error_model.estimated_shares(
        cells, np.full((1, len(cells.shares)), 60 / len(cells.shares)), np.zeros((1, 8)), np.array([100.0])
    )
    assert kept[2, 0] > 0.02


def cells_of_few(n=4000):
    rng = np.random.default_rng(0)
    places = error_model.places_of(rng.random(n), rng.random(n), rng.random(n) < 0.5, np.ones(n, bool))
    return error_model.cells_of(places, np.ones(n, bool))


def test_more_labels_narrow_the_interval():
    cells, widths = cells_of_few(), []
    for n in (60, 600):
        right, wrong = cells.shares * 0.9 * n, np.full(8, 0.1 * n / 8)
        kept, _, _ = error_model.estimated_shares(cells, right[None], wrong[None], np.array([1000.0]))
        widths.append(float(kept[2, 0] - kept[0, 0]))
    assert widths[1] < 0.7 * widths[0]


def test_labels_that_depend_on_each_other_are_worth_less():
    cells = cells_of_few()
    right, wrong = cells.shares * 90, np.full(8, 10 / 8)
    widths = [
        np.ptp(error_model.estimated_shares(cells, right[None], wrong[None], np.array([1e6]), weight)[0][:, 0])
        for weight in (1.0, 0.5)
    ]
    assert widths[0] < widths[1]


@pytest.mark.parametrize("option", ["keep_human", "same_annotation_budget"])
def test_labels_that_are_kept_in_any_case_measure_too(view, option):
    found = error_of(view, method="semi_aum_cutoff", pruning_ratio=0.3, **{option: True})
    assert 0 <= found.low < found.value < found.high < 1


def test_a_saved_coreset_has_the_error_that_was_shown(project, view):
    for method in ("semi_dual_beta", "semi_aum_cutoff", "random"):
        request = CoresetRequest(method=method, pruning_ratio=0.6)
        shown = preview(view, request).error
        saved = saved_error(project, build_coreset(project, request))
        assert saved.to_json() == shown.to_json()
        json.dumps(saved.to_json())


def test_too_few_held_out_labels_give_no_number_but_a_sentence(view, monkeypatch):
    few = np.zeros(300, dtype=bool)
    few[:7] = True
    monkeypatch.setattr(PseudoRun, "held_out_mask", lambda self: few)
    run = PseudoRun(view.pseudo.artifact)
    assert len(run.blind_answers()) == 7
    assert ErrorEstimate(7, "Too few labels to say").interval == "not known"


def test_a_model_that_saw_every_label_measures_by_the_answers_that_did_not(view, monkeypatch):
    monkeypatch.setitem(view.pseudo.artifact.settings, "refit", True)
    assert PseudoRun(view.pseudo.artifact).blind_answers() is None  # an older run kept none
    folder = view.pseudo.artifact.folder
    held = np.arange(40)
    arrays = {"positions": held, "predicted": np.zeros(40, np.int32), "confidence": np.full(40, 0.9, np.float32)}
    try:
        for name, values in arrays.items():
            np.save(folder / f"held_out_{name}.npy", values)
        blind = PseudoRun(view.pseudo.artifact).blind_answers()
        assert blind.positions.tolist() == held.tolist() and not blind.same_models
        assert blind.right.tolist() == (view.labels.labels[held] == 0).tolist()
    finally:
        for name in arrays:
            (folder / f"held_out_{name}.npy").unlink()


def test_equal_values_share_a_bin():
    values = np.array([1.0] * 90 + [0.0] * 10)
    bins = error_model.bin_by_rank(values, np.ones(100, bool), 8)
    assert len(set(bins[:90])) == 1 and len(set(bins[90:])) == 1 and bins[0] > bins[99]


@pytest.mark.parametrize("method", ["random", "semi_aum_cutoff", "semi_dual_beta"])
def test_the_interval_holds_the_truth_as_often_as_it_says(method):
    """A small and seeded version of benchmarks/coreset_error.py."""
    cells = [simulate_error(made_up_pool("confident"), method, 0.7, n, 100) for n in (60, 600)]
    assert all(cell.covered >= 0.9 for cell in cells)
    assert cells[1].width < cells[0].width


def test_on_the_demos_kind_of_pool_it_is_narrower_than_it_was():
    cell = simulate_error(made_up_pool("between"), "semi_aum_cutoff", 0.5, 60, 50)
    assert cell.width < 0.9 * cell.earlier_width


def test_it_is_told_where_more_of_the_labels_are_wrong():
    hard = simulate_error(made_up_pool("between"), "semi_aum_cutoff", 0.5, 600, 50)
    assert hard.error > 1.3 * hard.pool_error and hard.told > 0.9
    easy = simulate_error(made_up_pool("apart"), "semi_aum_cutoff", 0.5, 600, 50)
    assert easy.error < easy.pool_error and easy.told < 0.1
