"""One trial: learn from a coreset and test once, at the end: a net trained on images, or a probe on their features."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch

from semiprune_core import files, streams
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen.logistic import Linear
from semiprune_core.learning.pretrained import Pretrained, weights_of
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.learning.supervised_run import train_supervised
from semiprune_core.learning.trainer import digest
from semiprune_core.progress import PartProgress, Progress, Stopped
from semiprune_core.records import IntArray
from semiprune_core.results.lead import packed
from semiprune_core.streams import Purpose
from semiprune_core.trials.book import FULL, Trial, TrialBook
from semiprune_core.trials.kinds import ProbeSettings, TrialSettings
from semiprune_core.trials.probe import fit_probe

FEWEST_TRAINED = 2


@dataclass(frozen=True)
class TrialResult:
    """``n_correct`` of ``n_test`` test images were right after the last epoch on ``n_train`` images; of each class (C,)
    ``right_by_class`` of ``n_by_class``. ``right`` says which (``lead.packed``)."""

    n_correct: int
    n_test: int
    n_train: int
    seconds: float
    right_by_class: tuple[int, ...] = ()
    n_by_class: tuple[int, ...] = ()
    right: str | None = None

    @classmethod
    def of(cls, answers: IntArray, truth: IntArray, n_classes: int, *, n_train: int, seconds: float) -> Self:
        """From the answered and the true classes (M,) of the test images."""
        is_right = answers == truth
        right = np.bincount(truth[is_right], minlength=n_classes)
        every = np.bincount(truth, minlength=n_classes)
        by_class = {"right_by_class": tuple(right.tolist()), "n_by_class": tuple(every.tolist())}
        return cls(int(is_right.sum()), len(truth), n_train, seconds, **by_class, right=packed(is_right))

    @property
    def accuracy(self) -> float:
        return self.n_correct / self.n_test


def train_trial(
    images: np.ndarray,
    labels: IntArray,
    test_images: np.ndarray,
    test_labels: IntArray,
    *,
    n_classes: int,
    settings: SupervisedSettings,
    seed: int,
    progress: Progress,
    device: torch.device | str = "cpu",
    pretrained: Pretrained | None = None,
) -> TrialResult:
    """Train on ``images`` (N, H, W[, C]) uint8 with ``labels`` (N,) and test on the others once, at the end.

    The net begins from scratch, or with the weights of ``pretrained``. Nothing is recorded and nothing saved: a trial
    that is stopped begins anew. Equal arrays, settings and seed give the same numbers on a CPU; equally many images and
    the same seed start from the same weights and take the same places of their coreset into each batch.
    """
    if not len(test_images):
        raise InvalidDataError("There is no image to test on. Import a test split, or hold some images out.")
    started = time.monotonic()
    result = train_supervised(
        images,
        labels,
        n_classes=n_classes,
        settings=settings,
        seed=streams.derived(seed, Purpose.TRIAL_RUN),
        progress=progress,
        device=device,
        eval_images=test_images,
        eval_labels=test_labels,
        pretrained=pretrained,
    )
    assert result.answers is not None  # there are test images
    seconds = time.monotonic() - started
    return TrialResult.of(result.answers, np.asarray(test_labels), n_classes, n_train=len(images), seconds=seconds)


def probe_trial(
    rows: np.ndarray,
    labels: IntArray,
    test_rows: np.ndarray,
    test_labels: IntArray,
    *,
    n_classes: int,
    settings: ProbeSettings,
    progress: Progress,
    start: Linear | None = None,
) -> TrialResult:
    """Fit a probe to ``rows`` (n, d) with ``labels`` (n,) and test it on the others; the same numbers for any seed.

    The search for it begins at the head ``start``.
    """
    if not len(test_rows):
        raise InvalidDataError("There is no image to test on. Import a test split, or hold some images out.")
    if progress.should_stop():
        raise Stopped
    started = time.monotonic()
    head = fit_probe(rows, labels, n_classes, penalty=settings.penalty, start=start)
    answers = head.logits(test_rows).argmax(1)
    seconds = time.monotonic() - started
    return TrialResult.of(answers, test_labels, n_classes, n_train=len(rows), seconds=seconds)


@dataclass
class Workbench:
    """What all trials of a job share: the images (N, ...) with their labels, the test, the training, the book.

    For probes the images are rows of features (N, d). Fine-tuned nets begin with what ``pretrained`` opens for each.
    ``probe_start`` is the head that probes are looked for near, one for all of them.
    ``full`` is how the whole pool is trained on, where that is not as ``training`` says (``kinds.for_full``).

    ``total`` is the number of images that all planned trials train on, every epoch counted: the job's progress is
    measured in these, as a trial on a tenth of the pool takes a tenth of the time. ``earlier`` are results of the same
    images, labels, test and device that other jobs had, by their mark.
    """

    images: np.ndarray
    labels: IntArray
    test_images: np.ndarray
    test_labels: IntArray
    n_classes: int
    training: TrialSettings
    book: TrialBook
    progress: Progress
    device: str
    n_trials: int
    total: int
    done: int = 0
    earlier: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pretrained: Callable[[], Pretrained] | None = None
    full: TrialSettings | None = None
    probe_start: Linear | None = None
    _weights: dict[str, str] = field(default_factory=dict)
    _finished: set[str] = field(default_factory=set)
    _marks: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._weights = weights_of(self.pretrained() if self.pretrained is not None else None)
        self._marks = by_mark(result for _, result in self.book)

    def run(self, trial: Trial, choose: Callable[[Trial], IntArray], *, words: str, note: str = "") -> dict[str, Any]:
        """The result of ``trial``: from the book, or trained now on the positions that ``choose`` gives for it.

        The same images with the same seed and settings give the same result, so they are trained on once.
        ``words`` say for people which trial it is.
        """
        facts = {"trials_done": len(self._finished), "trials_total": self.n_trials, "trial": words, "unit": "images"}
        self.progress.report(min(self.done, self.total), self.total, **facts)
        training = self._training(trial)
        if trial not in self.book:
            idx = np.sort(choose(trial))  # the set decides, not the order of choice
            self.book.add(trial, self._result(trial, idx, training, note, facts))
        result = self.book[trial]
        if trial.key not in self._finished:
            self._finished.add(trial.key)
            self.done += result["n_train"] * training.epochs
        facts["trials_done"] = len(self._finished)
        self.progress.report(min(self.done, self.total), self.total, **facts)
        return result

    def _training(self, trial: Trial) -> TrialSettings:
        if trial.method == FULL and self.full is not None:
            return self.full
        return self.training.for_coreset(trial.pruning_ratio)

    def _result(
        self, trial: Trial, idx: IntArray, training: TrialSettings, note: str, facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        mark = _mark(idx, trial.seed, training, self._weights)
        if mark in self._marks:
            explained = " ".join(part for part in (note, "Same images as another trial; trained once.") if part)
            return {**self._marks[mark], "note": explained, "seconds": 0.0}
        if mark in self.earlier:
            taken_over = {**self.earlier[mark], "note": note}
            self._marks[mark] = taken_over
            return taken_over
        if len(idx) < FEWEST_TRAINED:
            raise InvalidDataError(
                f"Pruning ratio {trial.pruning_ratio:g} leaves {len(idx)} of {len(self.images)} images to train on. "
                "Choose a smaller one."
            )
        trained = self._trained(trial, idx, training, facts)
        result = {
            "n_train": trained.n_train,
            "n_test": trained.n_test,
            "n_correct": trained.n_correct,
            "right_by_class": list(trained.right_by_class),
            "n_by_class": list(trained.n_by_class),
            "right": trained.right,
            "seconds": round(trained.seconds, 3),
            "mark": mark,
            "note": note,
        }
        self._marks[mark] = result
        return result

    def _trained(self, trial: Trial, idx: IntArray, training: TrialSettings, facts: Mapping[str, Any]) -> TrialResult:
        images = self.images if len(idx) == len(self.images) else self.images[idx]
        data = (images, self.labels[idx], self.test_images, self.test_labels)
        progress = PartProgress(self.progress, self.done, len(idx) * training.epochs, self.total, facts)
        if isinstance(training, ProbeSettings):
            probing: dict[str, Any] = {"progress": progress, "start": self.probe_start}
            return probe_trial(*data, n_classes=self.n_classes, settings=training, **probing)
        begin: dict[str, Any] = {} if self.pretrained is None else {"pretrained": self.pretrained()}
        return train_trial(
            *data,
            n_classes=self.n_classes,
            settings=training,
            seed=trial.seed,
            progress=progress,
            device=self.device,
            **begin,
        )


def by_mark(results: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """One result for each training: that of the trial that really trained, which took the longest.

    >>> by_mark([{"mark": "a", "seconds": 9.0}, {"mark": "a", "seconds": 0.0}])
    {'a': {'mark': 'a', 'seconds': 9.0}}
    """
    trained: dict[str, Mapping[str, Any]] = {}
    for result in results:
        longest = trained.setdefault(str(result["mark"]), result)
        if result["seconds"] > longest["seconds"]:
            trained[str(result["mark"])] = result
    return trained


def _mark(idx: IntArray, seed: int, training: TrialSettings, weights: Mapping[str, str]) -> str:
    """Which training this is: which images, which seed (probes have none), which settings, which weights at first."""
    images = digest(idx.astype(np.int64))
    drawn = {"seed": None} if isinstance(training, ProbeSettings) else {"seed": seed, "streams": streams.RULE}
    return files.sha256_json({"images": images, **drawn, "training": training.to_json(), **weights})
