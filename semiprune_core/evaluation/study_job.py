"""The job kinds ``label_budget`` and ``pool_size``: from nested shares of labels, or of the pool, to pseudo-labels,
scores, coresets and their tests.

Every stage leaves something to go on from: checkpoints of the semi-supervised run, then ``pseudo.npz``; the trajectory
and checkpoints of the dynamics run; the book of trials. A job that is killed loses at most a training in progress.
"""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files, streams
from semiprune_core.coresets import CoresetRequest
from semiprune_core.dynamics.job import labeled_tests
from semiprune_core.dynamics.scoring import default_score_settings
from semiprune_core.evaluation.data import SPLIT, copies_words, evaluation_data, tested_ids
from semiprune_core.evaluation.runs import titles_of
from semiprune_core.evaluation.settings import FINAL_PIN, RANDOM, TESTED_IDS, trial_knobs
from semiprune_core.evaluation.studies import (
    ARTIFACT,
    AXES,
    CHANCE,
    COMMON,
    LABEL_BUDGET,
    SETTINGS,
    Cost,
    Part,
    StudySettings,
    copies_among,
    cost_of,
    n_trainings,
)
from semiprune_core.evaluation.study_view import STAGE, read_study, share_folder
from semiprune_core.evaluation.submit import pinned_final, pinned_snapshot
from semiprune_core.evaluation.view import percent
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.learning.supervised_run import train_supervised
from semiprune_core.methods import METHODS, select_coreset
from semiprune_core.progress import InnerProgress, PartProgress
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.records import Evidence, IntArray
from semiprune_core.results.trajectory_store import TrajectoryWriter, open_trajectory
from semiprune_core.scores import compute_scores
from semiprune_core.selection import Basis
from semiprune_core.streams import Purpose
from semiprune_core.training import check_pool
from semiprune_core.trials import BOOK, FULL, Trial, TrialBook
from semiprune_core.trials.alike import alike
from semiprune_core.trials.apart import held_out_facts, ids_hash, keep_to_test
from semiprune_core.trials.kinds import for_full
from semiprune_core.trials.run import Workbench

PSEUDO, CLOCK = "pseudo.npz", "ssl_seconds.json"


