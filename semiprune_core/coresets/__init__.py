"""From scores to a coreset: one request for the page and the command line, one function to build it, its views."""

from semiprune_core.coresets.build import (
    KNOBS,
    OPTIONS,
    RATIOS,
    SAME_BUDGET_RATIOS,
    SEARCHED,
    CoresetRequest,
    basis_of,
    build_coreset,
    build_coresets,
    choose_coreset,
    evidence_behind,
    more_ratios,
    nesting,
    nesting_selectors,
    own_evidence,
    with_searched,
)

__all__ = [
    "CoresetRequest",
    "KNOBS",
    "OPTIONS",
    "RATIOS",
    "SAME_BUDGET_RATIOS",
    "SEARCHED",
    "basis_of",
    "build_coreset",
    "build_coresets",
    "choose_coreset",
    "evidence_behind",
    "more_ratios",
    "nesting",
    "nesting_selectors",
    "own_evidence",
    "with_searched",
]
