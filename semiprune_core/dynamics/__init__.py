"""The dynamics run: a supervised training on the pseudo-labels that records how each image is learned; scores."""

from semiprune_core.dynamics.submit import (
    FEWEST_EPOCHS,
    SCORING_STARTS,
    DynamicsSettings,
    encoder_of,
    pinned_pseudo,
    start_of,
    submit_dynamics,
    usual_training,
    why_out_of_date,
)

__all__ = [
    "DynamicsSettings",
    "FEWEST_EPOCHS",
    "SCORING_STARTS",
    "encoder_of",
    "pinned_pseudo",
    "start_of",
    "submit_dynamics",
    "usual_training",
    "why_out_of_date",
]
