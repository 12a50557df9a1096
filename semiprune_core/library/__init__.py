"""What ``import semiprune_core as sp`` offers: the line on arrays, and projects from a script. See docs/library.md."""

from semiprune_core.library.features import Features, embed
from semiprune_core.library.line import evaluate, learn, prune, score, select, train_dynamics
from semiprune_core.library.outcomes import Coreset, Evaluation, PseudoLabels, Scores, TrainingDynamics
from semiprune_core.library.projects import Project, open

__all__ = [
    "Coreset",
    "Evaluation",
    "Features",
    "Project",
    "PseudoLabels",
    "Scores",
    "TrainingDynamics",
    "embed",
    "evaluate",
    "learn",
    "open",
    "prune",
    "score",
    "select",
    "train_dynamics",
]
