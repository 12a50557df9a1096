"""The trust check before pruning: green, amber or red, each with its reasons; grey is what nobody knows.

The thresholds, and why they stand where they do:

    accuracy, lower end of its 95% interval   below 0.50 red, below 0.75 amber. The paper prunes well with pseudo-labels
                                              of 58 to 65% (its corrupted sets); below half, most labels are wrong and a
                                              score of "how hard is this label to learn" mostly finds wrong labels.
    a class without any pseudo-label          red: it would be pruned away whole.
    a class without any human label           amber: nothing could be learned of it. Whether the pool holds any is not
                                              known; if so, those images carry the labels of other classes.
    a class with fewer than 4 human labels    amber: what the model says of it rests on almost nothing.
    a class's own accuracy below 0.50         amber: surely so where its interval ends below one half, else with the
                                              counts, since a few images may be wrong by chance.
    a class without enough held-out labels    grey: nothing measures it.
    a class that got too many or too few      amber: more than chance explains (see ``quality_report.class_rows``).
    calibration, expected error above 0.10    amber: the confidence cannot be taken at its word.
    agreement between seeds                   below 0.60 red, below 0.80 amber. Only runs that differ in nothing but the
                                              seed count: one on fewer labels or by another algorithm should differ.
    agreement of the scores between seeds     rank correlation below 0.70 amber: the coreset would be another one.
    no other seed tried                       grey: how much the labels depend on it is not known.
    no held-out labels                        amber: nothing measures the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from semiprune_core.labeling.drawing import FEW_LABELS
from semiprune_core.learning.quality import AMBER_ACCURACY, RED_ACCURACY
from semiprune_core.project.workspace import Project
from semiprune_core.results import PseudoRun
from semiprune_core.trust.quality_report import Report, agreement

Level = Literal["grey", "green", "amber", "red"]
ORDER: tuple[Level, ...] = ("grey", "green", "amber", "red")
SHOWN: tuple[Level, ...] = ("red", "amber", "grey", "green")
"""What needs attention first."""
RED_AGREEMENT, AMBER_AGREEMENT = 0.60, 0.80
AMBER_RANKS = 0.70
AMBER_ECE = 0.10
RANKED = {"aum": "AUM", "dual": "DUAL"}
"""The scores that choose coresets."""
SAFER = "Random selection is safer here"


@dataclass(frozen=True)
class Reason:
    level: Level
    sentence: str

    @property
    def word(self) -> str:
        """The level as it is read out."""
        return "unknown" if self.level == "grey" else self.level


@dataclass(frozen=True)
class Trust:
    """The worst level of the reasons; ``verdict`` is the sentence to show first."""

    level: Level
    verdict: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Stability:
    """What another seed changes: ``agreements`` with runs that differ in the seed only, one share each; ``ranks`` the
    rank correlation between the seeds of the dynamics run, by score.
    """

    agreements: tuple[float, ...] = ()
    ranks: Mapping[str, float] | None = None


def seed_twins(run: PseudoRun, others: Sequence[PseudoRun]) -> list[PseudoRun]:
    """The runs on the same pool and labels with the same settings, the same start taken, and another seed."""

    def recipe(other: PseudoRun) -> tuple[object, ...]:
        settings = {name: value for name, value in other.artifact.settings.items() if name != "seed"}
        return settings, dict(other.artifact.inputs), other.start

    def seed(other: PseudoRun) -> object:
        return other.artifact.manifest["seed"]

    return [other for other in others if recipe(other) == recipe(run) and seed(other) != seed(run)]


def stability_of(project: Project, run: PseudoRun, others: Sequence[PseudoRun]) -> Stability:
    """What is known about seeds: from the run's twins, and from the newest scores that stand on it."""
    scores = [scored for scored in project.artifacts("scores") if scored.inputs.get("pseudo") == run.artifact.hash]
    ranks = scores[-1].facts.get("stability") if scores else None
    return Stability(tuple(agreement(run, twin) for twin in seed_twins(run, others)), ranks)


def judge(report: Report, stability: Stability | None = None) -> Trust:
    """May one prune with these pseudo-labels?"""
    stability = stability or Stability()
    reasons = [*_accuracy(report), *_classes(report), *_calibration(report), *_agreement(stability), *_ranks(stability)]
    level: Level = max((reason.level for reason in reasons), key=ORDER.index, default="green")
    worst = [reason.sentence for reason in reasons if reason.level == level]
    verdict = {
        "green": "These pseudo-labels are good enough to prune with.",
        "amber": "Prune with care: check the points marked below, or label more first.",
        "red": f"{SAFER}: {worst[0][0].lower()}{worst[0][1:]}" if worst else "",
    }[level]
    return Trust(level, verdict, tuple(sorted(reasons, key=lambda reason: SHOWN.index(reason.level))))


