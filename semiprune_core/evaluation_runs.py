"""Evaluations as the page sees them: what a new one would do and take, and those that ran, run or were stopped."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from semiprune_core import jobs
from semiprune_core.artifacts import Artifact
from semiprune_core.errors import SemiPruneError
from semiprune_core.evaluation import EvaluationRun, EvaluationSettings, partial_trials
from semiprune_core.evaluation_view import FULL, EvaluationView, view_of
from semiprune_core.evidence import PROVIDERS
from semiprune_core.jobs import Job
from semiprune_core.labeling import open_store
from semiprune_core.learning import training
from semiprune_core.learning.presets import supervised_preset
from semiprune_core.methods import METHODS
from semiprune_core.records import coreset_size
from semiprune_core.workspace import Project

ARTIFACT, KIND = "evaluation", "evaluate"
TRUTHS = {
    "reference": "the reference labels that came with the images",
    "human": "the labels people gave",
    "pseudo": "pseudo-labels",
}
TESTS = {"split": "the test images", "held out": "images held out of the pool"}


# --- before --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodChoice:
    """A method as the form offers it: what it does, what it looks at, and why it cannot be run, if so."""

    name: str
    title: str
    explain: str
    looks_at: str
    about: str
    problem: str | None


def method_choices(project: Project) -> list[MethodChoice]:
    """Every method, with what it needs."""
    has_scores = project.latest("scores") is not None
    found = []
    for name in METHODS:
        method, facts = METHODS[name], METHODS.facts(name)
        provider = PROVIDERS.facts(method.evidence)
        problem = None
        if method.evidence == "scores" and not has_scores:
            problem = "It needs the scores: do the dynamics run on the Scores page first."
        found.append(
            MethodChoice(
                name,
                str(facts["title"]),
                str(facts.get("explain", "")),
                str(provider["title"]),
                str(provider.get("about", "")),
                problem,
            )
        )
    return found


@dataclass(frozen=True)
class Ground:
    """What an evaluation stands on: which labels it trains with (``truth``), and what it tests on."""

    truth: str
    test: str
    n_pool: int
    n_test: int
    truths: tuple[str, ...]
    """Those that could be had, the best first."""

    @property
    def sentence(self) -> str:
        said = f"Trains with {TRUTHS[self.truth]}"
        if self.test == "split":
            return f"{said} and tests on the {self.n_test:,} test images."
        return f"{said} and tests on images held out of the pool, because it came without test images."

    @property
    def warning(self) -> str | None:
        if self.truth != "pseudo":
            return None
        return (
            "There are no true labels for all images, so coresets are trained on pseudo-labels: the numbers say how "
            "well a coreset teaches the model's own answers, which may flatter methods that chose by them."
        )


def ground_of(project: Project) -> Ground:
    """What there is to train and test with."""
    pool, tests = project.pool(), project.test_set()
    truths = []
    if (pool.reference_labels >= 0).all():
        truths.append("reference")
    human, _ = open_store(project).snapshot().on_pool(pool.ids, pool.duplicate_of)
    if len(human) and (human >= 0).all():
        truths.append("human")
    if project.latest("pseudo") is not None or not truths:
        truths.append("pseudo")
    n_test = int((tests.reference_labels >= 0).sum()) if len(tests) else 0
    return Ground(truths[0], "split" if n_test else "held out", len(pool), n_test, tuple(truths))


def planned(settings: EvaluationSettings) -> list[tuple[str, float, int]]:
    """(method, ratio, seed) of every training that ``settings`` ask for."""
    pairs = [
        (method, ratio) for method in settings.methods for ratio in ((0.0,) if method == FULL else settings.ratios)
    ]
    return [(method, float(ratio), int(seed)) for method, ratio in pairs for seed in settings.seeds]


def expected_minutes(project: Project, settings: EvaluationSettings) -> float | None:
    """How long the trainings take together, from what this preset took before on this pool; None where unknown."""
    pace = seconds_per_image(project, settings.preset)
    if pace is None:
        return None
    n, epochs = len(project.pool()), epochs_of(settings)
    seen = sum(coreset_size(n, ratio) * epochs for _, ratio, _ in planned(settings))
    return pace * seen / 60


def epochs_of(settings: EvaluationSettings) -> int:
    return settings.epochs or supervised_preset(settings.preset).epochs


def seconds_per_image(project: Project, preset: str) -> float | None:
    """Seconds of training per image and epoch with ``preset``: of earlier evaluations, else of a dynamics run."""
    found: list[float] = []
    for artifact in project.artifacts(ARTIFACT):
        settings = EvaluationSettings.from_json(artifact.settings)
        if settings.preset == preset:
            trials = EvaluationRun(artifact).trials()
            trained = trials[(trials["minutes"] > 0) & (trials["n_train"] > 0)]
            found += (60 * trained["minutes"] / (trained["n_train"] * epochs_of(settings))).tolist()
    if found:
        return float(statistics.median(found))
    for job in jobs.list_jobs(project, "dynamics"):
        if job.settings.get("preset") == preset and job.status().state == jobs.DONE:
            epochs = supervised_preset(preset, **job.settings.get("training", {})).epochs
            seconds = training.trained_seconds(job)
            if seconds > 0:
                return seconds / (len(project.pool()) * epochs * len(job.settings["seeds"]))
    return None


# --- after and meanwhile -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation: finished (an artifact), or a job that runs or stopped on its way."""

    settings: EvaluationSettings
    artifact: Artifact | None = None
    job: Job | None = None

    @property
    def id(self) -> str:
        return self.artifact.id if self.artifact is not None else str(self.job and self.job.id)

    @property
    def created(self) -> str:
        if self.artifact is not None:
            return str(self.artifact.manifest["created"])
        return self.job.created if self.job is not None else ""

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.artifact.facts if self.artifact is not None else {}

    @property
    def titles(self) -> dict[str, str]:
        return {**titles_of(self.settings.methods), **self.facts.get("methods", {})}

    @property
    def name(self) -> str:
        """What it is, in words: "3 methods, 5 ratios, 3 seeds"."""
        n_methods = len([method for method in self.settings.methods if method != FULL])
        parts = ((n_methods, "method"), (len(self.settings.ratios), "ratio"), (len(self.settings.seeds), "seed"))
        said = ", ".join(f"{n} {word}" if n == 1 else f"{n} {word}s" for n, word in parts)
        return f"{said}, same annotation budget" if self.settings.same_annotation_budget else said

    def trials(self) -> pd.DataFrame:
        if self.artifact is not None:
            return EvaluationRun(self.artifact).trials()
        assert self.job is not None
        return partial_trials(self.job)

    def view(self, trials: pd.DataFrame | None = None) -> EvaluationView:
        """What its trials say; planned methods and ratios have their place."""
        return view_of(
            self.trials() if trials is None else trials,
            titles=self.titles,
            unranked=unranked(self.settings.methods),
            methods=self.settings.methods,
            ratios=self.settings.ratios,
        )


def titles_of(methods: Sequence[str]) -> dict[str, str]:
    named = {method: METHODS.title(method) for method in methods if method in METHODS}
    return {**named, FULL: "Full data"}


def unranked(methods: Sequence[str]) -> frozenset[str]:
    """Methods that see more labels than the others have: shown, never marked best."""
    return frozenset(one for one in methods if one in METHODS and METHODS[one].labels_from == "reference")


def finished(project: Project) -> list[Evaluation]:
    """Evaluations that were kept, newest first; one of another version whose settings cannot be read is left out."""
    found = []
    for artifact in reversed(project.artifacts(ARTIFACT)):
        try:
            found.append(Evaluation(EvaluationSettings.from_json(artifact.settings), artifact=artifact))
        except SemiPruneError:
            continue
    return found


def of_job(job: Job) -> Evaluation:
    return Evaluation(EvaluationSettings.from_json(job.settings), job=job)
