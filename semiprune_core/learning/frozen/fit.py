"""From features and some labels to a label for every image, cross-fitted, in seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from semiprune_core import streams
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen.experts import Span, fit_powers, log_probs, penalty_path, propagated, together
from semiprune_core.learning.frozen.folds import TRAINS_ONLY, assign_folds, count_folds, training_mask
from semiprune_core.learning.frozen.intervals import balanced_accuracy, measure_out_of_fold
from semiprune_core.learning.frozen.logistic import Linear
from semiprune_core.learning.frozen.prepare import FrozenPool, prepare_pool
from semiprune_core.learning.frozen.results import FrozenResult, OutOfFold, Views
from semiprune_core.learning.frozen.settings import FrozenSettings
from semiprune_core.learning.shares import drawn_counts, image_weights
from semiprune_core.learning.threads import one_thread
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import UNLABELED, BoolArray, FloatArray, IntArray
from semiprune_core.streams import Purpose

FEWEST = 20
"""Below this many uniformly drawn labels nothing is measured: the number would mean nothing."""
CHOOSING = 200
"""Held-out labels that choose the penalty; more folds than hold as many are not tried with every penalty."""
USUAL_PENALTY = 1e-3
"""Without held-out labels."""


def fit_frozen(
    features: np.ndarray | Sequence[np.ndarray],
    labels: IntArray,
    *,
    n_classes: int | None = None,
    measurable_mask: BoolArray | None = None,
    groups: IntArray | None = None,
    settings: FrozenSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    views: Views | Sequence[Views] | None = None,
) -> FrozenResult:
    """Labels and probabilities for all images from ``features`` (N, D) and ``labels`` (N,), ``UNLABELED`` where none.

    ``measurable_mask`` (N,) says which labels were drawn uniformly (all where None): they measure, and they say how
    common a class is; the others train.
    ``groups`` (N,) are near-duplicates, which are never split over folds. Several encoders are given as a list.
    """
    settings = settings or FrozenSettings()
    began = time.perf_counter()
    pool = prepare_pool(features, settings, views=views, progress=progress)
    result = fit_pool(
        pool,
        labels,
        n_classes=n_classes,
        measurable_mask=measurable_mask,
        groups=groups,
        settings=settings,
        seed=seed,
        progress=progress,
    )
    result.seconds["prepare"] = time.perf_counter() - began - sum(result.seconds.values())
    return result


@one_thread()
def fit_pool(
    pool: FrozenPool,
    labels: IntArray,
    *,
    n_classes: int | None = None,
    measurable_mask: BoolArray | None = None,
    groups: IntArray | None = None,
    settings: FrozenSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> FrozenResult:
    """As :func:`fit_frozen`, on a pool that was prepared before: what is done anew after every few labels."""
    work = _Work.begin(pool, labels, n_classes, measurable_mask, groups, settings or FrozenSettings(), seed, progress)
    with work.timed("cross-fit"):
        if work.settings.head == "ssl":  # a probe finds the penalty, for a fraction of the time
            penalty = work.cross_fit("logistic", work.settings.penalties)[1]
            answers, _ = work.cross_fit("ssl", [penalty])
        else:
            answers, penalty = work.cross_fit(work.settings.head, work.settings.penalties)
    powers, loss = fit_powers(answers, work.labels[work.held]) if len(work.held) else (None, None)
    with work.timed("fit"):
        final = work.answers(work.settings.head, np.arange(len(work.labeled)), [penalty], None)[0]
        probs = together(final, powers if powers is not None else np.ones(len(final)))
    held = work.held
    out_of_fold = OutOfFold(
        work.labeled[held],
        work.labels[held],
        work.held_out_probs(answers),
        work.folds[held],
        work.groups[held],
    )
    predicted = probs.argmax(1)
    predicted[work.labeled] = work.labels
    measured = len(out_of_fold) >= FEWEST
    return FrozenResult(
        labels=predicted,
        probs=probs,
        out_of_fold=out_of_fold,
        quality=measure_out_of_fold(
            out_of_fold.predicted,
            out_of_fold.labels,
            out_of_fold.probs.max(1),
            out_of_fold.groups,
            n_classes=work.n_classes,
            n_rest=len(pool) - len(work.labeled),
        )
        if measured
        else None,
        balanced=balanced_accuracy(out_of_fold.predicted, out_of_fold.labels) if measured else None,
        missing=np.setdiff1d(np.arange(work.n_classes), work.labels),
        facts={
            "head": work.settings.head,
            "penalty": penalty,
            "powers": [] if powers is None else [round(float(power), 4) for power in powers],
            "loss": loss,
            "n_folds": work.n_folds,
        },
        seconds=work.seconds,
    )


@one_thread()
def refit(
    pool: FrozenPool,
    labels: IntArray,
    *,
    n_classes: int,
    measurable_mask: BoolArray,
    settings: FrozenSettings,
    seed: int,
    penalty: float,
    powers: FloatArray,
) -> FloatArray:
    """(N, C) probabilities by a head whose ``penalty`` and ``powers`` an earlier fit has found; nothing is measured."""
    work = _Work.begin(pool, labels, n_classes, measurable_mask, None, settings, seed, None)
    answers = work.answers(settings.head, np.arange(len(work.labeled)), [penalty], None)[0]
    return together(answers, powers if len(powers) == len(answers) else np.ones(len(answers)))


@dataclass(eq=False)
class _Work:
    """What one fit needs everywhere: the labeled images, their folds, and who answers."""

    pool: FrozenPool
    labeled: IntArray
    labels: IntArray
    groups: IntArray
    uniform: BoolArray
    folds: IntArray
    n_folds: int
    n_classes: int
    settings: FrozenSettings
    seed: int
    progress: Progress | None
    span: Span
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        pool: FrozenPool,
        labels: IntArray,
        n_classes: int | None,
        measurable_mask: BoolArray | None,
        groups: IntArray | None,
        settings: FrozenSettings,
        seed: int,
        progress: Progress | None,
    ) -> _Work:
        labels = np.asarray(labels)
        if len(labels) != len(pool):
            raise InvalidDataError(f"There are {len(labels):,} labels for {len(pool):,} images.")
        labeled = np.flatnonzero(labels != UNLABELED)
        mine = labels[labeled].astype(np.int64)
        if len(np.unique(mine)) < 2:
            raise InvalidDataError(
                f"Learning needs labels of at least two classes; there are {len(labeled):,} labels of "
                f"{len(np.unique(mine))}. Label more images."
            )
        n_classes = int(mine.max()) + 1 if n_classes is None else n_classes
        if mine.max() >= n_classes:
            raise InvalidDataError(f"A label names class {mine.max()}, but there are {n_classes} classes.")
        measurable = np.ones(len(mine), bool) if measurable_mask is None else np.asarray(measurable_mask)[labeled]
        alike = labeled if groups is None else np.asarray(groups)[labeled]
        n_folds = count_folds(len(np.unique(alike[measurable])), settings.n_folds)
        folds = np.full(len(mine), TRAINS_ONLY)
        if n_folds:
            folds = assign_folds(mine, n_folds, streams.rng(seed, Purpose.FOLDS), measurable=measurable, groups=alike)
        began = time.perf_counter()
        span = Span.of(pool.rows[labeled])
        work = cls(pool, labeled, mine, alike, measurable, folds, n_folds, n_classes, settings, seed, progress, span)
        work.seconds["span"] = time.perf_counter() - began
        return work

    @property
    def held(self) -> IntArray:
        """Positions among the labeled images that are held out once."""
        return np.flatnonzero(self.folds != TRAINS_ONLY)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[part] = time.perf_counter() - began

    def cross_fit(self, head: str, penalties: Sequence[float]) -> tuple[list[FloatArray], float]:
        """Log answers (n, C) of each expert for the held-out labels, at the penalty that does best on them."""
        if not self.n_folds:
            return [], USUAL_PENALTY
        penalties = [USUAL_PENALTY] if head == "propagation" else list(penalties)
        choosing = max(3, int(np.ceil(CHOOSING * self.n_folds / len(self.held))))
        place = np.full(len(self.labels), -1)
        place[self.held] = np.arange(len(self.held))
        tables: dict[float, list[FloatArray]] = {}
        for fold in range(self.n_folds):
            self._go_on(fold)
            if fold == choosing and len(penalties) > 1:
                penalties = [self._best(tables, self.folds[self.held] < choosing)]
            mine = np.flatnonzero(self.folds == fold)
            train = np.flatnonzero(training_mask(self.folds, self.groups, fold))
            if not len(train):
                raise InvalidDataError("All labeled images are near-duplicates of each other. Label more images.")
            found = self.answers(head, train, penalties, mine, 1 + fold)
            for penalty, answers in zip(penalties, found, strict=True):
                table = tables.setdefault(
                    penalty, [np.zeros((len(self.held), self.n_classes)) for _ in range(len(answers))]
                )
                for whole, part in zip(table, answers, strict=True):
                    whole[place[mine]] = part
        best = penalties[0] if len(penalties) == 1 else self._best(tables, np.ones(len(self.held), bool))
        return tables[best], best

    def held_out_probs(self, answers: Sequence[FloatArray]) -> FloatArray:
        """(n, C) for the held-out labels, in each fold with the powers that the other folds would give."""
        probs = np.zeros((len(self.held), self.n_classes))
        folds, truth = self.folds[self.held], self.labels[self.held]
        for fold in range(self.n_folds):
            mine = folds == fold
            powers, _ = fit_powers([answer[~mine] for answer in answers], truth[~mine])
            probs[mine] = together([answer[mine] for answer in answers], powers)
        return probs

    def _best(self, tables: dict[float, list[FloatArray]], rows: BoolArray) -> float:
        truth = self.labels[self.held][rows]
        losses = {penalty: fit_powers([table[rows] for table in found], truth)[1] for penalty, found in tables.items()}
        return min(losses, key=losses.__getitem__)

    def answers(
        self, head: str, train: IntArray, penalties: Sequence[float], held: IntArray | None, number: int = 0
    ) -> list[list[FloatArray]]:
        """For each penalty the log answers of the experts, fitted on the labels ``train``.

        They are for the labeled images ``held``, or for the whole pool where None. Each fit has its own ``number``, by
        which it draws.
        """
        flow = []
        if head != "logistic":
            arrived = propagated(
                self.pool, self.labeled[train], self.labels[train], self.n_classes, alpha=self.settings.alpha
            )
            flow = [arrived if held is None else arrived[self.labeled[held]]]
        if head == "propagation":
            return [flow for _ in penalties]
        weights = image_weights(self.labels[train], self._drawn(train))
        path = penalty_path(self.span.labeled[train], self.labels[train], self.n_classes, penalties, weights)
        return [
            [log_probs(self._logits(head, narrow, train, penalty, held, number)), *flow]
            for narrow, penalty in zip(path, penalties, strict=True)
        ]

    def _drawn(self, train: IntArray) -> FloatArray | None:
        """(C,) the labels ``train`` of each class that were drawn uniformly."""
        return drawn_counts(self.labels[train], self.uniform[train], self.n_classes)

    def _logits(
        self, head: str, narrow: Linear, train: IntArray, penalty: float, held: IntArray | None, number: int
    ) -> FloatArray:
        if head != "ssl" and held is not None:
            return narrow.logits(self.span.labeled[held])
        linear = self.span.widen(narrow)
        if head == "ssl":
            from semiprune_core.learning.frozen.ssl_head import train_head

            known = self.labeled[train], self.labels[train]
            linear = train_head(
                self.pool,
                linear,
                *known,
                drawn=self._drawn(train),
                penalty=penalty,
                settings=self.settings,
                seed=self.seed,
                number=number,
                progress=self.progress,
            )
        return linear.logits(self.pool.rows if held is None else self.pool.rows[self.labeled[held]])

    def _go_on(self, fold: int) -> None:
        if self.progress is not None:
            if self.progress.should_stop():
                raise Stopped
            self.progress.report(fold, self.n_folds + 1, unit="folds", stage="cross-fit")
