"""Score extrapolation (Schmidt et al. 2025) by neighbours: scores of the labeled images, carried to all others.

The images of the highest dynamic uncertainty are kept, known and extrapolated alike, as the paper does.
"""

from semiprune_core.methods.base import METHODS, Method

EXTRAPOLATION_KNN = METHODS.register(
    "extrapolation_knn",
    title="Score extrapolation (kNN)",
    explain="Scores the labeled images alone, gives each other image the mean of its neighbours, keeps the highest.",
    paper="arXiv:2506.09010",
)(
    Method(
        "top",
        "dynamic_uncertainty",
        "labeled",
        knobs={"score": "dynamic_uncertainty", "keep": "hardest"},
        evidence="knn_scores",
    )
)
