"""EL2N on deep-clustering labels, from the paper's ablation over scores and label sources."""

from semiprune_core.methods.base import METHODS, Method

CLUSTER_EL2N = METHODS.register(
    "cluster_el2n",
    title="EL2N on clusters",
    explain="The early error on deep-clustering labels: drops the hardest images and keeps the next ones.",
    paper="SemiPrune",
)(Method("cutoff", "el2n", labels_from="clusters", knobs={"score": "el2n"}, evidence="cluster_scores"))
