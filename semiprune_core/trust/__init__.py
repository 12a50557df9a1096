"""How far pseudo-labels can be trusted: measured quality, the trust check, the review of doubtful ones, look-alikes."""

from semiprune_core.trust.check import (
    AMBER_ECE,
    AMBER_RANKS,
    ORDER,
    RANKED,
    SAFER,
    Level,
    Reason,
    Stability,
    Trust,
    judge,
    seed_twins,
    stability_of,
)

__all__ = [
    "AMBER_ECE",
    "AMBER_RANKS",
    "Level",
    "ORDER",
    "RANKED",
    "Reason",
    "SAFER",
    "Stability",
    "Trust",
    "judge",
    "seed_twins",
    "stability_of",
]
