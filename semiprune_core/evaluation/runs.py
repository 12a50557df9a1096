"""Evaluations as the page sees them: what a new one would do and take, and those that ran, run or were stopped."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from semiprune_core import files, jobs, training
from semiprune_core.baselines.evidence import PROVIDERS
from semiprune_core.errors import SemiPruneError
from semiprune_core.evaluation.data import (
    FINAL,
    HELD_OUT,
    SPLIT,
    EvaluationData,
    caveat,
    copies_words,
    evaluation_data,
    few_words,
)
from semiprune_core.evaluation.settings import (
    ARTIFACT,
    DATA_FACTS,
    EvaluationRun,
    EvaluationSettings,
    partial_trials,
)
from semiprune_core.evaluation.view import EvaluationView, view_of
from semiprune_core.jobs import Job
from semiprune_core.learning.presets import FINETUNED_NET, SUPERVISED_PRESETS, supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.methods import METHODS
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.records import coreset_size
from semiprune_core.results import ScoreRun, made_from
from semiprune_core.trials import FINETUNE, FULL, PROBE, SCRATCH, TESTS
from semiprune_core.trials.alike import known_alike
from semiprune_core.trials.kinds import PROBE_SECONDS, PROBED_PER_SECOND, for_full

TRUTHS = {
    "reference": "the reference labels that came with the images",
    "human": "human labels",
    "pseudo": "pseudo-labels",
}
TESTED_ON = {
    SPLIT: "the test images",
    FINAL: "the final test: labels that no learning was given",
    HELD_OUT: "images held out of the pool",
}

WARNINGS = ("search_words", "seen_words")
"""Facts of an evaluation that say why its numbers are too good; empty or absent where they are not."""


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
    choices = []
    for name in METHODS:
        method, facts = METHODS[name], METHODS.facts(name)
        provider = PROVIDERS.facts(method.evidence)
        problem = None
        if method.evidence == "scores" and not has_scores:
            problem = "It needs scores: start the dynamics run on the Scores page first."
        choices.append(
            MethodChoice(
                name,
                str(facts["title"]),
                str(facts.get("explain", "")),
                str(provider["title"]),
                str(provider.get("about", "")),
                problem,
            )
        )
    return choices


def available_data(project: Project) -> dict[str, EvaluationData]:
    """What an evaluation could stand on, by the labels it would train with, the best first; empty where on nothing."""
    data_by_truth = {}
    for truth in TRUTHS:
        with contextlib.suppress(SemiPruneError):
            data_by_truth[truth] = evaluation_data(project, truth, alike=known_alike(project))
    return data_by_truth


def why_no_data(project: Project) -> str:
    """Why nothing can be evaluated, in words."""
    try:
        evaluation_data(project)
    except SemiPruneError as error:
        return str(error)
    return ""


WHAT_IT_FITS = {
    PROBE: "Fits a linear probe to the pretrained features of each coreset",
    FINETUNE: "Trains a network on each coreset, beginning with a pretrained encoder's weights,",
    SCRATCH: "Trains a fresh network on each coreset",
}


def data_sentence(data: EvaluationData, test: str = SCRATCH) -> str:
    """What is trained with and tested on, plainly."""
    tested = {
        SPLIT: f"the {data.n_test:,} test images that came with the pool.",
        FINAL: f"the {data.n_test:,} labels that were kept for the final test.",
        HELD_OUT: f"{data.n_test:,} images of the pool that are held out of every coreset, because the pool came "
        "without test images and no labels were kept for a final test.",
    }[data.test]
    copies = copies_words(data).replace(" were left", " are left").replace(" was left", " is left")
    return f"{WHAT_IT_FITS[test]} with {TRUTHS[data.truth]} and tests it on {tested} {copies}".rstrip()


def planned(settings: EvaluationSettings) -> list[tuple[str, float, int]]:
    """(method, ratio, seed) of every training that ``settings`` ask for."""
    pairs = [
        (method, ratio) for method in settings.methods for ratio in ((0.0,) if method == FULL else settings.ratios)
    ]
    return [(method, float(ratio), int(seed)) for method, ratio in pairs for seed in settings.seeds]


def expected_minutes(project: Project, settings: EvaluationSettings, n_images: int) -> float | None:
    """How long the trainings take together when ``n_images`` can be chosen from; None where nothing was timed before.

    From what this preset took on this pool: in earlier evaluations, else in a dynamics run.
    """
    if settings.test == PROBE:
        sizes = [coreset_size(n_images, ratio) for _, ratio, _ in planned(settings)]
        return (len(sizes) * PROBE_SECONDS + sum(sizes) / PROBED_PER_SECOND) / 60
    pace = seconds_per_image(project, settings.preset, settings.test)
    if pace is None:
        return None
    training = settings.supervised()
    full = for_full(training, settings.ratios, n_images)
    trainings = [(full if method == FULL else training, ratio) for method, ratio, _ in planned(settings)]
    return pace * sum(own.images_seen(n_images, ratio) for own, ratio in trainings) / 60


def seconds_per_image(project: Project, preset: str, test: str = SCRATCH) -> float | None:
    """Seconds of training per image and epoch with ``preset`` (or fine-tuned); None where it is not known."""
    paces: list[float] = []
    for evaluation in finished(project):
        if evaluation.test == test and evaluation.preset == preset and preset in SUPERVISED_PRESETS:
            trials = evaluation.trials()
            trained = trials[(trials["minutes"] > 0) & (trials["n_train"] > 0) & (trials["method"] != FULL)]
            schedule = evaluation.training
            lengths = np.array([schedule.for_coreset(ratio).epochs for ratio in trained["pruning_ratio"]])
            paces += (60 * trained["minutes"] / (trained["n_train"] * lengths)).tolist()
    if paces or test != SCRATCH:
        return float(statistics.median(paces)) if paces else None
    for job in jobs.list_jobs(project, "dynamics"):
        is_net = job.settings.get("start", SCRATCH) == SCRATCH and job.settings.get("preset") == preset
        if is_net and job.status().state == jobs.DONE:
            epochs = supervised_preset(preset, **job.settings.get("training", {})).epochs
            seconds = training.trained_seconds(job)
            if seconds > 0:
                return seconds / (len(project.pool()) * epochs * len(job.settings["seeds"]))
    return None


# --- after and meanwhile -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation: finished (an artifact), or a job that runs or stopped on its way.

    ``asked`` are its settings as they were written; a method that this version no longer knows is shown all the same.
    """

    asked: Mapping[str, Any]
    artifact: Artifact | None = None
    job: Job | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.asked.get("methods", ()))

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(self.asked.get("ratios", ()))

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.asked.get("seeds", ()))

    @property
    def test(self) -> str:
        """The kind of test, as in ``trials.TESTS``."""
        return str(self.asked.get("test", SCRATCH))

    @property
    def tested_by(self) -> str:
        """The kind of test for people."""
        return TESTS.get(self.test, self.test)

    @property
    def preset(self) -> str:
        return str(self.asked.get("preset", ""))

    @property
    def epochs(self) -> int | None:
        """Where they differ from the preset's."""
        return self.asked.get("epochs")

    @property
    def training(self) -> SupervisedSettings:
        """How its nets were trained."""
        base = FINETUNED_NET if self.test == FINETUNE else supervised_preset(self.preset)
        return base.replace(**({"epochs": self.epochs} if self.epochs else {}))

    @property
    def full_epochs(self) -> int:
        """How long the whole pool was trained on; in older evaluations as the preset says."""
        return int(self.facts.get("full_epochs") or self.training.epochs)

    @property
    def full_is_upper(self) -> bool:
        """Whether the whole pool was trained on for as long as any coreset, so that accuracies are shares of it."""
        if self.test == PROBE or "full_epochs" in self.facts:
            return True
        if self.preset not in SUPERVISED_PRESETS:
            return False
        n_images = int(self.facts.get("n_chosen_from", 1))
        return for_full(self.training, self.ratios, n_images).epochs <= self.training.epochs

    @property
    def schedule(self) -> str:
        """How long its trainings were, in words; empty for a preset that this version does not know."""
        if self.preset not in SUPERVISED_PRESETS or self.test == PROBE:
            return ""
        training = self.training
        coresets = f"{training.epochs_at(self.ratios)} epochs for the coresets" if self.ratios else ""
        full = f"{self.full_epochs:,} for the full data" if FULL in self.methods else ""
        return ", ".join(part for part in (coresets, full) if part)

    @property
    def truth(self) -> str:
        """The kind of labels that coresets are trained with."""
        return str(self.facts.get("truth") or self.asked.get("truth") or "")

    @property
    def caveat(self) -> str:
        """What to keep in mind with its numbers: that they are not those of new images, that there are few test images;
        empty before it began."""
        test, n_test = str(self.facts.get("test", "")), int(self.facts.get("n_test", 0))
        return " ".join(filter(None, [caveat(test, self.truth, self.methods), few_words(n_test)]))

    @property
    def same_annotation_budget(self) -> bool:
        return bool(self.asked.get("same_annotation_budget"))

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
        """Of a job what it noted when it began; empty before."""
        if self.artifact is not None:
            return self.artifact.facts
        noted = self.job.work_folder / DATA_FACTS if self.job is not None else None
        return files.read_json(noted) if noted is not None and noted.is_file() else {}

    @property
    def titles(self) -> dict[str, str]:
        return {**titles_of(self.methods), **self.facts.get("methods", {})}

    @property
    def name(self) -> str:
        """What it is, in words: "3 methods, 5 ratios, 3 seeds"."""
        n_methods = len([method for method in self.methods if method != FULL])
        parts = ((n_methods, "method"), (len(self.ratios), "ratio"), (len(self.seeds), "seed"))
        words = ", ".join(f"{n} {word}" if n == 1 else f"{n} {word}s" for n, word in parts)
        words += f", {self.tested_by.lower()}"
        words += ", same annotation budget" if self.same_annotation_budget else ""
        return f"{words}, stopped early" if self.facts.get("stopped") else words

    def minutes_before(self, project: Project) -> dict[str, float]:
        """What had to be computed before a method could choose, by method: its own evidence, or the project's
        pseudo-labels and trajectories, which all methods on the project's scores share."""
        minutes = {name: float(value) for name, value in self.facts.get("evidence_minutes", {}).items()}
        shared = _minutes_of_scores(project, self.artifact) if self.artifact is not None else 0.0
        for method in self.methods:
            if method in METHODS and METHODS[method].evidence == "scores":
                minutes[method] = minutes.get(method, 0.0) + shared
        return minutes

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
            unranked=unranked(self.methods),
            methods=self.methods,
            ratios=self.ratios,
            tested_by=self.tested_by,
            caveat=self.caveat,
            full_is_upper=self.full_is_upper,
        )


