"""Scores: from the trajectory to one number per image. A new score is one new file here."""

from semiprune_core.registry import import_installed, import_siblings
from semiprune_core.scores.base import EASIER, HARDER, SCORES
from semiprune_core.scores.table import (
    ScoreSettings,
    ScoreTable,
    available_scores,
    compute_scores,
    score_knobs,
    score_settings_of,
)

import_siblings(__name__, list(__path__))
import_installed("semiprune.scores", SCORES)

__all__ = [
    "EASIER",
    "HARDER",
    "SCORES",
    "ScoreSettings",
    "ScoreTable",
    "available_scores",
    "compute_scores",
    "score_knobs",
    "score_settings_of",
]
