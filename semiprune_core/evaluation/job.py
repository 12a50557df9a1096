"""The job kind ``evaluate``: methods x ratios x seeds, each learned from and tested once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiprune_core import files, jobs, streams
from semiprune_core.baselines.evidence import EvidenceRequest, evidence_for, stored_evidence
from semiprune_core.coresets import with_searched
from semiprune_core.coresets.starting_values import search_for
from semiprune_core.dynamics.finetuned import finetuned_start
from semiprune_core.dynamics.frozen import labeled_test_features
from semiprune_core.dynamics.job import labeled_tests
from semiprune_core.errors import ConflictError, SemiPruneError
from semiprune_core.evaluation.data import (
    SPLIT,
    EvaluationData,
    copies_words,
    data_facts,
    evaluation_data,
    seen_facts,
    tested_ids,
)
from semiprune_core.evaluation.settings import (
    ARTIFACT,
    DATA_FACTS,
    KIND,
    TESTED_IDS,
    TIMES,
    EvaluationSettings,
    cell_name,
    evidence_minutes,
    planned_trials,
    trial_knobs,
    write_evaluation,
)
from semiprune_core.evaluation.submit import check_left, pinned_final, pinned_pseudo, pinned_snapshot
from semiprune_core.evaluation.tuned import OWN_SEARCHES, search_facts, searches_behind
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.pretrained import Pretrained
from semiprune_core.learning.trainer import digest
from semiprune_core.methods import METHODS, select_coreset
from semiprune_core.progress import InnerProgress
from semiprune_core.project.artifacts import Artifact, versions
from semiprune_core.project.pool import Pool
from semiprune_core.records import BoolArray, Evidence, IntArray
from semiprune_core.results import ScoreRun, latest_scores
from semiprune_core.results.evidence import EvidenceRun
from semiprune_core.selection import Basis
from semiprune_core.selection.options import take_evidence
from semiprune_core.training import check_pool
from semiprune_core.trials import BOOK, FINETUNE, FULL, PROBE, Trial, TrialBook
from semiprune_core.trials.alike import alike
from semiprune_core.trials.apart import held_out_facts, keep_to_test
from semiprune_core.trials.kinds import TrialSettings, for_full, pinned_features, probe_on
from semiprune_core.trials.probe import probe_rows
from semiprune_core.trials.run import Workbench, by_mark

SAME = "same.json"
"""In a job's own folder: the hash of what its results stand on."""
CHOSEN_BY = "chosen_by.json"
"""In a job's own folder: the hash of what each method chose its coresets by."""
OWN_KNOBS = "own_knobs.json"
"""In a job's own folder: the knobs of methods that look at evidence of their own, by method and ratio."""


@JOB_KINDS.register("evaluate", title="Evaluate")
def run(context: JobContext) -> dict[str, Any]:
    settings = EvaluationSettings.from_json(context.settings)
    project, pool = context.project, context.project.pool()
    finished = context.finished(ARTIFACT)
    if finished is not None:
        return _result(finished)
    check_pool(pool, context.pins["pool"])
    context.drop_older_streams()
    snapshot, pseudo = pinned_snapshot(project, context.pins), pinned_pseudo(project, context.pins)
    final = pinned_final(project, context.pins)
    near = alike(project, context.pins, context)
    data = evaluation_data(
        project, settings.truth, pool=pool, snapshot=snapshot, final=final, pseudo=pseudo, alike=near
    )
    check_left(len(data.chosen_from), settings.ratios, len(data.class_names), copies_words(data))
    scores = _pinned_scores(context)
    basis = dataclasses.replace(scores.basis() if scores else Basis(len(pool)), n_images=len(data.chosen_from))
    planned = planned_trials(settings, basis)
    bench = _workbench(context, settings, data, pool, planned)
    facts = _noted(context, settings, data, pool, seen_facts(project, pseudo, final))
    choice = Choice(context, settings, data, scores, snapshot, bench, basis)
    trials = [choice.completed(trial) for trial in planned]  # what cannot be had is known before the first training
    for trial in trials:
        bench.run(trial, choice, words=_words(trial, settings))
    facts = {**facts, **_tuned(context, data, pool), "evidence_minutes": evidence_minutes(context.folder)}
    evaluation = write_evaluation(project, context.job, facts=facts, stopped=False, device=bench.device)
    return _result(evaluation.artifact)


