"""Forgetting on deep-clustering labels, from the paper's ablation over scores and label sources."""

from semiprune_core.methods.base import METHODS, Method

CLUSTER_FORGETTING = METHODS.register(
    "cluster_forgetting",
    title="Forgetting on clusters",
    explain="Forgetting on deep-clustering labels: drops the most forgotten images and keeps the next ones.",
    paper="SemiPrune",
)(Method("cutoff", "forgetting", labels_from="clusters", knobs={"score": "forgetting"}, evidence="cluster_scores"))
