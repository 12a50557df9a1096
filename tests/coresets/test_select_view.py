"""What a coreset would do, before it is built; coresets side by side."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from semiprune_core.coresets import CoresetRequest, build_coreset, choose_coreset, select_view
from semiprune_core.coresets.score_view import open_view
from semiprune_core.coresets.select_view import changed, compare, preview
from semiprune_core.errors import InvalidSettingError, UnknownNameError
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Workspace
from semiprune_core.records import Coreset, Evidence, coreset_size
from semiprune_core.results import PseudoRun, latest_scores
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.selection import SELECTORS, Basis
from tests.support.scored_projects import make_scored


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMIPRUNE_ROOTS", str(folder))
        return make_scored(Workspace.open(folder / "home"), folder, n=200, human=0.4, held_out=0.8)


@pytest.fixture(scope="module")
def view(project):
    return open_view(project, latest_scores(project))


@pytest.mark.parametrize("ratio", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(
    "method", [name for name in {**dict.fromkeys(METHODS), **dict.fromkeys(SELECTORS)} if not has_own_evidence(name)]
)
def test_every_method_has_a_picture_that_adds_up(view, method, ratio):
    found = preview(view, CoresetRequest(method=method, pruning_ratio=ratio))
    assert found.budget == coreset_size(200, ratio) == found.kept.sum() == found.class_after.sum()
    assert (found.kept + found.dropped).sum() == 200 and (found.dropped >= 0).all()
    for border in found.borders:
        assert all(found.coreset.mask[position] == border.kept for position in border.positions)


def test_the_border_of_a_cutoff_lies_at_its_ends(view):
    found = preview(view, CoresetRequest(pruning_ratio=0.6, given={"cutoff": 0.2}))
    aum = np.sort(view.table["aum"])
    rows = {border.title: view.table["aum"][list(border.positions)] for border in found.borders}
    assert rows["Dropped, just too hard"][0] == aum[39] and rows["Kept, the hardest"][0] == aum[40]
    assert rows["Kept, the easiest"][0] == aum[119] and rows["Dropped, just too easy"][0] == aum[120]


def test_a_preview_is_what_is_built(project, view):
    request = CoresetRequest(
        method="semi_dual_beta", pruning_ratio=0.7, seed=3, given={"n_epochs": 11, "gamma": 0.5, "c_d": 3.0}
    )
    found = preview(view, request)
    built = build_coreset(project, request).coreset()
    assert built.indices.tolist() == found.coreset.indices.tolist()
    assert built.settings == found.coreset.settings
    assert len(project.artifacts("coreset")) == 1
    build_coreset(project, request)
    assert len(project.artifacts("coreset")) == 1


def test_beta_shows_its_density_over_the_mean_probability(view):
    found = preview(view, CoresetRequest(method="semi_dual_beta", pruning_ratio=0.5))
    assert found.score == "mean_prob" and found.density is not None
    area = np.sum((found.density.y[1:] + found.density.y[:-1]) / 2 * np.diff(found.density.x))
    assert 0.9 < area < 1.1
    assert preview(view, CoresetRequest()).density is None


def test_the_error_comes_from_held_out_labels_that_are_right_and_kept(view):
    found = preview(view, CoresetRequest(method="random", pruning_ratio=0.3))
    held, mask = np.asarray(view.pseudo.held_out_mask()), found.coreset.mask
    right = (view.pseudo.predicted() == view.reference) & held & mask
    kept = mask[~view.labels.human_mask].mean()
    assert found.error.n == held.sum()
    assert np.isclose(found.error.value, np.clip(1 - right.sum() / held.sum() / kept, 0, 1))
    assert 0 <= found.error.low <= found.error.value <= found.error.high <= 1


@pytest.mark.parametrize("method", ["cutoff", "random", "top"])
def test_the_estimate_is_right_on_average_though_held_out_images_are_scored_with_their_right_label(method):
    """Scores depend on whether the *used* label is right; the naive count inside the coreset is off by far."""
    rng = np.random.default_rng(0)
    n, estimates, truths, naive = 4000, [], [], []
    for _ in range(12):
        wrong = rng.random(n) < 0.2
        human = rng.random(n) < 0.5
        aum = rng.random(n) - 2.0 * (wrong & ~human)
        labels = np.where(wrong & ~human, 1, 0)
        view = fake_view(aum, labels, predicted=wrong.astype(int), human=human)
        request = CoresetRequest(
            method=method, pruning_ratio=0.6, given={"cutoff": 0.3 if method == "cutoff" else None}
        )
        coreset = choose_coreset(view.evidence, request, Basis(n))
        estimates.append(select_view.estimated_error(view, coreset).value)
        pseudo = coreset.mask & ~human
        truths.append(wrong[pseudo].mean())
        naive.append(wrong[coreset.mask & human].mean())
    assert abs(np.mean(estimates) - np.mean(truths)) < 0.03
    if method != "random":
        assert abs(np.mean(naive) - np.mean(truths)) > 0.1


def fake_view(aum, labels, *, predicted, human):
    """Just what the estimate looks at."""
    pseudo = SimpleNamespace(
        artifact=SimpleNamespace(settings={}), held_out_mask=lambda: human, predicted=lambda: predicted
    )
    known = np.where(human, 0, labels)
    return SimpleNamespace(
        pseudo=pseudo,
        labels=SimpleNamespace(labels=known, human_mask=human),
        evidence=Evidence(len(aum), {"aum": aum}),
    )


def test_too_few_held_out_labels_give_no_number_but_a_sentence(view, monkeypatch):
    coreset = preview(view, CoresetRequest(method="random", pruning_ratio=0.5)).coreset
    few = np.zeros(200, dtype=bool)
    few[:7] = True
    monkeypatch.setattr(PseudoRun, "held_out_mask", lambda self: few)
    found = select_view.estimated_error(view, coreset)
    assert found.value is None and "7 were held out" in found.words


@pytest.mark.parametrize("option", ["keep_human", "same_annotation_budget"])
def test_kept_human_labels_measure_nothing(view, option):
    found = preview(view, CoresetRequest(method="random", pruning_ratio=0.3, **{option: True}))
    assert found.error.value is None


def test_a_model_that_has_seen_all_labels_is_not_measured(view, monkeypatch):
    monkeypatch.setitem(view.pseudo.artifact.settings, "refit", True)
    coreset = preview(view, CoresetRequest(method="random", pruning_ratio=0.5)).coreset
    assert select_view.estimated_error(view, coreset).value is None


def test_a_cutoff_drops_wrong_labels(view):
    found = preview(view, CoresetRequest(pruning_ratio=0.5, given={"cutoff": 0.2}))
    assert found.wrong_after.value < found.wrong_before.value / 2


def test_it_is_told_when_the_coreset_has_more_wrong_labels_than_the_pool(view):
    clean = preview(view, CoresetRequest(pruning_ratio=0.5, given={"cutoff": 0.2}))
    hard = preview(view, CoresetRequest(pruning_ratio=0.8, given={"cutoff": 0.0}))
    assert hard.wrong_after.value > 2 * hard.wrong_before.value
    assert hard.has_more_wrong_labels and not clean.has_more_wrong_labels


def test_without_reference_labels_the_held_out_ones_tell(view):
    hard = preview(view, CoresetRequest(pruning_ratio=0.8, given={"cutoff": 0.0}))
    blind = dataclasses.replace(hard, wrong_before=None, wrong_after=None)
    for low, told in ((0.3, True), (0.1, False), (None, False)):
        error = dataclasses.replace(hard.error, low=low, everywhere=0.2)
        assert dataclasses.replace(blind, error=error).has_more_wrong_labels is told


def test_requests_are_checked_when_they_are_made():
    with pytest.raises(UnknownNameError, match="Did you mean 'semi_aum_cutoff'"):
        CoresetRequest(method="semi_aum_cutof")
    with pytest.raises(InvalidSettingError):
        CoresetRequest(pruning_ratio=1.0)


def coreset(*kept):
    return Coreset(np.array(kept), "random", {}, 0, 0.5, 6)


def test_coresets_side_by_side():
    found = compare([coreset(0, 1, 2), coreset(0, 1, 3), coreset(0, 4, 3)])
    assert found.jaccard[0, 1] == 0.5 and found.jaccard[0, 2] == 0.2
    assert (found.n_always, found.n_contested, found.n_never) == (1, 4, 1)
    assert found.always == (0,) and set(found.contested) == {1, 2, 3, 4}


def test_what_changed_is_counted_by_class():
    change = changed(coreset(0, 1, 2), coreset(1, 2, 5), np.array([0, 0, 1, 1, 2, 2]), 3)
    assert change.added.tolist() == [5] and change.removed.tolist() == [0]
    assert change.classes.tolist() == [-1, 0, 1]
