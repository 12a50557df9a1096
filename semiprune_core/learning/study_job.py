"""The job kind ``label_budget``: from nested label budgets to pseudo-labels, scores, coresets and their tests.

Every stage leaves something to go on from: checkpoints of the semi-supervised run, then ``pseudo.npz``; the trajectory
and checkpoints of the dynamics run; the book of trials. A job that is killed loses at most a training in progress.
"""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files
from semiprune_core.artifacts import Artifact, open_artifact
from semiprune_core.coresets import CoresetRequest
from semiprune_core.evaluation import RANDOM, Ground, ground_of, pinned_snapshot
from semiprune_core.evaluation_runs import titles_of
from semiprune_core.evaluation_view import percent
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.dynamics_job import labeled_tests
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.learning.supervised_run import train_supervised
from semiprune_core.learning.training import check_pool
from semiprune_core.learning.trial_run import Workbench
from semiprune_core.methods import METHODS, select_coreset
from semiprune_core.pool import Pool
from semiprune_core.progress import Progress
from semiprune_core.records import Evidence, IntArray
from semiprune_core.scores import compute_scores
from semiprune_core.scoring import default_score_settings
from semiprune_core.selection import Basis
from semiprune_core.studies import (
    ARTIFACT,
    KIND,
    STAGE,
    BudgetSettings,
    Cost,
    budget_folder,
    cost_of,
    n_trainings,
    nested_labels,
    read_study,
)
from semiprune_core.trajectory_store import TrajectoryWriter, open_trajectory
from semiprune_core.trials import BOOK, FULL, Trial, TrialBook

PSEUDO = "pseudo.npz"


