"""The job kind ``search``: learn from coresets of 90% of the pseudo-labeled pool, compare on the other 10%."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiprune_core.dynamics.finetuned import finetuned_start
from semiprune_core.dynamics.scoring import rescored, trajectories_of
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.pretrained import Pretrained
from semiprune_core.methods import METHODS, select_coreset
from semiprune_core.project.artifacts import Artifact, open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import BoolArray, Evidence, IntArray
from semiprune_core.results import PseudoRun, made_from
from semiprune_core.results.evidence import EvidenceRun, evidence_of
from semiprune_core.results.score_source import ScoreSource, labels_behind, open_score_source, settings_of
from semiprune_core.results.search import FINETUNE, KIND, KNOB_WORDS, PROBE, SearchSettings, best_values, write_search
from semiprune_core.scores import ScoreSettings
from semiprune_core.search.curves import trial_table
from semiprune_core.search.grid import Grid, best_epochs, grid_of
from semiprune_core.selection import Basis, default_knobs
from semiprune_core.selection.options import take_evidence
from semiprune_core.training import check_pool, read_snapshot, snapshot_path
from semiprune_core.trials import BOOK, Trial, TrialBook
from semiprune_core.trials.alike import alike
from semiprune_core.trials.apart import held_out_facts, ids_hash, keep_to_test, part_to_compare
from semiprune_core.trials.kinds import TrialSettings, pinned_features, probe_on
from semiprune_core.trials.probe import fit_probe, probe_rows
from semiprune_core.trials.run import Workbench


@JOB_KINDS.register("search", title="Search")
def run(context: JobContext) -> dict[str, Any]:
    settings = SearchSettings.from_json(context.settings)
    project, pool = context.project, context.project.pool()
    finished = context.finished(KIND)
    if finished is not None:
        return _result(finished)
    check_pool(pool, context.pins["pool"])
    source = open_score_source(project, settings.scores)
    context.check_pin("scores", source.artifact)
    context.drop_older_streams()
    grid, book = grid_of(settings, source), TrialBook(context.folder / BOOK)
    compared_mask, chosen_from = _parts(context, settings, pool)
    compared_ids = pool.ids[compared_mask]
    keep_to_test(context.folder, book, ids_hash(compared_ids))
    bench = _workbench(context, settings, grid, source, pool, compared_mask, chosen_from, book)
    choice = Choice(project, source, pool, chosen_from)
    _run_all(bench, choice, grid.epoch_trials(), settings)
    n_epochs = best_epochs(trial_table(book), grid)
    if grid.finds_epochs:
        context.log.info("T = %s, the best at ratio 0.3.", n_epochs)
    _run_all(bench, choice, grid.value_trials(n_epochs), settings)
    table = trial_table(book)
    with project.draft(
        KIND,
        settings=settings.to_json(),
        inputs={**source.artifact.inputs, "scores": source.artifact.hash},
        seed=settings.split_seed,
    ) as draft:
        draft.device = context.device
        draft.facts.update(write_search(draft.folder, table, best_values(table, n_epochs), compared_ids))
        draft.facts["held_out"] = held_out_facts(compared_ids, settings.split_seed)
        draft.facts.update(
            run=context.job.id,
            score_settings=settings_of(source).to_json(),
            n_epochs=n_epochs,
            n_compared=int(compared_mask.sum()),
            n_chosen_from=len(chosen_from),
            test=settings.test,
            epochs=None if settings.test == PROBE else settings.supervised().epochs,
            cheap=settings.cheap and settings.test != PROBE,
            minutes=round(sum(result["seconds"] for _, result in book) / 60, 2),
        )
    return _result(open_artifact(draft.folder))


def _parts(context: JobContext, settings: SearchSettings, pool: Pool) -> tuple[BoolArray, IntArray]:
    """(N,) the images that values are compared on, and the positions that coresets are chosen from: neither holds an
    image of the final test, and no near-copy of a compared image is chosen."""
    final, near = _final_mask(context, pool), alike(context.project, context.pins, context)
    together = pool.duplicate_of if near is None else near[: len(pool)]
    drawn = (settings.validation, settings.split_seed, together)
    compared = part_to_compare(np.flatnonzero(~final), pool.ids, pool.duplicate_of, *drawn)
    return compared, np.flatnonzero(~final & ~compared & ~np.isin(together, together[compared]))


def _final_mask(context: JobContext, pool: Pool) -> BoolArray:
    """(N,) the images of the final test, which no search looks at."""
    pinned = context.pins.get("labels")
    if pinned is None:
        return np.zeros(len(pool), dtype=bool)
    snapshot = read_snapshot(snapshot_path(context.project, pinned), pinned)
    return snapshot.final_mask(pool.ids, pool.duplicate_of)


def _result(artifact: Artifact) -> dict[str, Any]:
    return {"artifact": artifact.id, "method": artifact.settings["method"], "best": artifact.facts["best"]}


def _workbench(
    context: JobContext,
    settings: SearchSettings,
    grid: Grid,
    source: ScoreSource,
    pool: Pool,
    compared_mask: BoolArray,
    chosen_from: IntArray,
    book: TrialBook,
) -> Workbench:
    training: TrialSettings
    images, training, start = pool.images(), settings.supervised(), None
    labels, n_classes = labels_behind(context.project, source)
    if settings.test == PROBE:
        features = pinned_features(context.project, context.pins)
        training = probe_on(features)
        images, _ = probe_rows(features.features(), features.features()[:0], training.directions)
        start = fit_probe(images[chosen_from], labels[chosen_from], n_classes, penalty=training.penalty)
    trials = grid.trials()
    return Workbench(
        images=images,
        labels=labels,
        test_images=images[compared_mask],
        test_labels=labels[compared_mask],
        n_classes=n_classes,
        training=training,
        book=book,
        pretrained=_pretrained(context, settings, pool),
        probe_start=start,
        progress=context,
        device=str(choose_device(context.device)),
        n_trials=len(trials),
        total=sum(training.images_seen(len(chosen_from), trial.pruning_ratio) for trial in trials),
    )


def _pretrained(context: JobContext, settings: SearchSettings, pool: Pool) -> Callable[[], Pretrained] | None:
    return finetuned_start(context.project, pool) if settings.test == FINETUNE else None


class Choice:
    """Chooses the coresets of trials from the positions ``among``, by scores that are computed once per T."""

    def __init__(self, project: Project, source: ScoreSource, pool: Pool, among: IntArray) -> None:
        self.project, self.source, self.pool, self.among = project, source, pool, among
        self.settings = settings_of(source)
        self.basis = source.basis(Basis(len(pool))) if isinstance(source, EvidenceRun) else source.basis()
        self._evidence: dict[ScoreSettings, Evidence] = {}

    def __call__(self, trial: Trial) -> IntArray:
        """Positions in the pool; of each class as many at least as a coreset keeps where nobody sets anything."""
        usual = default_knobs(trial.method, trial.pruning_ratio, self.basis)
        settings = self.settings.replace(**trial.score_changes)
        if settings not in self._evidence:
            self._evidence[settings] = take_evidence(self._of(settings), self.among)
        chosen = select_coreset(
            self._evidence[settings],
            trial.method,
            pruning_ratio=trial.pruning_ratio,
            seed=trial.seed,
            class_share=usual.class_share,
            **trial.knobs,
        )
        return self.among[chosen.indices]

    def _of(self, settings: ScoreSettings) -> Evidence:
        if isinstance(self.source, EvidenceRun):  # of a baseline by cutoffs alone: no T
            return self.source.evidence(self.pool)
        table = self.source.table()
        if settings != table.settings:
            table = rescored(table, trajectories_of(self.project, self.source), settings, self.source.n_epochs)
        pseudo = PseudoRun(made_from(self.project, self.source.artifact, "pseudo"))
        return evidence_of(table, pseudo, self.pool)


def _run_all(bench: Workbench, choice: Choice, trials: Sequence[Trial], settings: SearchSettings) -> None:
    for trial in trials:
        bench.run(trial, choice, words=_words(trial, settings))


def _words(trial: Trial, settings: SearchSettings) -> str:
    words = METHODS.title(trial.method)
    for knob, value in trial.knobs.items():
        words += f", {KNOB_WORDS.get(knob, knob)} {value:g}"
    if trial.score_changes:
        words += f", T {trial.score_changes['dual_epochs']}"
    return (
        f"{words}, ratio {trial.pruning_ratio:g}, seed {settings.seeds.index(trial.seed) + 1} of {len(settings.seeds)}"
    )
