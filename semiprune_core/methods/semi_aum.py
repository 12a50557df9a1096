"""Semi-AUM+Cutoff, the paper's first method."""

from semiprune_core.methods.base import METHODS, Method

SEMI_AUM_CUTOFF = METHODS.register(
    "semi_aum_cutoff",
    title="Semi-AUM+Cutoff",
    explain="AUM on pseudo-labels: drops the hardest images, which are often wrongly labeled, and keeps the next ones.",
    paper="SemiPrune",
)(Method("cutoff", "aum", knobs={"score": "aum"}))
