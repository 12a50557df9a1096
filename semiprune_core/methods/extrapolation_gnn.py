"""Score extrapolation (Schmidt et al. 2025) by a graph network: scores of the labeled images, carried to all others.

The paper keeps the highest scores; so the images of the highest DUAL are kept, known and extrapolated alike.
"""

from semiprune_core.methods.base import METHODS, Method

EXTRAPOLATION_GNN = METHODS.register(
    "extrapolation_gnn",
    title="Score extrapolation (GNN)",
    explain="Scores the labeled images alone, lets a graph network guess the scores of the others, keeps the highest.",
    paper="arXiv:2506.09010",
)(Method("top", "dual", "labeled", knobs={"score": "dual", "keep": "hardest"}, evidence="graph_scores"))
