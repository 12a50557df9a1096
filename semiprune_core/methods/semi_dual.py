"""Semi-DUAL+Beta, the paper's second method."""

from semiprune_core.methods.base import METHODS, Method

SEMI_DUAL_BETA = METHODS.register(
    "semi_dual_beta",
    title="Semi-DUAL+Beta",
    explain="DUAL on pseudo-labels: draws difficult and unsteady images, leaning to easier ones the more is pruned.",
    paper="SemiPrune",
)(Method("beta", "dual"))
