"""Score extrapolation (Schmidt et al. 2025) by neighbours: scores of the labeled images, carried to all others.

The paper keeps the highest scores; so the images of the highest DUAL are kept, known and extrapolated alike.
"""

from semiprune_core.methods.base import METHODS, Method

EXTRAPOLATION_KNN = METHODS.register(
    "extrapolation_knn",
    title="Score extrapolation (kNN)",
    explain="Scores the labeled images alone, gives each other image the mean of its neighbours, keeps the highest.",
    paper="arXiv:2506.09010",
)(Method("top", "dual", "labeled", knobs={"score": "dual", "keep": "hardest"}, evidence="knn_scores"))
