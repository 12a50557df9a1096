"""Semi-EL2N, from the paper's ablation over scores: EL2N on pseudo-labels with the double-end cutoff."""

from semiprune_core.methods.base import METHODS, Method

SEMI_EL2N = METHODS.register(
    "semi_el2n",
    title="Semi-EL2N",
    explain="The early error on pseudo-labels: drops the hardest images and keeps the next ones.",
    paper="SemiPrune",
)(Method("cutoff", "el2n", knobs={"score": "el2n"}))
