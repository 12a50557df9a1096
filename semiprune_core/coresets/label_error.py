"""How many of a coreset's pseudo-labels are wrong, from the held-out labels of its run.

For a random coreset that is the pool's own share. Other methods choose by what goes along with errors: there a model of
the error given confidence and score is fitted on all held-out labels (:mod:`error_model`) and averaged over the kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from semiprune_core.coresets import error_model
from semiprune_core.learning.frozen.intervals import score_interval, shared_part
from semiprune_core.learning.quality import FEWEST
from semiprune_core.records import BoolArray, Coreset, FloatArray
from semiprune_core.results import PseudoRun
from semiprune_core.results.pseudo import BlindAnswers
from semiprune_core.scores import HARDER, SCORES

VAGUE = 0.4
"""A wider interval says next to nothing."""


@dataclass(frozen=True)
class ErrorEstimate:
    """The share of wrong ones among the kept pseudo-labels, with its 95% interval, from ``n`` held-out labels.

    ``everywhere`` is the share among all pseudo-labels, ``more`` how likely the coreset's is the larger one. The
    numbers are None where nothing can be said. ``words`` say how they were found, or what would make them known.
    """

    n: int
    words: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    everywhere: float | None = None
    more: float = 0.0

    @property
    def is_vague(self) -> bool:
        return self.low is None or self.high is None or self.high - self.low > VAGUE

    @property
    def interval(self) -> str:
        """In a few words, as a table shows it."""
        return "not known" if self.low is None or self.high is None else f"{self.low:.0%} to {self.high:.0%}"

    @property
    def is_likely_more(self) -> bool:
        return self.more >= error_model.LIKELY

    def to_json(self) -> dict[str, Any]:
        """As commands and exports write it."""
        numbers = {"value": self.value, "low": self.low, "high": self.high, "pool": self.everywhere}
        rounded = {name: None if number is None else round(number, 4) for name, number in numbers.items()}
        return {**rounded, "n": self.n, "is_likely_more": self.is_likely_more, "words": self.words}


@lru_cache(maxsize=4)
def _blind_answers(run: PseudoRun) -> BlindAnswers | None:
    return run.blind_answers()


def estimate_error(
    run: PseudoRun, human: BoolArray, coreset: Coreset, hardness: FloatArray, confidence: FloatArray
) -> ErrorEstimate:
    """For ``coreset`` of ``run``; ``human`` (N,) has a person's label, ``hardness`` (N,) is the score it is chosen by.

    Larger hardness means harder. ``confidence`` (N,) is the run's.
    """
    blind = _blind_answers(run)
    pseudo = ~human
    n_kept = int((coreset.mask & pseudo).sum())
    if blind is None:
        return ErrorEstimate(
            0,
            "This run is from a version that did not keep what its models said of labels they had not seen. "
            "Train again to know.",
        )
    n = len(blind)
    if n < FEWEST:
        return ErrorEstimate(n, f"Too few labels to say: {n} were held out, {FEWEST} are needed. Label more images.")
    if not n_kept:
        return ErrorEstimate(n, "No pseudo-label is kept.")
    shared = shared_part(n) if blind.is_cross_fitted else 0.0
    if is_uniform(coreset):
        return _of_the_pool(blind, n_kept, shared)
    return _modelled(blind, pseudo, coreset, hardness, confidence, n_kept, shared)


def is_uniform(coreset: Coreset) -> bool:
    """Whether pseudo-labels were kept by chance alone."""
    options = coreset.settings["options"]
    return coreset.settings["selector"] == "random" and not (options["class_balanced"] or options["min_per_class"])


def _of_the_pool(blind: BlindAnswers, n_kept: int, shared: float) -> ErrorEstimate:
    n, wrong = len(blind), int((~blind.right).sum())
    variance = (1 + shared) / n
    low, high = score_interval(wrong / n, 1 / (variance + 1 / n_kept))
    words = (
        f"The pool's own: {wrong} of {n} held-out labels contradict the model's answer. A random coreset has as many "
        "wrong labels, but for chance."
    )
    return ErrorEstimate(n, words, wrong / n, low, high, wrong / n)


def _modelled(
    blind: BlindAnswers,
    pseudo: BoolArray,
    coreset: Coreset,
    hardness: FloatArray,
    confidence: FloatArray,
    n_kept: int,
    shared: float,
) -> ErrorEstimate:
    places = error_model.places_of(-confidence, hardness, coreset.mask, pseudo)
    at, right = blind.positions, blind.right
    doubt = places.confidence[at]
    if not blind.same_models:  # another model's confidence: only its ranks compare
        doubt = error_model.bin_by_rank(-blind.confidence, np.ones(len(at), dtype=bool), error_model.CONFIDENCE_BINS)
    cells = error_model.cells_of(places, pseudo)
    seen = error_model.cell_number(doubt, places.score[at], places.kept[at])
    counts = np.bincount(seen[right], minlength=len(cells.shares)).astype(float)
    wrong = np.bincount(doubt[~right], minlength=error_model.CONFIDENCE_BINS).astype(float)
    if forces_human(coreset):  # whether a person's label is kept says nothing of the others: both halves share it
        counts = error_model.without_kept(cells, counts)
    kept, everywhere, more = error_model.estimated_shares(
        cells, counts[None], wrong[None], np.array([n_kept]), weight=1 / (1 + shared)
    )
    n = len(blind)
    low, value, high = (float(part[0]) for part in kept)
    words = (
        f"From {n} held-out labels, {int((~right).sum())} of which contradict the model's answer: how often that "
        f"happens at each confidence and score, averaged over the {n_kept:,} pseudo-labels that are kept. About "
        f"{3 * n:,} more held-out labels would halve the interval."
    )
    return ErrorEstimate(n, words, value, low, high, float(everywhere[1, 0]), float(more[0]))


def forces_human(coreset: Coreset) -> bool:
    """Whether a person's label is kept because it is one."""
    options = coreset.settings["options"]
    return bool(options["keep_human"] or options["same_annotation_budget"])


def hardness_of(coreset: Coreset, score: str, values: FloatArray) -> FloatArray:
    """(N,) the score's values, turned so that larger means harder."""
    if score in SCORES:
        higher_is = SCORES.facts(score)["higher_is"]
    else:
        higher_is = coreset.settings["knobs"].get("higher_is") or HARDER
    return values if higher_is == HARDER else -values