class Clock:
    """Counts the seconds of a stage over all attempts at it; those of a killed attempt are lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds = float(files.read_json(path)["seconds"]) if path.is_file() else 0.0

    def __enter__(self) -> Clock:
        self._started = time.monotonic()
        return self

    def __exit__(self, *problem: object) -> None:
        self.seconds += time.monotonic() - self._started
        files.write_json(self.path, {"seconds": self.seconds})


@dataclass(frozen=True)
class Counted(InnerProgress):
    """The progress of a workbench, with its trainings counted among those of the whole study."""

    before: int
    total: int

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        counted = {"trials_done": self.before + int(facts.get("trials_done", 0)), "trials_total": self.total}
        self.whole.report(done, total, **{**facts, **counted})


@JOB_KINDS.register("label_budget", title="Label-budget study")
@JOB_KINDS.register("pool_size", title="Pool-size study")
def run(context: JobContext) -> dict[str, Any]:
    study = context.finished(ARTIFACT) or Study(context).run()
    return {"artifact": study.id, "n_trials": study.facts["n_trials"]}


class Study:
    """All stages of one study, over the images that may be chosen (those held out for the test left out of all)."""

    def __init__(self, context: JobContext) -> None:
        self.context = context
        self.axis = AXES[context.job.kind]
        self.settings: StudySettings = SETTINGS[context.job.kind].from_json(context.settings)
        self.pool: Pool = context.project.pool()
        check_pool(self.pool, context.pins["pool"])
        context.drop_older_streams()
        snapshot = pinned_snapshot(context.project, context.pins)
        final = pinned_final(context.project, context.pins)
        near = alike(context.project, context.pins, context)
        self.data = evaluation_data(
            context.project, self.settings.truth, pool=self.pool, snapshot=snapshot, final=final, alike=near
        )
        self.n_classes = len(self.data.class_names)
        among = self.data.chosen_from
        parts = self.settings.parts(self.data.labels[among], copies_among(self.pool.duplicate_of, among))
        self.parts = [replace(part, among=among[part.among]) for part in parts]
        self.test_images, self.test_labels = self._tests()
        self.tested_ids = tested_ids(context.project, self.data, self.pool)
        self.device = str(choose_device(context.device))
        self.costs = [cost_of(self.settings, len(part.among), part.methods) for part in self.parts]
        self.total = sum(cost.total for cost in self.costs)

    def _tests(self) -> tuple[np.ndarray, IntArray]:
        if self.data.test == SPLIT:
            tests = labeled_tests(self.context.project.test_set(), self.data)
            assert tests is not None  # the data was found by its test images
            return tests
        held = np.flatnonzero(self.data.held_mask & (self.data.held_labels >= 0))
        return self.pool.images()[held], self.data.held_labels[held]

    def run(self) -> Artifact:
        before = 0
        for number, (part, cost) in enumerate(zip(self.parts, self.costs, strict=True)):
            PartRun(self, number, part, cost, before).run()
            before += cost.total
        return self._write()

    def n_trainings_before(self, number: int) -> int:
        """Those of the parts before one."""
        return sum(len(self.trials_of(part.methods, {})) for part in self.parts[:number])

    def trials_of(self, methods: Sequence[str], knobs: Mapping[tuple[str, float], Mapping[str, Any]]) -> list[Trial]:
        """The trainings of some methods, seed by seed, small coresets first; the full data after all others."""
        settings = self.settings
        trials = [
            Trial(method=method, pruning_ratio=ratio, seed=seed, knobs=dict(knobs.get((method, ratio), {})))
            for seed in settings.seeds
            for ratio in sorted(settings.ratios, reverse=True)
            for method in methods
            if method != FULL
        ]
        return trials + [Trial(method=FULL, pruning_ratio=0.0, seed=seed) for seed in settings.seeds if FULL in methods]

    def _write(self) -> Artifact:
        table, stages = read_study(self.context.folder, self.axis, self.settings.shares)
        pins = self.context.pins
        inputs = {role: pins[role] for role in ("pool", "labels", FINAL_PIN) if role in pins}
        with self.context.project.draft(
            ARTIFACT, settings=self.settings.to_json(), inputs=inputs, seed=self.settings.seed
        ) as draft:
            draft.device = self.device
            table.to_parquet(draft.path("trials.parquet"), index=False)
            np.save(draft.path(TESTED_IDS), self.tested_ids, allow_pickle=False)
            draft.facts.update(
                {self.axis.field: stages},
                held_out=held_out_facts(self.tested_ids, 0),
                run=self.context.job.id,
                class_names=list(self.data.class_names),
                truth=self.data.truth,
                test=self.data.test,
                full_epochs=for_full(self.settings.supervised(), self.settings.ratios, len(self.pool)).epochs,
                n_pool=len(self.pool),
                n_test=self.data.n_test,
                n_copies=self.data.n_copies,
                n_near_copies=self.data.n_near,
                copies_words=copies_words(self.data),
                n_trials=len(table),
                methods=titles_of([RANDOM, *self.settings.methods]),
            )
        return open_artifact(draft.folder)


class PartRun:
    """One share of a study: what chance chooses, then pseudo-labels, scores, and what is chosen by them."""

    def __init__(self, study: Study, number: int, part: Part, cost: Cost, before: int) -> None:
        self.study, self.part, self.cost, self.before = study, part, cost, before
        self.n_before = study.n_trainings_before(number)
        self.settings, self.context = study.settings, study.context
        self.folder = share_folder(study.context.folder, study.axis, part.share)
        images = study.pool.images()
        self.images = images if len(part.among) == len(images) else images[part.among]
        self.labels = study.data.labels[part.among]
        self.duplicate_of = copies_among(study.pool.duplicate_of, part.among)

    def run(self) -> None:
        self.folder.mkdir(exist_ok=True)
        given = self.part.labels
        if given is not None and self._is_left_out(given):
            return
        chance = [method for method in self.part.methods if method in CHANCE]
        bench = self._bench(self.before, self.n_before)
        self._train(bench, chance, Evidence(len(self.images), duplicate_of=self.duplicate_of), {})
        if not self.part.scored or given is None:
            return
        at = bench.done
        pseudo = self._pseudo_labels(given, at)
        evidence = self._evidence(self._dynamics(pseudo, at + self.cost.ssl), given, pseudo)
        basis = Basis.learned(evidence.scores["aum"], self.settings.supervised().epochs)
        knobs = {
            (method, ratio): trial_knobs(CoresetRequest(method=method, pruning_ratio=ratio), basis)
            for method in self.part.scored
            for ratio in self.settings.ratios
        }
        n_before = self.n_before + len(self.study.trials_of(chance, {}))
        bench = self._bench(at + self.cost.ssl + self.cost.dynamics, n_before)
        self._train(bench, self.part.scored, evidence, knobs)

    # --- stages

    def _is_left_out(self, labels: IntArray) -> bool:
        """Whether a class has no label here, of which nothing could be learned; noted in the part's folder."""
        n_classes = self.study.n_classes
        n_missing = n_classes - len(np.unique(labels[labels >= 0]))
        if n_missing:
            column = self.study.axis.column
            problem = f"{n_missing} of {n_classes} classes have no label in it. Choose a larger {column}."
            self._note(labels, problem=problem)
            self.context.log.warning("%s was left out: %s", self._words(), problem)
        return n_missing > 0

    def _note(self, labels: IntArray, **facts: Any) -> None:
        counts = {"n_images": len(labels), "n_labels": int((labels >= 0).sum())}
        files.write_json(self.folder / STAGE, {self.study.axis.column: self.part.share, **counts, **facts})

    def _words(self) -> str:
        """The share for people: "5% of labels", "25% of the pool"; nothing for what all shares have in common."""
        if self.part.share == COMMON:
            return ""
        return f"{percent(self.part.share)} of {'labels' if self.study.axis is LABEL_BUDGET else 'the pool'}"

    def _pseudo_labels(self, labels: IntArray, before: int) -> IntArray:
        """(N,) the labels after semi-supervised training: the given ones where there is one, else the model's."""
        if (self.folder / STAGE).is_file():
            with np.load(io.BytesIO((self.folder / PSEUDO).read_bytes()), allow_pickle=False) as stored:
                return stored["labels"]
        words = {"trial": f"{self._words()}: semi-supervised training", "unit": "images"}
        clock = Clock(self.folder / CLOCK)
        with clock:
            result = train_ssl(
                self.images,
                labels,
                class_names=self.study.data.class_names,
                settings=self.settings.semi_supervised(),
                seed=self.settings.seed,
                progress=PartProgress(self.context, before, self.cost.ssl, self.study.total, words),
                device=self.study.device,
                folder=self.folder / "ssl",
            )
        unlabeled = labels < 0
        right = result.predicted[unlabeled] == self.labels[unlabeled]
        accuracy = float(right.mean()) if len(right) else None
        data = io.BytesIO()
        np.savez(data, labels=np.where(unlabeled, result.predicted, labels))
        files.write_bytes(self.folder / PSEUDO, data.getvalue())
        self._note(labels, pseudo_accuracy=accuracy, ssl_minutes=round(clock.seconds / 60, 3))
        shutil.rmtree(self.folder / "ssl", ignore_errors=True)
        self.context.log.info("%s: pseudo-labels %s right", self._words(), accuracy)
        return np.where(unlabeled, result.predicted, labels)

    def _dynamics(self, pseudo: IntArray, before: int) -> Path:
        training, recorded = self.settings.supervised(), self.folder / "trajectory"
        writer = TrajectoryWriter(recorded, training.epochs, len(self.images))
        if writer.epochs_done < training.epochs:
            words = {"trial": f"{self._words()}: dynamics run", "unit": "images"}
            train_supervised(
                self.images,
                pseudo,
                n_classes=self.study.n_classes,
                settings=training,
                seed=streams.derived(self.settings.seed, Purpose.SCORING_RUN),
                progress=PartProgress(self.context, before, self.cost.dynamics, self.study.total, words),
                device=self.study.device,
                folder=self.folder / "dynamics",
                record=writer,
            )
        shutil.rmtree(self.folder / "dynamics", ignore_errors=True)
        return recorded

    def _evidence(self, recorded: Path, labels: IntArray, pseudo: IntArray) -> Evidence:
        trajectory = open_trajectory(recorded)
        table = compute_scores(trajectory, settings=default_score_settings(self.settings.supervised().epochs))
        return table.evidence(labels=pseudo, human_mask=labels >= 0, duplicate_of=self.duplicate_of)

    # --- trainings

    def _bench(self, done: int, n_before: int) -> Workbench:
        n_trials = n_trainings(self.settings)
        return Workbench(
            images=self.images,
            labels=self.labels,
            test_images=self.study.test_images,
            test_labels=self.study.test_labels,
            n_classes=self.study.n_classes,
            training=self.settings.supervised(),
            full=for_full(self.settings.supervised(), self.settings.ratios, len(self.images)),
            book=self._book(),
            progress=Counted(self.context, n_before, n_trials),
            device=self.study.device,
            n_trials=n_trials,
            total=self.study.total,
            done=done,
        )

    def _book(self) -> TrialBook:
        book = TrialBook(self.folder / BOOK)
        keep_to_test(self.folder, book, ids_hash(self.study.tested_ids))
        return book

    def _train(
        self,
        bench: Workbench,
        methods: Sequence[str],
        evidence: Evidence,
        knobs: Mapping[tuple[str, float], Mapping[str, Any]],
    ) -> None:
        for trial in self.study.trials_of(methods, knobs):
            is_full = trial.method == FULL
            what = "all images" if is_full else f"{METHODS.title(trial.method)} at {percent(trial.pruning_ratio)}"
            words = ", ".join(filter(None, (self._words(), what, f"seed {trial.seed}")))
            bench.run(trial, lambda asked: self._choose(asked, evidence), words=f"{words[0].upper()}{words[1:]}")

    def _choose(self, trial: Trial, evidence: Evidence) -> IntArray:
        if trial.method == FULL:
            return np.arange(len(self.images))
        chosen = select_coreset(
            evidence, trial.method, pruning_ratio=trial.pruning_ratio, seed=trial.seed, **trial.knobs
        )
        return chosen.indices