@dataclass(frozen=True)
class Stretch:
    """The progress of one stage: ``cost`` of the ``total`` units of the study, after ``before`` of them."""

    whole: Progress
    before: int
    cost: int
    total: int
    facts: Mapping[str, Any]

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        told = {name: facts[name] for name in ("loss", "images_per_s") if name in facts}
        self.whole.report(self.before + self.cost * done // max(total, 1), self.total, **{**told, **self.facts})

    def should_stop(self) -> bool:
        return self.whole.should_stop()


@dataclass(frozen=True)
class Counted:
    """The progress of a workbench, with its trainings counted among those of the whole study."""

    whole: Progress
    before: int
    total: int

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        counted = {"trials_done": self.before + int(facts.get("trials_done", 0)), "trials_total": self.total}
        self.whole.report(done, total, **{**facts, **counted})

    def should_stop(self) -> bool:
        return self.whole.should_stop()


@JOB_KINDS.register(KIND, title="Label-budget study")
def run(context: JobContext) -> dict[str, Any]:
    known = _finished(context)
    if known is None:
        known = Study(context).run()
    return {"artifact": known.id, "n_trials": known.facts["n_trials"]}


def _finished(context: JobContext) -> Artifact | None:
    """What an earlier attempt of this job had already completed."""
    found = context.project.artifacts(ARTIFACT)
    return next((artifact for artifact in found if artifact.facts.get("run") == context.job.id), None)


class Study:
    """All stages of one study, over the images that may be chosen (those held out for the test left out of all)."""

    def __init__(self, context: JobContext) -> None:
        self.context = context
        self.settings = BudgetSettings.from_json(context.settings)
        self.pool: Pool = context.project.pool()
        check_pool(self.pool, context.pins["pool"])
        snapshot = pinned_snapshot(context.project, context.pins)
        self.ground: Ground = ground_of(context.project, self.settings.truth, pool=self.pool, snapshot=snapshot)
        images, among = self.pool.images(), self.ground.chosen_from
        self.images = images if len(among) == len(images) else images[among]
        self.labels = self.ground.labels[among]
        self.duplicate_of = _among(self.pool.duplicate_of, among)
        self.test_images, self.test_labels = self._tests(images)
        self.device = str(choose_device(context.device))
        self.cost: Cost = cost_of(self.settings, len(self.images))
        self.total = self.cost.common + len(self.settings.budgets) * self.cost.per_budget

    def _tests(self, images: np.ndarray) -> tuple[np.ndarray, IntArray]:
        if self.ground.test == "split":
            tests = labeled_tests(self.context.project.test_set(), self.ground.class_names)
            assert tests is not None  # the ground was found by them
            return tests
        held = np.flatnonzero(self.ground.held_mask & (self.ground.held_labels >= 0))
        return images[held], self.ground.held_labels[held]

    def run(self) -> Artifact:
        self._common()
        drawn = nested_labels(self.labels, self.duplicate_of, self.settings.budgets, self.settings.seed)
        for number, (budget, labels) in enumerate(zip(self.settings.budgets, drawn, strict=True)):
            self._one_budget(number, budget, labels)
        return self._write()

    # --- stages

    def _common(self) -> None:
        """Random and the full data, which no label budget changes."""
        settings = self.settings
        trials = [
            Trial(method=RANDOM, pruning_ratio=ratio, seed=seed)
            for seed in settings.seeds
            for ratio in sorted(settings.ratios, reverse=True)
        ]
        trials += [Trial(method=FULL, pruning_ratio=0.0, seed=seed) for seed in settings.seeds]
        bench = self._bench(self.context.folder, 0, len(trials), 0)
        evidence = Evidence(len(self.images), duplicate_of=self.duplicate_of)
        for trial in trials:
            words = "All images" if trial.method == FULL else f"Random at {percent(trial.pruning_ratio)}"
            bench.run(trial, lambda one: self._choose(one, evidence), words=f"{words}, seed {trial.seed}")

    def _one_budget(self, number: int, budget: float, labels: IntArray) -> None:
        folder = budget_folder(self.context.folder, budget)
        folder.mkdir(exist_ok=True)
        before = self.cost.common + number * self.cost.per_budget
        n_classes = len(self.ground.class_names)
        n_missing = n_classes - len(np.unique(labels[labels >= 0]))
        if n_missing:  # nothing can be learned of a class that nobody has named
            problem = f"{n_missing} of {n_classes} classes have no label in it. Choose a larger budget."
            stage = {"budget": budget, "n_labels": int((labels >= 0).sum()), "problem": problem}
            files.write_json(folder / STAGE, stage)
            self.context.log.warning("A budget of %s was left out: %s", percent(budget), problem)
            return
        pseudo = self._pseudo_labels(folder, budget, labels, before)
        trajectory = self._dynamics(folder, budget, pseudo, before + self.cost.ssl)
        evidence = self._evidence(trajectory, labels, pseudo)
        basis = Basis.learned(evidence.scores["aum"], self.settings.supervised().epochs)
        trials = [
            Trial(method=request.method, pruning_ratio=request.pruning_ratio, seed=seed, knobs=request.knobs(basis))
            for seed in self.settings.seeds
            for ratio in sorted(self.settings.ratios, reverse=True)
            for request in (CoresetRequest(method=one, pruning_ratio=ratio) for one in self.settings.methods)
        ]
        n_common = n_trainings(self.settings) - len(trials) * len(self.settings.budgets)
        bench = self._bench(
            folder, before + self.cost.ssl + self.cost.dynamics, len(trials), n_common + number * len(trials)
        )
        for trial in trials:
            words = f"{percent(budget)} of labels, {METHODS.title(trial.method)} at {percent(trial.pruning_ratio)}"
            bench.run(trial, lambda one: self._choose(one, evidence), words=f"{words}, seed {trial.seed}")

    def _pseudo_labels(self, folder: Path, budget: float, labels: IntArray, before: int) -> IntArray:
        """(N,) the labels after semi-supervised training: the budget's own where it has one, else the model's."""
        if (folder / STAGE).is_file():
            with np.load(io.BytesIO((folder / PSEUDO).read_bytes()), allow_pickle=False) as stored:
                return stored["labels"]
        started = time.monotonic()
        words = {"trial": f"{percent(budget)} of labels: semi-supervised training", "unit": "images"}
        result = train_ssl(
            self.images,
            labels,
            class_names=self.ground.class_names,
            settings=self.settings.semi_supervised(),
            seed=self.settings.seed,
            progress=Stretch(self.context, before, self.cost.ssl, self.total, words),
            device=self.device,
            folder=folder / "ssl",
        )
        unlabeled = labels < 0
        right = result.predicted[unlabeled] == self.labels[unlabeled]
        data = io.BytesIO()
        np.savez(data, labels=np.where(unlabeled, result.predicted, labels))
        files.write_bytes(folder / PSEUDO, data.getvalue())
        stage = {
            "budget": budget,
            "n_labels": int((~unlabeled).sum()),
            "pseudo_accuracy": float(right.mean()) if len(right) else None,
            "ssl_minutes": round((time.monotonic() - started) / 60, 3),
        }
        files.write_json(folder / STAGE, stage)
        shutil.rmtree(folder / "ssl", ignore_errors=True)
        self.context.log.info("%s of labels: pseudo-labels %s right", percent(budget), stage["pseudo_accuracy"])
        return np.where(unlabeled, result.predicted, labels)

    def _dynamics(self, folder: Path, budget: float, pseudo: IntArray, before: int) -> Path:
        training, recorded = self.settings.supervised(), folder / "trajectory"
        writer = TrajectoryWriter(recorded, training.epochs, len(self.images))
        if writer.epochs_done < training.epochs:
            words = {"trial": f"{percent(budget)} of labels: dynamics run", "unit": "images"}
            train_supervised(
                self.images,
                pseudo,
                n_classes=len(self.ground.class_names),
                settings=training,
                seed=self.settings.seed,
                progress=Stretch(self.context, before, self.cost.dynamics, self.total, words),
                device=self.device,
                folder=folder / "dynamics",
                record=writer,
            )
        shutil.rmtree(folder / "dynamics", ignore_errors=True)
        return recorded

    def _evidence(self, recorded: Path, labels: IntArray, pseudo: IntArray) -> Evidence:
        trajectory = open_trajectory(recorded)
        table = compute_scores(trajectory, settings=default_score_settings(self.settings.supervised().epochs))
        return table.evidence(labels=pseudo, human_mask=labels >= 0, duplicate_of=self.duplicate_of)

    # --- trainings

    def _bench(self, folder: Path, done: int, n_trials: int, before: int) -> Workbench:
        return Workbench(
            images=self.images,
            labels=self.labels,
            test_images=self.test_images,
            test_labels=self.test_labels,
            n_classes=len(self.ground.class_names),
            training=self.settings.supervised(),
            book=TrialBook(folder / BOOK),
            progress=Counted(self.context, before, n_trainings(self.settings)),
            device=self.device,
            n_trials=n_trials,
            total=self.total,
            done=done,
        )

    def _choose(self, trial: Trial, evidence: Evidence) -> IntArray:
        if trial.method == FULL:
            return np.arange(len(self.images))
        chosen = select_coreset(
            evidence, trial.method, pruning_ratio=trial.pruning_ratio, seed=trial.seed, **trial.knobs
        )
        return chosen.indices

    def _write(self) -> Artifact:
        table, stages = read_study(self.context.folder, self.settings.budgets)
        inputs = {"pool": self.pool.hash, "labels": self.context.pins["labels"]}
        with self.context.project.draft(
            ARTIFACT, settings=self.settings.to_json(), inputs=inputs, seed=self.settings.seed
        ) as draft:
            draft.device = self.device
            table.to_parquet(draft.path("trials.parquet"), index=False)
            draft.facts.update(
                run=self.context.job.id,
                budgets=stages,
                class_names=list(self.ground.class_names),
                truth=self.ground.truth,
                test=self.ground.test,
                n_pool=len(self.pool),
                n_test=self.ground.n_test,
                n_trials=len(table),
                methods=titles_of([RANDOM, *self.settings.methods]),
            )
        return open_artifact(draft.folder)


def _among(duplicate_of: IntArray, among: IntArray) -> IntArray:
    """Positions of first copies among some images: copies are held out together, so the first is always there."""
    place = np.full(len(duplicate_of), -1, dtype=np.int64)
    place[among] = np.arange(len(among))
    return place[duplicate_of[among]]