def _minutes_of_scores(project: Project, artifact: Artifact) -> float:
    """The runs behind the scores that an evaluation chose by; what is not known any more counts nothing."""
    try:
        pseudo = made_from(project, artifact, "pseudo")
        scores = ScoreRun(made_from(project, artifact, "scores"))
        runs = {project.artifact(trajectory_id).facts.get("run") for trajectory_id in scores.trajectory_ids}
    except SemiPruneError:
        return 0.0
    jobs_behind = [job for job in jobs.list_jobs(project, "dynamics") if job.id in runs]
    return (float(pseudo.facts.get("seconds", 0)) + sum(map(training.trained_seconds, jobs_behind))) / 60


def titles_of(methods: Sequence[str]) -> dict[str, str]:
    named = {method: METHODS.title(method) for method in methods if method in METHODS}
    return {**named, FULL: "Full data"}


def unranked(methods: Sequence[str]) -> frozenset[str]:
    """Methods that see more labels than the others have: shown, never marked best."""
    return frozenset(method for method in methods if method in METHODS and METHODS[method].labels_from == "reference")


def finished(project: Project) -> list[Evaluation]:
    """Evaluations that were kept, newest first."""
    return [Evaluation(artifact.settings, artifact=artifact) for artifact in reversed(project.artifacts(ARTIFACT))]


def of_job(job: Job) -> Evaluation:
    return Evaluation(job.settings, job=job)


def delete_result(project: Project, artifact: Artifact) -> None:
    """Remove a kept evaluation or study with the job that made it, so that no later one takes its numbers over.

    What was kept of a stopped one goes alone: its job can still be resumed, and is deleted as a job.
    """
    job_id = None if artifact.facts.get("stopped") else artifact.facts.get("run")
    job = next((candidate for candidate in jobs.list_jobs(project) if candidate.id == job_id), None)
    training.delete_run(project, training.Run(job, artifact))
