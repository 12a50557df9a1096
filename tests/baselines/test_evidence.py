"""Who provides the evidence of a method."""

import numpy as np
import pytest

from semiprune_core.baselines.evidence import PROVIDERS, EvidenceRequest, evidence_for
from semiprune_core.coresets import CoresetRequest, build_coreset, choose_coreset
from semiprune_core.errors import MissingStepError
from semiprune_core.methods import METHODS, needs_of
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Workspace
from semiprune_core.results import latest_scores
from tests.support.scored_projects import make_pool, make_scored


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_ROOTS", str(tmp_path))
    return Workspace.open(tmp_path / "home")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_names_a_known_provider(method):
    assert METHODS[method].evidence in PROVIDERS


def test_own_scores_choose_the_coreset_that_the_select_page_saves(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    request = CoresetRequest(method="semi_aum_cutoff", pruning_ratio=0.5)
    saved = build_coreset(project, request)
    evidence = evidence_for("semi_aum_cutoff", EvidenceRequest(project, Collected()))
    assert set(needs_of("semi_aum_cutoff")) <= set(evidence.scores)
    chosen = choose_coreset(evidence, request, latest_scores(project).basis())
    np.testing.assert_array_equal(chosen.indices, saved.coreset().indices)


def test_random_needs_the_pool_alone_and_others_say_what_is_missing(workspace, tmp_path):
    project = make_pool(workspace, tmp_path)
    assert evidence_for("random", EvidenceRequest(project, Collected())).n_images == len(project.pool())
    with pytest.raises(MissingStepError, match="no scores yet"):
        evidence_for("semi_dual_beta", EvidenceRequest(project, Collected()))
