"""Trials: learn from one coreset, test once. What a trial is, its kinds, the book of results, the run (torch)."""

from semiprune_core.results.search import FINETUNE, PROBE, SCRATCH
from semiprune_core.trials.book import BOOK, FULL, Trial, TrialBook
from semiprune_core.trials.kinds import TESTED_BY, TESTS, ProbeSettings, usual_test

__all__ = [
    "BOOK",
    "FINETUNE",
    "FULL",
    "PROBE",
    "ProbeSettings",
    "SCRATCH",
    "TESTED_BY",
    "TESTS",
    "Trial",
    "TrialBook",
    "usual_test",
]
