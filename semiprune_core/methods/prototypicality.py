"""Prototypicality (Sorscher et al. 2022): images far from every k-means centroid first."""

from semiprune_core.methods.base import METHODS, Method

PROTOTYPICALITY = METHODS.register(
    "prototypicality",
    title="Prototypicality",
    explain="Clusters the features of the images and keeps those farthest from the cluster centres.",
    score_title="Distance to the prototype",
    paper="arXiv:2206.14486",
)(
    Method(
        "top",
        "prototypicality",
        labels_from="none",
        knobs={"score": "prototypicality", "higher_is": "harder", "keep": "hardest"},
        higher_is="harder",
        evidence="prototype_scores",
    )
)
