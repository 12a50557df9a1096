"""Score extrapolation (Schmidt et al. 2025) by a graph network: scores of the labeled images, carried to all others.

The images of the highest dynamic uncertainty are kept, known and extrapolated alike, as the paper does.
"""

from semiprune_core.methods.base import METHODS, Method

EXTRAPOLATION_GNN = METHODS.register(
    "extrapolation_gnn",
    title="Score extrapolation (GNN)",
    explain="Scores the labeled images alone, lets a graph network guess the scores of the others, keeps the highest.",
    paper="arXiv:2506.09010",
)(
    Method(
        "top",
        "dynamic_uncertainty",
        "labeled",
        knobs={"score": "dynamic_uncertainty", "keep": "hardest"},
        evidence="graph_scores",
    )
)
