"""What is known of the labels so far: accuracy now, how it grew, what more labels would bring; and its words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from semiprune_core import streams
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.learning.frozen import FrozenSettings
from semiprune_core.learning.quality import FEWEST
from semiprune_core.live.growth import Outlook, grow, outlook
from semiprune_core.progress import Progress
from semiprune_core.project.pool import Pool
from semiprune_core.records import UNLABELED, FloatArray, IntArray
from semiprune_core.results.pseudo import FROZEN
from semiprune_core.streams import Purpose
from semiprune_core.training.data import labels_on_pool
from semiprune_core.training.heads import PreparedFeatures, fit_head
from semiprune_core.training.settings import TrainSettings

FEWEST_FOR_OUTLOOK = 40
"""Below this many measuring labels parts of them are too small to show a curve."""
NEXT = 100
LITTLE = 0.01
"""More labels change little where the next hundred surely bring less than this."""
UNSURE = 0.15
"""An outlook whose interval is wider than this says nothing."""
POOR = 0.75
"""Where even the upper end of the accuracy is below this, the features are the limit, not the labels."""


@dataclass(frozen=True, eq=False)
class Guess:
    """The head's answer for every image (N,): class ids and confidence."""

    class_ids: IntArray
    confidence: FloatArray


def measure(
    prepared: PreparedFeatures,
    pool: Pool,
    snapshot: LabelsSnapshot,
    *,
    encoder: str = "",
    progress: Progress | None = None,
) -> tuple[dict[str, Any], Guess | None]:
    """The report on these labels, plain JSON values, and the head's answers; without enough labels only why not.

    The fit is that of a training run on pretrained features with its default settings and seed.
    """
    settings = TrainSettings(start=FROZEN)
    labels = labels_on_pool(snapshot, pool)
    n_labels, n_measured = int((labels.learned != UNLABELED).sum()), int(labels.measurable_mask.sum())
    report: dict[str, Any] = {"n_labels": n_labels, "n_measured": n_measured, "encoder": encoder}
    if n_measured < FEWEST:
        return {**report, "state": "few", "line": few_words(n_measured)}, None
    if len(np.unique(labels.learned[labels.learned != UNLABELED])) < 2:
        return {**report, "state": "few", "line": "Accuracy appears here once two classes have labels."}, None
    n_classes = len(snapshot.class_names)
    fitted = fit_head(prepared, labels, n_classes, settings.head, seed=settings.seed, progress=progress)
    if fitted.quality is None:
        line = "Accuracy cannot be estimated yet: the labeled images are near-duplicates of each other."
        return {**report, "state": "few", "line": line}, None
    accuracy = asdict(fitted.quality.accuracy)
    guess = Guess(np.array(snapshot.class_ids)[fitted.probs.argmax(1)], fitted.probs.max(1))
    view = None
    n_rest = int((labels.learned == UNLABELED).sum())
    if n_measured >= FEWEST_FOR_OUTLOOK and n_rest:
        rng = streams.rng(settings.seed, Purpose.OUTLOOK)
        growth = grow(
            prepared.pool,
            labels.learned,
            fitted,
            groups=prepared.groups,
            n_classes=n_classes,
            settings=FrozenSettings() if settings.head.head == "ssl" else settings.head,
            rng=rng,
            progress=progress,
        )
        view = outlook(growth, n_measured, min(NEXT, n_rest), now=accuracy["value"], rng=rng)
    return {
        **report,
        "state": "ready",
        "accuracy": accuracy,
        "missing": [snapshot.class_names[number] for number in fitted.missing],
        "next": None
        if view is None
        else {"n": view.n_more, "gain": view.gain, "low": view.gain_low, "high": view.gain_high},
        "curve": None if view is None else _curve(view),
        "may_stop": view is not None and view.gain_high < LITTLE,
        "line": now_words(accuracy),
        "outlook": outlook_words(view, accuracy),
        "detail": f"{n_measured:,} labels drawn at random, each answered by a head on pretrained features that did not "
        "learn from it. In brackets: 95% intervals. The curve shows the accuracy by number of labels.",
    }, guess


def _curve(view: Outlook) -> dict[str, list[float]]:
    columns = {"n": view.at, "value": view.value, "low": view.low, "high": view.high}
    return {name: [round(float(value), 4) for value in values] for name, values in columns.items()}


def few_words(n: int) -> str:
    return f"Accuracy appears here after {FEWEST} labels drawn at random; {n} so far."


def now_words(accuracy: dict[str, Any]) -> str:
    return f"Accuracy {accuracy['value']:.0%} ({accuracy['low']:.0%} to {accuracy['high']:.0%})"


def outlook_words(view: Outlook | None, accuracy: dict[str, Any]) -> str:
    """What more labels would bring, or that it cannot be said yet."""
    if view is None:
        return "Too early to say what more labels would bring."
    more = f"{view.n_more} more labels" if view.n_more != 1 else "One more label"
    gain, low, high = (100 * max(0.0, value) for value in (view.gain, view.gain_low, view.gain_high))
    if view.gain_high - view.gain_low > UNSURE:
        return f"{more} may add anything from {low:.0f} to {high:.0f} points: too early to say."
    if view.gain_high < LITTLE:
        if accuracy["high"] < POOR:
            return f"{more} would add less than 1 point with these features. Training from scratch may do better."
        return f"You may stop here: {more} would add less than 1 point."
    return f"{more} would add about {gain:.1f} points ({low:.1f} to {high:.1f})."
