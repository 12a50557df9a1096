"""Results: one record for each kind of artifact after the pool, written by one function and read by one.

It exports the runs (:class:`PseudoRun`, :class:`TrajectoryRun`, :class:`ScoreRun`, :class:`EvidenceRun`,
:class:`CoresetRun`, :class:`FeatureRun`), how each is written, and how the latest one of a project is found.
"""

from semiprune_core.results.coreset import CoresetRun, coreset_settings, open_coreset, write_coreset
from semiprune_core.results.evidence import EvidenceRun, evidence_of
from semiprune_core.results.features import FeatureRun, feature_runs, latest_features
from semiprune_core.results.inputs import check_same_pool, made_from
from semiprune_core.results.pseudo import PseudoRun, latest_pseudo, write_pseudo
from semiprune_core.results.scores import ScoreRun, latest_scores, write_scores
from semiprune_core.results.trajectory import TrajectoryRun, write_trajectory

__all__ = [
    "CoresetRun",
    "EvidenceRun",
    "FeatureRun",
    "PseudoRun",
    "ScoreRun",
    "TrajectoryRun",
    "check_same_pool",
    "coreset_settings",
    "evidence_of",
    "feature_runs",
    "latest_features",
    "latest_pseudo",
    "latest_scores",
    "made_from",
    "open_coreset",
    "write_coreset",
    "write_pseudo",
    "write_scores",
    "write_trajectory",
]
