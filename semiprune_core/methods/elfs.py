"""ELFS (Zheng et al. 2025): deep-clustering labels from fixed features, then AUM with the double-end cutoff."""

from semiprune_core.methods.base import METHODS, Method

ELFS = METHODS.register(
    "elfs",
    title="ELFS",
    explain="AUM on deep-clustering labels: drops the hardest images and keeps the next ones. Needs no label.",
    paper="arXiv:2406.04273",
)(Method("cutoff", "aum", labels_from="clusters", knobs={"score": "aum"}, evidence="cluster_scores"))
