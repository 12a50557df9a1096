"""What a score is: one finite number per image, taken from the stored trajectory, with a declared direction.

A score is a function ``(trajectory, *, knobs) -> (N,)`` that looks at each image's column alone. That is all
:func:`semiprune_core.scores.table.compute_scores` needs to know to run every score in one pass over blocks of images.
Its knobs are declared in its signature (:mod:`semiprune_core.knobs`); knobs that several scores share stand here.

Facts given at registration:

    title       for people
    higher_is   "easier" or "harder": what a larger number means
    explain     one sentence for the page
    paper       where the definition comes from
    needs       the trajectory's columns it reads (``last_entropy`` may be missing; the score is then left out)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidDataError
from semiprune_core.knobs import N_EPOCHS, Knob, knobs_of
from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.registry import Registry

EASIER, HARDER = "easier", "harder"

Score = Callable[..., FloatArray]
COLUMNS_OF_TABLES = ("image_id", "path", "kept", "label", "label_source", "pseudo_label", "confidence", "rank")
"""Names that no score may have: its column stands beside these."""


def _check_score(name: str, score: Score) -> None:
    if name in COLUMNS_OF_TABLES:
        raise ValueError(f"A score cannot be called '{name}': tables have a column of that name.")
    knobs_of(score)  # raises for knobs that are declared wrongly


SCORES: Registry[Score] = Registry("score", required=("higher_is", "explain"), check=_check_score)

AumEpochs = Annotated[
    int | None,
    Knob(
        "AUM and forgetting look at the first so many epochs; all of them by default.",
        low=1,
        high=N_EPOCHS,
        title="Epochs of AUM",
        setting="aum_epochs",
    ),
]
DualEpochs = Annotated[
    int | None,
    Knob(
        "DUAL looks at the first T epochs.",
        title="T",
        low=1,
        high=N_EPOCHS,
        shown=("window", N_EPOCHS),
        flag="--T",
        setting="dual_epochs",
        tune=True,
    ),
]
Window = Annotated[
    int,
    Knob(
        "How many epochs a window of DUAL and of dynamic uncertainty has.",
        title="J",
        low=2,
        high=N_EPOCHS,
        setting="window",
    ),
]


def scored_epochs(trajectory: Trajectory, n_epochs: int | None) -> int:
    """T: how many of the first epochs are scored; None means all of them."""
    if n_epochs is None:
        n_epochs = trajectory.n_epochs
    check_range("n_epochs", n_epochs, low=1, high=trajectory.n_epochs)
    return int(n_epochs)


def mean_over_epochs(column: FloatArray, n_epochs: int) -> FloatArray:
    """(N,) float64 mean of the first ``n_epochs`` rows of a (T, N) column, summed in float64.

    Row by row: numpy's own sum adds in another order when there is but one image, and a score would then differ in its
    last digit with the size of the block it was computed in.
    """
    total = np.zeros(column.shape[1], dtype=np.float64)
    for row in column[:n_epochs]:
        total += row
    return total / n_epochs


def finite_scores(title: str, scores: FloatArray) -> FloatArray:
    """The scores, if all are finite. A NaN or an infinity anywhere in a scored epoch shows up here."""
    bad = int(np.count_nonzero(~np.isfinite(scores)))
    if bad:
        raise InvalidDataError(
            f"{title} cannot be computed: the trajectory of {bad} of {len(scores)} images holds values that are not "
            "finite. Repeat the dynamics run, with a lower learning rate if it diverged."
        )
    return scores