def _noted(
    context: JobContext, settings: EvaluationSettings, data: EvaluationData, pool: Pool, seen: Mapping[str, Any]
) -> dict[str, Any]:
    """What is said about the numbers, and the ids of the test images: in the job's own folder from the beginning."""
    ids = tested_ids(context.project, data, pool)
    facts = {**data_facts(settings, data, len(pool)), "held_out": held_out_facts(ids, 0), **seen}
    facts |= _tuned(context, data, pool)
    with files.open_atomic(context.folder / TESTED_IDS) as file:
        np.save(file, ids, allow_pickle=False)
    files.write_json(context.folder / DATA_FACTS, facts)
    return facts


def _tuned(context: JobContext, data: EvaluationData, pool: Pool) -> dict[str, Any]:
    ids = tested_ids(context.project, data, pool)
    return search_facts(context.project, pool, searches_behind(context.job), ids)


def _result(artifact: Artifact) -> dict[str, Any]:
    told = ("truth", "test", "tested_by", "n_test", "n_trials")
    return {"artifact": artifact.id, **{name: artifact.facts.get(name) for name in told}}


def _pinned_scores(context: JobContext) -> ScoreRun | None:
    """The scores the job was queued with; refused where the project's are of another dynamics run by now."""
    wanted = context.pins.get("scores")
    if wanted is None:
        return None
    mine = next((past for past in context.project.artifacts("scores") if past.hash == wanted), None)
    if mine is None or latest_scores(context.project).artifact.inputs != mine.inputs:
        raise ConflictError(
            "The scores have changed since this evaluation was queued. Start a new one.", code="PINS_CHANGED"
        )
    return ScoreRun(mine)


def _workbench(
    context: JobContext, settings: EvaluationSettings, data: EvaluationData, pool: Pool, trials: list[Trial]
) -> Workbench:
    held = np.flatnonzero(data.held_mask & (data.held_labels >= 0))
    images, test_images, test_labels, training = _seen(context, settings, data, pool, held)
    n_left, device = len(data.chosen_from), str(choose_device(context.device))
    full = for_full(training, settings.ratios, n_left)
    tested = context.project.test_set().hash if data.test == SPLIT else digest(held)
    installed = versions()
    makers = [streams.RULE, *(installed[name] for name in ("semiprune", "torch") if name in installed)]
    n_classes = len(data.class_names)  # a class without an image widens the net's last layer all the same
    sames = (pool.hash, digest(data.labels), n_classes, tested, digest(test_labels), device, makers)
    files.write_json(context.folder / SAME, {"sha256": files.sha256_json(sames)})
    book = TrialBook(context.folder / BOOK)
    keep_to_test(context.folder, book, files.sha256_json([tested, digest(test_labels), digest(data.chosen_from)]))
    return Workbench(
        images=images,
        labels=data.labels,
        test_images=test_images,
        test_labels=test_labels,
        n_classes=n_classes,
        training=training,
        book=book,
        pretrained=_pretrained(context, settings, pool),
        progress=context,
        device=device,
        n_trials=len(trials),
        earlier=by_mark(result for job in _others(context) for _, result in TrialBook(job.work_folder / BOOK)),
        full=full,
        total=sum(
            (full if trial.method == FULL else training).images_seen(n_left, trial.pruning_ratio) for trial in trials
        ),
    )


def _pretrained(context: JobContext, settings: EvaluationSettings, pool: Pool) -> Callable[[], Pretrained] | None:
    return finetuned_start(context.project, pool) if settings.test == FINETUNE else None


