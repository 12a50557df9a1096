"""A linear head trained on features, epoch by epoch, recording what the training pass itself saw; numpy only.

The twin of ``supervised_run`` for the frozen start: each image exactly once per epoch, batches of nearly equal length,
SGD with momentum, a cosine schedule. Ten thousand images take seconds, so nothing is checkpointed: a killed run is run
again, to the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semiprune_core import streams
from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.frozen.logistic import Linear
from semiprune_core.learning.quality import Share, wilson
from semiprune_core.learning.threads import one_thread
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.settings import Settings
from semiprune_core.streams import Purpose

if TYPE_CHECKING:
    from semiprune_core.learning.supervised_run import Recorder

COLUMNS = ("target_prob", "margin", "correct", "el2n", "entropy")


@dataclass(frozen=True, kw_only=True)
class HeadSettings(Settings):
    """How a head is trained on features; docs/probes.md says how the defaults were found."""

    epochs: int = 40
    batch_size: int = 128
    lr: float = 1.0
    momentum: float = 0.9
    weight_decay: float = 1e-4

    def check(self) -> None:
        check_range("epochs", self.epochs, low=1)
        check_range("batch_size", self.batch_size, low=1)
        check_range("lr", self.lr, low=0, low_open=True)
        check_range("momentum", self.momentum, low=0, high=1, high_open=True)
        check_range("weight_decay", self.weight_decay, low=0)


@dataclass(frozen=True, eq=False)
class HeadResult:
    """The trained ``head``, one ``history`` entry per epoch, and the ``accuracy`` on the test rows, if any."""

    head: Linear
    history: list[dict[str, Any]]
    accuracy: Share | None


@one_thread()
def train_head(
    rows: FloatArray,
    labels: IntArray,
    *,
    n_classes: int,
    settings: HeadSettings,
    seed: int,
    progress: Progress,
    record: Recorder | None = None,
    test_rows: FloatArray | None = None,
    test_labels: IntArray | None = None,
    test_every: int = 0,
) -> HeadResult:
    """Train on ``rows`` (N, D) float32 with ``labels`` (N,), all in 0..n_classes-1, from weights of zero.

    ``record`` receives each epoch's columns (N,), as the training pass saw them. ``test_every`` epochs (0: only at the
    end) the head is tested.
    """
    labels = np.asarray(labels, dtype=np.int64)
    _check(rows, labels, n_classes)
    run = _HeadRun(rows, labels, n_classes, settings, seed, progress)
    if record is not None:
        record.truncate(0)
    history: list[dict[str, Any]] = []
    for epoch in range(1, settings.epochs + 1):
        seen, entry = run.epoch(epoch)
        if test_rows is not None and test_labels is not None and test_every and epoch % test_every == 0:
            entry["test_accuracy"] = round(_right(run.head, test_rows, test_labels).value, 6)
        history.append(entry)
        progress.report(run.step, run.n_steps, images_per_s=run.speed(epoch), **entry)
        if record is not None:
            entropy = seen.pop("entropy")
            record.append(
                target_prob=seen["target_prob"],
                margin=seen["margin"],
                correct=seen["correct"].astype(bool),
                el2n=seen["el2n"],
                entropy=entropy if epoch == settings.epochs else None,
            )
    tested = None if test_rows is None or test_labels is None else _right(run.head, test_rows, test_labels)
    return HeadResult(run.head, history, tested)


def _check(rows: FloatArray, labels: IntArray, n_classes: int) -> None:
    check_range("n_classes", n_classes, low=2)
    if len(rows) < 2 or len(rows) != len(labels):
        raise InvalidDataError(
            f"Training needs at least 2 images with one label each; got {len(rows)} and {len(labels)}."
        )
    illegal = np.flatnonzero((labels < 0) | (labels >= n_classes))
    if len(illegal):
        raise InvalidDataError(
            f"Every image needs a label in 0..{n_classes - 1}; {len(illegal)} have none. "
            "Make pseudo-labels for the whole pool first."
        )


def _right(head: Linear, rows: FloatArray, labels: IntArray) -> Share:
    return wilson(int((head.logits(rows).argmax(1) == labels).sum()), len(labels))


class _HeadRun:
    """One head from its first step to its last."""

    def __init__(
        self, rows: FloatArray, labels: IntArray, n_classes: int, settings: HeadSettings, seed: int, progress: Progress
    ) -> None:
        self.rows, self.labels, self.settings, self.seed, self.progress = rows, labels, settings, seed, progress
        self.head = Linear(np.zeros((rows.shape[1], n_classes), np.float32), np.zeros(n_classes, np.float32))
        self.velocity = Linear(np.zeros_like(self.head.weights), np.zeros_like(self.head.bias))
        self.steps_per_epoch = -(-len(rows) // settings.batch_size)
        self.n_steps = settings.epochs * self.steps_per_epoch
        self.step = 0
        self.began = time.monotonic()

    def epoch(self, epoch: int) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """What the training pass saw of every image (N,), and the epoch's entry in the history."""
        n = len(self.rows)
        seen = {name: np.empty(n, np.float32) for name in (*COLUMNS, "loss")}
        order = streams.rng(self.seed, Purpose.SCORING_HEAD, epoch).permutation(n)
        for idx in np.array_split(order, self.steps_per_epoch):
            if self.progress.should_stop():
                raise Stopped(f"Stopped after {self.step} of {self.n_steps} steps.")
            lr = self.settings.lr * 0.5 * (1 + np.cos(np.pi * self.step / self.n_steps))
            for name, column in self._learn(idx, np.float32(lr)).items():
                seen[name][idx] = column
            self.step += 1
        entry = {"epoch": epoch, "step": self.step, "lr": float(lr)}
        entry["train_loss"] = round(float(seen.pop("loss").mean(dtype=np.float64)), 6)
        entry["train_accuracy"] = round(float(seen["correct"].mean(dtype=np.float64)), 6)
        return seen, entry

    def speed(self, epochs: int) -> float:
        """Images per second so far."""
        return round(epochs * len(self.rows) / max(time.monotonic() - self.began, 1e-9), 1)

    def _learn(self, idx: IntArray, lr: np.float32) -> Mapping[str, FloatArray]:
        """One step on the images ``idx``; what it saw of them before it moved."""
        x, y = self.rows[idx], self.labels[idx]
        logits = x @ self.head.weights + self.head.bias
        logits -= logits.max(1, keepdims=True)
        probs = np.exp(logits)
        total = probs.sum(1, keepdims=True)
        probs /= total
        log_probs = logits - np.log(total)
        columns = _columns(probs, log_probs, y)
        probs[np.arange(len(y)), y] -= 1  # the slope of the loss
        probs /= len(y)
        self._move(self.head.weights, self.velocity.weights, x.T @ probs, lr, self.settings.weight_decay)
        self._move(self.head.bias, self.velocity.bias, probs.sum(0), lr, 0.0)
        return columns

    def _move(self, value: FloatArray, velocity: FloatArray, slope: FloatArray, lr: np.float32, decay: float) -> None:
        if decay:
            slope += np.float32(decay) * value
        velocity *= np.float32(self.settings.momentum)
        velocity += slope
        value -= lr * velocity


def _columns(probs: FloatArray, log_probs: FloatArray, labels: IntArray) -> dict[str, FloatArray]:
    """The trajectory's facts (B,) of probabilities (B, C) and labels (B,), as ``supervised_run.columns`` has them."""
    places = np.arange(len(labels))
    target = probs[places, labels]
    others = probs.copy()
    others[places, labels] = -1
    best_other = others.max(1)
    squares = np.einsum("bc,bc->b", probs, probs)
    return {
        "target_prob": target,
        "margin": target - best_other,
        "correct": target > best_other,
        "el2n": np.sqrt(np.maximum(squares - 2 * target + 1, 0)),
        "entropy": -np.einsum("bc,bc->b", probs, log_probs),
        "loss": -log_probs[places, labels],
    }
