"""Forgetting events (Toneva et al. 2019): how often an image that was right became wrong."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from semiprune_core.checks import check_choice
from semiprune_core.knobs import Knob
from semiprune_core.records import FloatArray, Trajectory
from semiprune_core.scores.base import HARDER, SCORES, AumEpochs, scored_epochs

HARDEST, EASIEST = "hardest", "easiest"
NeverLearned = Annotated[
    str,
    Knob(
        "Images that were never right: the hardest, as the definition has it, or the easiest, as in code that only "
        "counts events.",
        title="Never learned",
        choices=(HARDEST, EASIEST),
    ),
]


@SCORES.register(
    "forgetting",
    title="Forgetting",
    higher_is=HARDER,
    explain="How often the model got the image right and lost it again; images it never got right count as hardest.",
    paper="arXiv:1812.05159",
    needs=("correct",),
)
def forgetting(
    trajectory: Trajectory, *, n_epochs: AumEpochs = None, never_learned: NeverLearned = HARDEST
) -> FloatArray:
    """(N,) number of steps correct -> wrong within the first T epochs; T for an image that was never correct.

    T epochs hold at most T // 2 such steps, so T is more than any learned image can reach, and finite. With
    ``never_learned`` "easiest" such an image has 0 events, as in the paper's published code.

    >>> correct = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 1]], dtype=bool)
    >>> ones = np.ones((3, 3))
    >>> forgetting(Trajectory(ones, ones, correct, ones)).tolist()
    [1.0, 3.0, 0.0]
    >>> forgetting(Trajectory(ones, ones, correct, ones), never_learned="easiest").tolist()
    [1.0, 0.0, 0.0]
    """
    check_choice("never_learned", never_learned, (HARDEST, EASIEST))
    n_epochs = scored_epochs(trajectory, n_epochs)
    events = np.zeros(trajectory.n_images, dtype=np.int32)
    before = np.asarray(trajectory.correct[0], dtype=bool)
    learned = before.copy()
    for row in trajectory.correct[1:n_epochs]:
        now = np.asarray(row, dtype=bool)
        events += before > now
        learned |= now
        before = now
    never = n_epochs if never_learned == HARDEST else 0
    return np.where(learned, events, never).astype(np.float64)