def _seen(
    context: JobContext, settings: EvaluationSettings, data: EvaluationData, pool: Pool, held: IntArray
) -> tuple[np.ndarray, np.ndarray, IntArray, TrialSettings]:
    """What trials see of the pool and of the test images, the latter's labels, and how a trial learns."""
    tests, is_split = context.project.test_set(), data.test == SPLIT
    if settings.test == PROBE:
        features = pinned_features(context.project, context.pins)
        probe, own = probe_on(features), labeled_test_features(tests, features, data)
        beside = own[0] if own is not None else features.features()[:0]
        rows, test_rows = probe_rows(features.features(), beside, probe.directions)
        if own is not None and is_split:
            return rows, test_rows, own[1], probe
        return rows, rows[held], data.held_labels[held], probe
    images = pool.images()
    if not is_split:
        return images, images[held], data.held_labels[held], settings.supervised()
    labeled = labeled_tests(tests, data)
    assert labeled is not None  # the data was found by its test images
    return images, *labeled, settings.supervised()


def _others(context: JobContext) -> list[jobs.Job]:
    """Evaluations on the same images, labels, classes, test, device and versions, so that their results count here.

    A longer evaluation thereby goes on from a shorter one: nothing is trained twice.
    """
    same = files.read_json(context.folder / SAME)
    others = [job for job in jobs.list_jobs(context.project, KIND) if job.id != context.job.id]
    return [
        job for job in others if (job.work_folder / SAME).is_file() and files.read_json(job.work_folder / SAME) == same
    ]


@dataclass(frozen=True)
class _Making(InnerProgress):
    """The progress of a method's evidence: it says what is being made and moves nothing."""

    done: int
    total: int
    words: str

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        share = f" ({done / total:.0%})" if total else ""
        self.whole.report(self.done, self.total, trial=f"{self.words}{share}")


