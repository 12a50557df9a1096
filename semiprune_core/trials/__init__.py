"""Trials: train on one coreset, test once. What a trial is, the book of results, and the run itself (torch)."""

from semiprune_core.trials.book import BOOK, FULL, Trial, TrialBook, hold_out

__all__ = [
    "BOOK",
    "FULL",
    "Trial",
    "TrialBook",
    "hold_out",
]
