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
from semiprune_core.coresets.starting_values import searched_knobs
from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError
from semiprune_core.labeling import open_store
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.learning import machine
from semiprune_core.learning.presets import FINETUNED_NET, supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.methods import METHODS, needs_of
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import BoolArray, IntArray, coreset_size
from semiprune_core.results import PseudoRun, ScoreRun, TrajectoryRun, check_same_pool, latest_pseudo, latest_scores
from semiprune_core.results.features import latest_features
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.selection import Basis
from semiprune_core.settings import Settings
from semiprune_core.training import FROZEN, keep_snapshot, read_snapshot, reference_on, snapshot_path
from semiprune_core.training.data import pool_classes
from semiprune_core.trials import (
    BOOK,
    FINETUNE,
    FULL,
    PROBE,
    SCRATCH,
    TESTED_BY,
    Trial,
    TrialBook,
    hold_out,
    usual_test,
)
from semiprune_core.trials.kinds import FEATURES, check_test

KIND, ARTIFACT = "evaluate", "evaluation"
RANDOM = "random"
TRUTHS = ("reference", "human", "pseudo")
ORDERS = ("cheap_first", "as_given")
TEST_FRACTION, TEST_SEED = 0.2, 0
"""Of the images that are held out where there is no test split."""
BY_PEOPLE = ("pseudo", "labeled")
"""Methods whose labels come from these used the labeled subset, so it counts in the same annotation budget."""
DATA_FACTS, TIMES = "ground.json", "evidence.json"
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
    name for one of them, by the setting's name for all. ``knobs`` are those of a ``CoresetRequest`` by method and
    ratio (``settable_knobs``, no options); when the evaluation is queued they are filled with what searches found.
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
    study: str = ""
    knobs: dict[str, dict[str, Any]] = field(default_factory=dict)
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


# --- what it stands on ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """What coresets are trained with and tested on.

    ``labels`` (N,) for the pool's images, of the kind ``truth``. ``test`` is "split" or "held out"; for the latter
    ``held_mask`` (N,) marks the images of the pool that are tested on and never trained on, and ``held_labels`` (N,)
    are their true labels.
    """

    truth: str
    labels: IntArray
    class_names: tuple[str, ...]
    test: str
    n_test: int
    held_mask: BoolArray
    held_labels: IntArray

    @property
    def chosen_from(self) -> IntArray:
        """Positions of the images that coresets are chosen from."""
        return np.flatnonzero(~self.held_mask)


def evaluation_data(
    project: Project,
    truth: str | None = None,
    *,
    pool: Pool | None = None,
    snapshot: LabelsSnapshot | None = None,
    pseudo: PseudoRun | None = None,
) -> EvaluationData:
    """The labels of kind ``truth``, or the best there are, and what to test on; refused in words where there is none.

    ``snapshot`` and ``pseudo`` are the people's labels and the pseudo-labels to use instead of the present ones.
    """
    pool = pool or project.pool()
    snapshot = open_store(project).snapshot() if snapshot is None else snapshot  # one without labels is one, too
    kind, labels, names = _truth(project, truth, pool, snapshot, pseudo)
    if len(names) < 2:
        raise InvalidDataError(f"An evaluation needs at least two classes; there are {len(names)}.")
    nobody = np.zeros(len(pool), dtype=bool)
    n_split = int((reference_on(names, project.test_set()) >= 0).sum())
    if n_split:
        return EvaluationData(kind, labels, names, "split", n_split, nobody, labels)
    true = labels if kind != "pseudo" else _true_labels(names, pool, snapshot)
    labeled_idx = np.flatnonzero(true >= 0)
    if len(labeled_idx) < 2:
        raise MissingStepError(
            "There is nothing to test on: the pool has no test split and no image has a true label. "
            "Import test images, or label some."
        )
    held = hold_out(labeled_idx, pool.duplicate_of, TEST_FRACTION, TEST_SEED)
    return EvaluationData(kind, labels, names, "held out", int((held & (true >= 0)).sum()), held, true)


def _truth(
    project: Project, wanted: str | None, pool: Pool, snapshot: LabelsSnapshot, pseudo: PseudoRun | None
) -> tuple[str, IntArray, tuple[str, ...]]:
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    complete = {"reference": pool.reference_labels, "human": human}
    for kind, labels in complete.items():
        if wanted in (None, kind) and len(labels) and (labels >= 0).all():
            return kind, labels, pool.class_names if kind == "reference" else snapshot.class_names
    if wanted == "pseudo":
        pseudo = pseudo or latest_pseudo(project)
        check_same_pool(pseudo.artifact, pool)
        return "pseudo", np.asarray(pseudo.labels().labels, dtype=np.int64), pseudo.class_names
    if wanted is not None:
        n = int((complete[wanted] < 0).sum())
        raise MissingStepError(
            f"{n:,} of {len(pool):,} images have no {wanted} label. Choose other labels to train with."
        )
    raise MissingStepError(
        "Coresets are trained with true labels, but neither reference labels nor human labels cover every image. "
        "Use pseudo-labels instead (--truth pseudo)."
    )


def _true_labels(names: tuple[str, ...], pool: Pool, snapshot: LabelsSnapshot) -> IntArray:
    """(N,) the true label of each image where one is known: a person's, else the reference one; -1 elsewhere."""
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    by_people = pool_classes(pool, names, snapshot.class_names)[human]
    return np.where(by_people >= 0, by_people, reference_on(names, pool))