class Choice:
    """Chooses the coresets of trials by the evidence of their methods, which is asked for once each."""

    def __init__(
        self,
        context: JobContext,
        settings: EvaluationSettings,
        data: EvaluationData,
        scores: ScoreRun | None,
        snapshot: LabelsSnapshot,
        bench: Workbench,
        basis: Basis,
    ) -> None:
        self.context, self.settings, self.snapshot, self.bench = context, settings, snapshot, bench
        self.basis = basis
        self.scores, self.among = scores, data.chosen_from
        self._evidence: dict[str, Evidence] = {}

    def __call__(self, trial: Trial) -> IntArray:
        """Positions in the pool."""
        if trial.method == FULL:
            return self.among
        request = self.settings.request(trial.method, trial.pruning_ratio)
        chosen = select_coreset(
            self.evidence(trial),
            trial.method,
            pruning_ratio=trial.pruning_ratio,
            seed=trial.seed,
            same_annotation_budget=request.same_annotation_budget,
            **trial.knobs,
        )
        return self.among[chosen.indices]

    def completed(self, trial: Trial) -> Trial:
        """The trial with all its knobs, once what its method looks at is there."""
        if trial.method == FULL or trial in self.bench.book:
            return trial
        self.evidence(trial)
        evidence = stored_evidence(trial.method, self._request(trial))
        if evidence is None:
            return trial
        return trial.replace(knobs=self._knobs_of(trial, evidence))

    def _knobs_of(self, trial: Trial, evidence: EvidenceRun) -> dict[str, Any]:
        """What a search found for this evidence, else where to start with it. Looked up once: a resumed evaluation goes
        on as it began, whatever was searched since."""
        path = self.context.folder / OWN_KNOBS
        own_knobs = dict(files.read_json(path)) if path.is_file() else {}
        key = cell_name(trial.method, trial.pruning_ratio)
        if key not in own_knobs:
            asked = self.settings.request(trial.method, trial.pruning_ratio)
            basis = dataclasses.replace(evidence.basis(self.basis), n_images=self.basis.n_images)
            searched = with_searched(self.context.project, asked, evidence)
            own_knobs[key] = trial_knobs(searched, basis)
            files.write_json(path, own_knobs)
            if searched is not asked:
                self._note_search(trial, evidence)
        return dict(own_knobs[key])

    def _note_search(self, trial: Trial, evidence: EvidenceRun) -> None:
        found = search_for(self.context.project, trial.method, trial.pruning_ratio, evidence)
        path = self.context.folder / OWN_SEARCHES
        noted = dict(files.read_json(path)) if path.is_file() else {}
        assert found is not None  # its knobs were taken
        noted[cell_name(trial.method, trial.pruning_ratio)] = found[0].artifact.id
        files.write_json(path, noted)

    def evidence(self, trial: Trial) -> Evidence:
        """What the trial's method looks at, of the images that may be chosen."""
        key = files.canonical_json([trial.method, trial.score_changes])
        if key not in self._evidence:
            started = time.monotonic()
            evidence = evidence_for(trial.method, self._request(trial))
            self._check_same(key, trial.method, evidence)
            self._note(trial.method, (time.monotonic() - started) / 60)
            if self.settings.same_annotation_budget:
                evidence = dataclasses.replace(evidence, human_mask=self._human())
            self._evidence[key] = take_evidence(evidence, self.among)
        return self._evidence[key]

    def _request(self, trial: Trial) -> EvidenceRequest:
        asked = self.settings.evidence_for(trial.method)
        if METHODS[trial.method].evidence == "scores" and self.scores is not None:
            pinned = dict(self.scores.artifact.settings)  # the pinned ones, whatever was scored since
            asked = {**pinned, **{name: value for name, value in asked.items() if name in pinned}}
        return EvidenceRequest(
            self.context.project,
            _Making(
                self.context,
                self.bench.done,
                self.bench.total,
                f"Preparing what {METHODS.title(trial.method)} needs",
            ),
            device=self.bench.device,
            seed=self.settings.evidence_seed,
            settings={**asked, **trial.score_changes},
            folder=self.context.folder / "evidence",
            labels=self.snapshot,
        )

    def _check_same(self, key: str, method: str, evidence: Evidence) -> None:
        """Refuse evidence that is another one than earlier coresets of this job were chosen by."""
        columns = {**evidence.scores, "mean_prob": evidence.mean_prob}
        mine = files.sha256_json({name: digest(column) for name, column in columns.items() if column is not None})
        path = self.context.folder / CHOSEN_BY
        hashes = dict(files.read_json(path)) if path.is_file() else {}
        if hashes.setdefault(key, mine) != mine:
            raise ConflictError(
                f"What {METHODS.title(method)} chooses by has changed since this evaluation began: there is a new "
                "dynamics run, new pseudo-labels or another encoder. Start a new one.",
                code="PINS_CHANGED",
            )
        files.write_json(path, hashes)

    def _human(self) -> BoolArray:
        """(N,) the images whose labels were paid for before anything was chosen."""
        pseudo = pinned_pseudo(self.context.project, self.context.pins)
        assert pseudo is not None  # asked for when it was queued
        return np.asarray(pseudo.labels().human_mask)

    def _note(self, method: str, minutes: float) -> None:
        """Remember how long evidence took when it was made; a resumed or a longer evaluation only finds it again."""
        times = evidence_minutes(self.context.folder)
        if method not in times:
            times[method] = round(max(minutes, self._before(method)), 4)
            files.write_json(self.context.folder / TIMES, times)

    def _before(self, method: str) -> float:
        """The minutes of the same evidence in the evaluations that this one takes over from."""
        asked = self.settings.evidence_for(method)
        same = [job for job in _others(self.context) if _asked_of(job, method) == asked]
        return max((evidence_minutes(job.work_folder).get(method, 0.0) for job in same), default=0.0)


def _asked_of(job: jobs.Job, method: str) -> dict[str, Any] | None:
    """The settings of what ``method`` looked at in another job; None where this version cannot read that job's, such as
    after a method was removed."""
    try:
        return EvaluationSettings.from_json(job.settings).evidence_for(method)
    except SemiPruneError:
        return None


def _words(trial: Trial, settings: EvaluationSettings) -> str:
    seed = f"seed {settings.seeds.index(trial.seed) + 1} of {len(settings.seeds)}"
    if trial.method == FULL:
        return f"All images, {seed}"
    return f"{METHODS.title(trial.method)}, ratio {trial.pruning_ratio:g}, {seed}"
