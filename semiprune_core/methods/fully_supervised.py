"""Fully supervised: DUAL with Beta sampling on the true labels of the whole pool, the paper's upper row."""

from semiprune_core.methods.base import METHODS, Method

FULLY_SUPERVISED = METHODS.register(
    "fully_supervised",
    title="Fully supervised",
    explain="DUAL with Beta sampling on reference labels for every image: what complete labels would give.",
    paper="arXiv:2502.06905",
)(Method("beta", "dual", labels_from="reference", evidence="reference_scores"))
