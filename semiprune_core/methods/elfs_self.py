"""ELFS with its own encoder: SwAV-style training on the pool first, then as ELFS."""

from semiprune_core.methods.base import METHODS, Method

ELFS_SELF = METHODS.register(
    "elfs_self",
    title="ELFS (self-encoder)",
    explain="As ELFS, on features of an encoder that was trained on this very pool without labels.",
    paper="arXiv:2406.04273",
)(Method("cutoff", "aum", labels_from="clusters", knobs={"score": "aum"}, evidence="self_cluster_scores"))
