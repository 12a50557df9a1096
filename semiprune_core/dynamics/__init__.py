"""The dynamics run: a supervised training on the pseudo-labels that records how each image is learned; scores."""

from semiprune_core.dynamics.submit import (
    FEWEST_EPOCHS,
    DynamicsSettings,
    pinned_pseudo,
    submit_dynamics,
    why_out_of_date,
)

__all__ = [
    "DynamicsSettings",
    "FEWEST_EPOCHS",
    "pinned_pseudo",
    "submit_dynamics",
    "why_out_of_date",
]