# --- starting ------------------------------------------------------------------------------------------------------


def submit_evaluation(
    project: Project, settings: EvaluationSettings, *, device: str = "auto", immediate: bool = False
) -> jobs.Job:
    """Queue an evaluation; what cannot be done is refused here in a sentence.

    The job pins the pool, the people's labels, and the scores and pseudo-labels where there are some.
    """
    pool = project.pool()
    snapshot = open_store(project).snapshot()
    data = evaluation_data(project, settings.truth, pool=pool, snapshot=snapshot)
    scores = _checked_scores(project, settings, pool)
    _check_room(project, settings, data)
    keep_snapshot(project, snapshot)
    pins = {"pool": pool.hash, "labels": snapshot.hash}
    pseudo = project.latest("pseudo")
    if pseudo is not None:
        pins["pseudo"] = pseudo.hash
    if settings.test == PROBE:
        pins[FEATURES] = latest_features(project).artifact.hash
    if scores is not None:
        pins["scores"] = scores.artifact.hash
        settings = _with_searched(project, settings, scores)
    n_methods = len([method for method in settings.methods if method != FULL])
    return jobs.submit(
        project,
        KIND,
        settings.replace(truth=data.truth).to_json(),
        title=f"Evaluate {n_methods} method{'s' if n_methods != 1 else ''}",
        device=machine.devices_for(device),
        pins=pins,
        immediate=immediate,
    )


def matching_test(project: Project) -> str:
    """The test that suits the project's scores: a probe where they came from features, else a net from scratch."""
    trajectory = project.latest("trajectory")
    is_frozen = trajectory is not None and TrajectoryRun(trajectory).start == FROZEN
    return PROBE if is_frozen and usual_test(project) == PROBE else SCRATCH


def _checked_scores(project: Project, settings: EvaluationSettings, pool: Pool) -> ScoreRun | None:
    """The project's scores; missing ones are refused where a method looks at them."""
    mine = [method for method in settings.methods if method != FULL and METHODS[method].evidence == "scores"]
    if not mine:
        latest = project.latest("scores")
        return None if latest is None else ScoreRun(latest)
    scores = latest_scores(project)
    check_same_pool(scores.artifact, pool)
    for method in mine:
        missing = [need for need in needs_of(method) if need not in scores.names]
        if missing:
            raise MissingStepError(f"{METHODS.title(method)} needs the score {missing[0]}. Score the pool again first.")
    return scores