def _accuracy(report: Report) -> list[Reason]:
    if report.held_out is None:
        return [
            Reason(
                "amber",
                "No labels were held out, so nothing measures the pseudo-labels. Hold some out and train again.",
            )
        ]
    share = report.held_out.accuracy
    words = f"Held-out accuracy is {share.value:.0%}, {share.low:.0%} to {share.high:.0%} with n = {share.n}"
    if share.low < RED_ACCURACY:
        return [Reason("red", f"{words}: half of the labels or more may be wrong.")]
    if share.low < AMBER_ACCURACY:
        return [Reason("amber", f"{words}: up to {1 - share.low:.0%} of the labels may be wrong.")]
    return [Reason("green", f"{words}.")]


def _classes(report: Report) -> list[Reason]:
    reasons = []
    if unseen := [row.name for row in report.classes if not row.n_human]:
        reasons.append(
            Reason(
                "amber",
                f"{_named(unseen)} has no label, so no image could get it; any that belong there carry another label. "
                "Label some, or remove the class.",
            )
        )
    if empty := [row.name for row in report.classes if row.verdict == "none" and row.n_human]:
        reasons.append(Reason("red", f"{_named(empty)} got no pseudo-labels and would be pruned away entirely."))
    if thin := [row.name for row in report.classes if 0 < row.n_human < FEW_LABELS]:
        reasons.append(Reason("amber", f"{_named(thin)} has fewer than {FEW_LABELS} human labels. Label more of it."))
    odd = {word: [row.name for row in report.classes if row.verdict == word] for word in ("too many", "too few")}
    reasons += [
        Reason("amber", f"{_named(names)} got {word} images, beyond what chance explains.")
        for word, names in odd.items()
        if names
    ]
    reasons += _class_accuracies(report)
    return [*reasons, *_unmeasured(report)] or [
        Reason(
            "green", "Every class has human labels, a plausible share of the pseudo-labels and more right than wrong."
        )
    ]


def _class_accuracies(report: Report) -> list[Reason]:
    if report.held_out is None:
        return []
    shares = zip(report.class_names, report.held_out.per_class, strict=True)
    poor = [(name, share) for name, share in shares if share is not None and share.value < RED_ACCURACY]
    reasons = []
    if weak := [name for name, share in poor if share.high < RED_ACCURACY]:
        reasons.append(Reason("amber", f"{_named(weak)} is wrong more often than right."))
    if unsure := [f"{name} ({share.right} of {share.n} right)" for name, share in poor if share.high >= RED_ACCURACY]:
        reasons.append(
            Reason("amber", f"{_named(unsure)} was mostly wrong on held-out labels; so few may be wrong by chance.")
        )
    return reasons


def _unmeasured(report: Report) -> list[Reason]:
    if report.held_out is None:
        return []
    shares = zip(report.class_names, report.held_out.per_class, report.classes, strict=True)
    if names := [name for name, share, row in shares if share is None and row.n_human]:
        return [Reason("grey", f"{_named(names)} has too few held-out labels to tell how good its pseudo-labels are.")]
    return []


def _calibration(report: Report) -> list[Reason]:
    held = report.held_out
    if held is None:
        return []
    if held.ece > AMBER_ECE:
        how = "overconfident" if held.gap > 0 else "underconfident"
        return [Reason("amber", f"Confidence is off by {held.ece:.0%} on average; the model is {how}.")]
    return [Reason("green", f"Confidence can be taken at face value (off by {held.ece:.0%} on average).")]


def _agreement(stability: Stability) -> list[Reason]:
    if not stability.agreements:
        return [Reason("grey", "No other seed was tried, so it is unknown how much the labels depend on it.")]
    least = min(stability.agreements)
    words = f"A run with another seed agrees on {least:.0%} of the images"
    if len(stability.agreements) > 1:
        words = f"Runs with {len(stability.agreements)} other seeds agree on at least {least:.0%} of the images"
    if least < RED_AGREEMENT:
        return [Reason("red", f"{words}: another seed would give another coreset.")]
    if least < AMBER_AGREEMENT:
        return [Reason("amber", f"{words}; review the images they disagree on first.")]
    return [Reason("green", f"{words}.")]


def _ranks(stability: Stability) -> list[Reason]:
    by_score = stability.ranks or {}
    ranks = {title: by_score[name] for name, title in RANKED.items() if name in by_score}
    if not ranks:
        return []
    listed = ", ".join(f"{title} {value:.2f}" for title, value in ranks.items())
    if min(ranks.values()) < AMBER_RANKS:
        sentence = "Scores depend on the seed of the dynamics run"
        return [Reason("amber", f"{sentence} (rank correlation {listed}). Average more runs on the Scores page.")]
    return [Reason("green", f"Scores hardly depend on the seed of the dynamics run (rank correlation {listed}).")]


def _named(names: Sequence[str]) -> str:
    """At most three names, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"Class {names[0]}" if len(names) == 1 else f"Classes {', '.join(names[:3])}{more}: each"
