"""What a coreset would do, before it is built; coresets side by side."""

import dataclasses

import numpy as np
import pytest

from semiprune_core.coresets import CoresetRequest, build_coreset, evidence_behind
from semiprune_core.coresets.score_view import open_view
from semiprune_core.coresets.select_view import changed, compare, preview
from semiprune_core.errors import InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.methods import METHODS, select_coreset
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Workspace
from semiprune_core.records import Coreset, coreset_size
from semiprune_core.results import latest_scores
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.scan import scan
from semiprune_core.selection import SELECTORS
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


def test_a_cutoff_drops_wrong_labels(view):
    found = preview(view, CoresetRequest(pruning_ratio=0.5, given={"cutoff": 0.2}))
    assert found.wrong_after.value < found.wrong_before.value / 2


def test_it_is_told_when_the_coreset_has_more_wrong_labels_than_the_pool(view):
    clean = preview(view, CoresetRequest(pruning_ratio=0.5, given={"cutoff": 0.2}))
    hard = preview(view, CoresetRequest(pruning_ratio=0.8, given={"cutoff": 0.0}))
    assert hard.wrong_after.value > 2 * hard.wrong_before.value
    assert hard.has_more_wrong_labels and not clean.has_more_wrong_labels


def test_without_reference_labels_the_estimate_tells(view):
    hard = preview(view, CoresetRequest(pruning_ratio=0.8, given={"cutoff": 0.0}))
    blind = dataclasses.replace(hard, wrong_before=None, wrong_after=None)
    for more, told in ((0.95, True), (0.5, False)):
        error = dataclasses.replace(hard.error, more=more)
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


def test_one_of_each_is_previewed_and_built_by_a_scan(tmp_path):
    project = make_scored(Workspace.open(tmp_path / "home"), tmp_path, n=60)
    request = CoresetRequest(method="random", pruning_ratio=0.5, one_of_each=True)
    with pytest.raises(MissingStepError, match="Scan"):
        build_coreset(project, request)
    found = scan(project, Collected())
    run = build_coreset(project, request)
    assert run.artifact.inputs["scan"] == found.artifact.hash
    assert run.artifact.settings["options"]["one_of_each"] is True
    shown = preview(open_view(project, latest_scores(project)), request, found=found)
    assert shown.coreset.indices.tolist() == run.coreset().indices.tolist()
    again = select_coreset(
        evidence_behind(project, run), "random", pruning_ratio=0.5, seed=0, **run.artifact.settings["options"]
    )
    assert again.indices.tolist() == run.coreset().indices.tolist()