def check_left(n_images: int, ratios: Iterable[float], n_classes: int, remedy: str) -> None:
    """Refuse ratios that leave fewer of ``n_images`` than there are classes."""
    for ratio in ratios:
        n_left = coreset_size(n_images, ratio)
        if n_left < n_classes:
            raise InvalidSettingError(
                f"Pruning ratio {ratio:g} leaves {n_left} images for {n_classes} classes. {remedy}"
            )


def _check_room(project: Project, settings: EvaluationSettings, data: EvaluationData) -> None:
    n_left = len(data.chosen_from)
    check_left(n_left, settings.ratios, len(data.class_names), "Choose smaller ratios.")
    if settings.same_annotation_budget and settings.ratios:
        human = np.asarray(latest_pseudo(project).labels().human_mask)
        n_human, highest = int(human[data.chosen_from].sum()), max(settings.ratios)
        if n_human > coreset_size(n_left, highest):
            raise InvalidSettingError(
                f"{n_human:,} images were labeled by a person, but pruning ratio {highest:g} leaves "
                f"{coreset_size(n_left, highest):,}. With the same annotation budget, use smaller ratios."
            )


def _with_searched(project: Project, settings: EvaluationSettings, scores: ScoreRun) -> EvaluationSettings:
    """The settings with what searches found for these scores, where nothing was given.

    What was searched for a baseline is looked up in the job, once it is known which evidence it chooses by.
    """
    knobs: dict[str, dict[str, Any]] = {method: dict(values) for method, values in settings.knobs.items()}
    for method in settings.methods:
        for ratio in settings.ratios if method != FULL and not has_own_evidence(method) else ():
            searched = searched_knobs(project, method, ratio, scores)
            if searched is not None:
                knobs.setdefault(method, {}).setdefault(f"{ratio:g}", searched)
    return settings.replace(knobs=knobs)


def pinned_snapshot(project: Project, pins: Mapping[str, str]) -> LabelsSnapshot:
    """The people's labels that a job was queued with."""
    return read_snapshot(snapshot_path(project, pins["labels"]), pins["labels"])


def pinned_pseudo(project: Project, pins: Mapping[str, str]) -> PseudoRun | None:
    """The pseudo-labels that a job was queued with; None where there were none."""
    wanted = pins.get("pseudo")
    if wanted is None:
        return None
    pinned = next((artifact for artifact in project.artifacts("pseudo") if artifact.hash == wanted), None)
    if pinned is None:
        raise MissingStepError("The pseudo-labels that this evaluation was queued with are gone. Start a new one.")
    return PseudoRun(pinned)


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
        knobs=request.given_knobs if has_own_evidence(method) else request.knobs(basis),
        score_changes=request.score_changes,
    )


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
    inputs = {
        role: value for role, value in job.pins.items() if role in ("pool", "labels", "pseudo", "scores", FEATURES)
    }
    table = partial_trials(job)
    with project.draft(ARTIFACT, settings=dict(job.settings), inputs=inputs) as draft:
        draft.device = device
        table.to_parquet(draft.path("trials.parquet"), index=False)
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


def data_facts(settings: EvaluationSettings, data: EvaluationData, n_pool: int) -> dict[str, Any]:
    """What is said about an evaluation beside its numbers."""
    test_words = {
        "split": f"Tested on the {data.n_test:,} test images.",
        "held out": f"The pool has no test split: {data.n_test:,} of its images were held out of every coreset "
        "and tested on.",
    }
    return {
        "class_names": list(data.class_names),
        "truth": data.truth,
        "test": data.test,
        "test_words": f"{test_words[data.test]} Tested by {TESTED_BY[settings.test]}.",
        "tested_by": settings.test,
        "n_pool": n_pool,
        "n_chosen_from": len(data.chosen_from),
        "n_test": data.n_test,
        "methods": {name: "Full data" if name == FULL else METHODS.title(name) for name in settings.methods},
    }
