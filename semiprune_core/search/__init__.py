"""The search: which cutoff, or which T and c_D, suits this pool at each pruning ratio, found out on pseudo-labels.

As in the paper: the pseudo-labeled pool is split 90/10, coresets are chosen from the 90% by the scores there are, a net
is trained on each and compared on the pseudo-labels of the 10%. Cutoffs are tried from 0 to r in steps of 0.1. For
DUAL with Beta sampling the score epoch T comes first, at ratio 0.3, then c_D with that T at every ratio (the paper
keeps one c_D per data set; here each ratio has its own). Random is always among the candidates. ELFS and the other
methods on clusters are searched in the same way, as its paper does, on the clusters that stand in for their labels.

The training itself is in ``search.job``; nothing else here loads torch.
"""

from semiprune_core.results.search import (
    CHEAP_SHARE,
    COLUMNS,
    CUTOFF_STEP,
    FEWEST_EPOCHS,
    KIND,
    KNOB_WORDS,
    OVER_SEARCH,
    PAPER,
    RANDOM,
    BestValue,
    SearchRun,
    SearchSettings,
    best_values,
    searchable_methods,
    searched_knob,
    starts,
    write_search,
)
from semiprune_core.search.curves import Curve, curves, epochs_tried, partial_search, trial_table
from semiprune_core.search.grid import (
    C_D_GRID,
    EPOCHS_RATIO,
    PAPER_EPOCHS,
    Grid,
    best_epochs,
    epoch_candidates,
    grid_of,
    make_grid,
)
from semiprune_core.search.submit import PROBE_SEEDS, Plan, plan_search, search_settings, submit_search

__all__ = [
    "KIND",
    "RANDOM",
    "CUTOFF_STEP",
    "CHEAP_SHARE",
    "FEWEST_EPOCHS",
    "PAPER",
    "COLUMNS",
    "KNOB_WORDS",
    "OVER_SEARCH",
    "searched_knob",
    "searchable_methods",
    "starts",
    "SearchSettings",
    "BestValue",
    "best_values",
    "SearchRun",
    "write_search",
    "C_D_GRID",
    "Curve",
    "EPOCHS_RATIO",
    "Grid",
    "PAPER_EPOCHS",
    "PROBE_SEEDS",
    "Plan",
    "best_epochs",
    "curves",
    "epoch_candidates",
    "epochs_tried",
    "grid_of",
    "make_grid",
    "partial_search",
    "plan_search",
    "search_settings",
    "submit_search",
    "trial_table",
]
