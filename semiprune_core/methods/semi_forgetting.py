"""Semi-Forgetting, from the paper's ablation over scores: forgetting on pseudo-labels with the double-end cutoff."""

from semiprune_core.methods.base import METHODS, Method

SEMI_FORGETTING = METHODS.register(
    "semi_forgetting",
    title="Semi-Forgetting",
    explain="Forgetting events on pseudo-labels: drops images that were never learned and keeps the most forgotten.",
    paper="SemiPrune",
)(Method("cutoff", "forgetting", knobs={"score": "forgetting"}))
