"""The evaluation: train from scratch on the coresets of several methods, ratios and seeds, and test each once.

Coresets are trained on with true labels: the reference labels, or people's where every image has one; pseudo-labels
only if asked. They are tested on the test split; where the pool came without one, a fifth of the truly labeled images
is held out of every coreset instead. For one seed and ratio all methods start from the same weights and take equal
places of their coreset into each batch, so that their differences are paired.

The training itself is in ``evaluation.job``; nothing here loads torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semiprune_core import files, jobs
from semiprune_core.checks import check_choice, check_range
from semiprune_core.coresets import RATIOS, CoresetRequest, settable_knobs
from semiprune_core.errors import InvalidSettingError
from semiprune_core.learning.presets import FINETUNED_NET, supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.methods import METHODS
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.workspace import Project
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.selection import Basis
from semiprune_core.settings import Settings
from semiprune_core.trials import BOOK, FINETUNE, FULL, SCRATCH, Trial, TrialBook
from semiprune_core.trials.kinds import FEATURES, check_test

KIND, ARTIFACT = "evaluate", "evaluation"
RANDOM = "random"
TRUTHS = ("reference", "human", "pseudo")
ORDERS = ("cheap_first", "as_given")
BY_PEOPLE = ("pseudo", "labeled")
"""Methods whose labels come from these used the labeled subset, so it counts in the same annotation budget."""
FINAL_PIN = "final_test"
"""The labels of the final test among a job's pins and a result's inputs."""
DATA_FACTS, TIMES, TESTED_IDS = "ground.json", "evidence.json", "tested.npy"
"""What a job notes in its own folder beside the book."""
COLUMNS = (
    "method",
    "pruning_ratio",
    "seed",
    "n_train",
    "n_test",
    "n_correct",
    "test_accuracy",
    "minutes",
    "knobs",
    "note",
)


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(Settings):
    """Methods x ratios x seeds; the method ``full`` is the whole pool, once per seed.

    ``truth`` None takes the best labels there are. ``order`` cheap_first runs small coresets first and gives every
    method its first seed before any its second. ``evidence`` are settings for what methods look at: by the method's
    name for one of them, by the setting's name for all; ``evidence_seed`` draws what is random in it. ``knobs`` are
    those of a ``CoresetRequest`` by method and ratio (``settable_knobs``, no options); when the evaluation is queued
    they are filled with what searches found, and ``searches`` names the one behind each cell (``cell_name``).
    ``test`` says how coresets are tested: by a probe on features, a fine-tuned net, or one trained from scratch.
    """

    methods: tuple[str, ...] = ("semi_aum_cutoff", "semi_dual_beta", "random")
    ratios: tuple[float, ...] = RATIOS
    seeds: tuple[int, ...] = (0, 1, 2)
    preset: str = "quick"
    epochs: int | None = None
    truth: str | None = None
    order: str = "cheap_first"
    same_annotation_budget: bool = False
    evidence: dict[str, Any] = field(default_factory=dict)
    evidence_seed: int = 0
    study: str = ""
    knobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    searches: dict[str, str] = field(default_factory=dict)
    test: str = SCRATCH

    def check(self) -> None:
        check_test(self.test)
        for method in self.methods:
            if method != FULL:
                METHODS[method]  # raises, with the known names
        for name in ("methods", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise InvalidSettingError(f"{name} must list one or more values, each once; got {list(values)}.")
        if not self.ratios and set(self.methods) != {FULL}:
            raise InvalidSettingError("Give at least one pruning ratio, such as 0.3,0.5,0.7.")
        if len(set(self.ratios)) != len(self.ratios):
            raise InvalidSettingError(f"ratios must list each number once; got {list(self.ratios)}.")
        for ratio in self.ratios:
            if ratio == 0:
                raise InvalidSettingError(
                    "Pruning ratio 0 keeps every image. Leave it out; the method full (“Train on all images "
                    "too” on the page) trains on all of them."
                )
            check_range("ratio", ratio, low=0, high=1, low_open=True, high_open=True)
            for method in self.methods:
                if method != FULL:
                    self.request(method, ratio)
        self._check_knobs()
        if self.truth is not None:
            check_choice("truth", self.truth, TRUTHS)
        check_choice("order", self.order, ORDERS)
        self.supervised()

    def _check_knobs(self) -> None:
        """Refuse options, which would be passed over in silence."""
        cells = [(method, ratio, given) for method, values in self.knobs.items() for ratio, given in values.items()]
        for method, ratio, given in cells:
            for name in given:
                if name not in settable_knobs():
                    raise InvalidSettingError(
                        f"An evaluation cannot set {name} for {method} at ratio {ratio}: it compares methods as they "
                        f"are, without options. It can set {', '.join(settable_knobs())}."
                    )

    def supervised(self) -> SupervisedSettings:
        """How every trial is trained, but for the batch of small coresets."""
        base = FINETUNED_NET if self.test == FINETUNE else supervised_preset(self.preset)
        return base.replace(**({} if self.epochs is None else {"epochs": self.epochs}))

    def evidence_for(self, method: str) -> dict[str, Any]:
        """The settings of what ``method`` looks at."""
        common = {name: value for name, value in self.evidence.items() if name not in METHODS}
        return {**common, **self.evidence.get(method, {})}

    def request(self, method: str, ratio: float) -> CoresetRequest:
        """The coreset of a trial, but for its seed."""
        given = self.knobs.get(method, {}).get(f"{ratio:g}", {})
        counts = self.same_annotation_budget and METHODS[method].labels_from in BY_PEOPLE
        fixed = {"method": method, "pruning_ratio": ratio, "same_annotation_budget": counts}
        return CoresetRequest.from_json({**given, **fixed})


def cell_name(method: str, ratio: float) -> str:
    return f"{method} {ratio:g}"


# --- the plan ------------------------------------------------------------------------------------------------------


def planned_trials(settings: EvaluationSettings, basis: Basis) -> list[Trial]:
    """Every trial, in order; ``basis`` is that of the project's scores.

    A method that looks at evidence of its own starts from that: its knobs stay open until the evidence is there.
    """
    cells = [
        (method, ratio) for method in settings.methods for ratio in ((0.0,) if method == FULL else settings.ratios)
    ]
    if settings.order == "cheap_first":
        cells.sort(key=lambda cell: (-cell[1], cell[0] == FULL))  # stable: methods in the order given
    trials = [_trial(settings, method, ratio, basis) for method, ratio in cells]
    if settings.order == "cheap_first":
        return [trial.replace(seed=seed) for seed in settings.seeds for trial in trials]
    return [trial.replace(seed=seed) for trial in trials for seed in settings.seeds]


def _trial(settings: EvaluationSettings, method: str, ratio: float, basis: Basis) -> Trial:
    if method == FULL:
        return Trial(method=FULL, pruning_ratio=0.0, seed=0)
    request = settings.request(method, ratio)
    return Trial(
        method=method,
        pruning_ratio=ratio,
        seed=0,
        knobs=request.given_knobs if has_own_evidence(method) else trial_knobs(request, basis),
        score_changes=request.score_changes,
    )


def trial_knobs(request: CoresetRequest, basis: Basis) -> dict[str, Any]:
    """The knobs of a coreset as it is built where nobody sets an option: with the least share of each class that is
    usual for such a run."""
    share = request.options(basis)["class_share"]
    return {**request.knobs(basis), **({"class_share": share} if share else {})}


# --- results -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EvaluationRun:
    """A kept evaluation."""

    artifact: Artifact

    @property
    def settings(self) -> EvaluationSettings:
        return EvaluationSettings.from_json(self.artifact.settings)

    def trials(self) -> pd.DataFrame:
        """One row per trial, with the columns COLUMNS."""
        return pd.read_parquet(self.artifact.path("trials.parquet"))

    def tested_ids(self) -> np.ndarray | None:
        """(n,) uint64: the images it was tested on; None where it is older than this file."""
        path = self.artifact.path(TESTED_IDS)
        return np.load(path, allow_pickle=False) if path.is_file() else None


def partial_trials(job: jobs.Job) -> pd.DataFrame:
    """The trials that a running or stopped evaluation has finished so far."""
    return trial_table(TrialBook(job.work_folder / BOOK))


def trial_table(results: Iterable[tuple[Trial, Mapping[str, Any]]]) -> pd.DataFrame:
    rows = [
        (
            trial.method,
            trial.pruning_ratio,
            trial.seed,
            int(result["n_train"]),
            int(result["n_test"]),
            int(result["n_correct"]),
            result["n_correct"] / result["n_test"],
            round(result["seconds"] / 60, 4),
            json.dumps({**trial.knobs, **trial.score_changes}, sort_keys=True),
            str(result.get("note", "")),
        )
        for trial, result in results
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write_evaluation(
    project: Project, job: jobs.Job, *, facts: Mapping[str, Any], stopped: bool, device: str
) -> EvaluationRun:
    """Keep the trials of a job's book as an ``evaluation`` artifact."""
    roles = ("pool", "labels", FINAL_PIN, "pseudo", "scores", FEATURES)
    inputs = {role: value for role, value in job.pins.items() if role in roles}
    table = partial_trials(job)
    with project.draft(ARTIFACT, settings=dict(job.settings), inputs=inputs) as draft:
        draft.device = device
        table.to_parquet(draft.path("trials.parquet"), index=False)
        if (job.work_folder / TESTED_IDS).is_file():
            files.write_bytes(draft.path(TESTED_IDS), (job.work_folder / TESTED_IDS).read_bytes())
        draft.facts.update(facts, run=job.id, stopped=stopped, n_trials=len(table))
    return EvaluationRun(open_artifact(draft.folder))


def keep_partial(job: jobs.Job) -> EvaluationRun:
    """Keep what a stopped, failed or lost evaluation has found so far as an artifact; asked again, the same one."""
    status, table = job.status(), partial_trials(job)
    if not status.is_resumable or table.empty or not (job.work_folder / DATA_FACTS).is_file():
        raise InvalidSettingError(f"{job.title} ({job.id}) is {status.state}; it has no partial result to keep.")
    for artifact in job.project.artifacts(ARTIFACT):
        if artifact.facts.get("run") == job.id and artifact.facts.get("n_trials") == len(table):
            return EvaluationRun(artifact)
    facts = {**files.read_json(job.work_folder / DATA_FACTS), "evidence_minutes": evidence_minutes(job.work_folder)}
    return write_evaluation(job.project, job, facts=facts, stopped=True, device=job.device)


def evidence_minutes(folder: Path) -> dict[str, float]:
    """How long it took to make what each method looks at, as the job that has this ``folder`` noted it."""
    path = folder / TIMES
    return dict(files.read_json(path)) if path.is_file() else {}
