"""Does a coreset beat random selection: settings, job, results and pictures of evaluations and studies."""

from semiprune_core.evaluation.data import EvaluationData, data_facts, evaluation_data
from semiprune_core.evaluation.settings import (
    ARTIFACT,
    BY_PEOPLE,
    COLUMNS,
    KIND,
    ORDERS,
    RANDOM,
    TRUTHS,
    EvaluationRun,
    EvaluationSettings,
    evidence_minutes,
    keep_partial,
    partial_trials,
    planned_trials,
    trial_table,
    write_evaluation,
)
from semiprune_core.evaluation.submit import (
    check_left,
    matching_test,
    pinned_pseudo,
    pinned_snapshot,
    submit_evaluation,
)

__all__ = [
    "ARTIFACT",
    "KIND",
    "BY_PEOPLE",
    "COLUMNS",
    "EvaluationRun",
    "EvaluationSettings",
    "EvaluationData",
    "ORDERS",
    "RANDOM",
    "TRUTHS",
    "check_left",
    "evidence_minutes",
    "data_facts",
    "evaluation_data",
    "matching_test",
    "keep_partial",
    "partial_trials",
    "pinned_pseudo",
    "pinned_snapshot",
    "planned_trials",
    "submit_evaluation",
    "trial_table",
    "write_evaluation",
]
