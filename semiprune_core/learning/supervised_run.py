"""Supervised training over all images, each exactly once per epoch, recording what the training pass itself saw."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning import augment, quality, sampling
from semiprune_core.learning.checkpoints import Checkpoints, with_prefix, without_prefix
from semiprune_core.learning.distributed import World
from semiprune_core.learning.images import Images
from semiprune_core.learning.nets import Net
from semiprune_core.learning.optim import SCHEDULES
from semiprune_core.learning.predict import predict, write_features
from semiprune_core.learning.pretrained import Pretrained, weights_of
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.learning.trainer import Trainer, cut, fingerprint
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import BoolArray, FloatArray, IntArray, Trajectory
from semiprune_core.streams import Purpose

COLUMNS = ("target_prob", "margin", "correct", "el2n", "entropy")
REPORT_EVERY = 10


class Recorder(Protocol):
    """Where a trajectory goes, epoch by epoch; ``trajectory_store.TrajectoryWriter`` is one."""

    epochs_done: int

    def append(
        self,
        *,
        target_prob: FloatArray,
        margin: FloatArray,
        correct: BoolArray,
        el2n: FloatArray,
        entropy: FloatArray | None = None,
    ) -> None:
        """Add the next epoch's rows, (N,) each; ``entropy`` comes with the last epoch only."""

    def truncate(self, epochs: int) -> None:
        """Go back to the first ``epochs`` epochs."""


class MemoryRecorder:
    """Keeps a trajectory in memory."""

    def __init__(self) -> None:
        self.rows: list[dict[str, np.ndarray]] = []
        self.entropy: FloatArray | None = None

    @property
    def epochs_done(self) -> int:
        return len(self.rows)

    def append(self, *, entropy: FloatArray | None = None, **rows: np.ndarray) -> None:
        self.rows.append(rows)
        self.entropy = entropy

    def truncate(self, epochs: int) -> None:
        del self.rows[epochs:]

    def trajectory(self) -> Trajectory:
        columns = {name: np.stack([row[name] for row in self.rows]) for name in COLUMNS[:-1]}
        return Trajectory(**columns, last_entropy=self.entropy)


@dataclass(frozen=True, eq=False)
class SupervisedResult:
    """The trained ``net``, one ``history`` entry per epoch, and of M evaluation images, if any, the ``accuracy`` and
    the classes (M,) it answered."""

    net: Net
    history: list[dict[str, Any]]
    accuracy: quality.Share | None
    notes: tuple[str, ...]
    answers: IntArray | None = None


def train_supervised(
    images: np.ndarray,
    labels: IntArray,
    *,
    n_classes: int,
    settings: SupervisedSettings,
    seed: int,
    progress: Progress,
    device: torch.device | str = "cpu",
    folder: Path | None = None,
    record: Recorder | None = None,
    eval_images: np.ndarray | None = None,
    eval_labels: IntArray | None = None,
    eval_every: int = 0,
    world: World | None = None,
    features_path: Path | None = None,
    pretrained: Pretrained | None = None,
) -> SupervisedResult:
    """Train on ``images`` (N, H, W[, C]) uint8 with ``labels`` (N,), all in 0..n_classes-1.

    An epoch is cut into ``ceil(N / batch_size)`` batches of nearly equal length: nothing is dropped and none is tiny.
    ``record`` receives the epoch's rows; the forward pass behind them is the training one: augmented, in train mode.
    ``eval_every`` epochs (0: only at the end) the net is tested on the evaluation images. With a ``folder`` the run can
    be stopped and killed, and goes on from its last checkpoint when called again with the same arguments.
    The net begins from scratch, or with the weights of ``pretrained``, which is used up by it.
    ``features_path`` (the same on all processes) gets the trained net's penultimate layer of all images as they are.
    """
    labels = np.asarray(labels).astype(np.int64)
    _check(images, labels, n_classes, eval_images, eval_labels)
    run = SupervisedRun(
        Images(images, torch.device(device)),
        labels,
        n_classes=n_classes,
        settings=settings,
        seed=seed,
        progress=progress,
        folder=folder,
        record=record,
        world=world or World(),
        pretrained=pretrained,
    )
    if eval_images is not None and eval_labels is not None:
        run.set_test(eval_images, np.asarray(eval_labels), eval_every)
    result = run.train()
    if features_path is not None:
        write_features(
            Path(features_path),
            result.net,
            run.images,
            precision=run.trainer.precision,
            progress=progress,
            world=run.world,
        )
    return result


def _check(
    images: np.ndarray, labels: IntArray, n_classes: int, tests: np.ndarray | None, truth: IntArray | None
) -> None:
    check_range("n_classes", n_classes, low=2)
    if len(images) < 2 or len(images) != len(labels):
        raise InvalidDataError(
            f"Training needs at least 2 images with one label each; got {len(images)} and {len(labels)}."
        )
    illegal = np.flatnonzero((labels < 0) | (labels >= n_classes))
    if len(illegal):
        first = int(illegal[0])
        raise InvalidDataError(
            f"Every image needs a label in 0..{n_classes - 1}; {len(illegal)} have none, the first is image {first} "
            f"with {int(labels[first])}. Make pseudo-labels for the whole pool first."
        )
    if (tests is None) != (truth is None) or (tests is not None and truth is not None and len(tests) != len(truth)):
        raise InvalidDataError("Give evaluation images and labels together, one label per image.")


class SupervisedRun:
    """One net from its first step to its last."""

    def __init__(
        self,
        images: Images,
        labels: IntArray,
        *,
        n_classes: int,
        settings: SupervisedSettings,
        seed: int,
        progress: Progress,
        folder: Path | None,
        record: Recorder | None,
        world: World,
        pretrained: Pretrained | None = None,
    ) -> None:
        self.images, self.settings, self.seed, self.progress = images, settings, seed, progress
        self.record, self.world, self.n_classes = record, world, n_classes
        self.labels = torch.from_numpy(labels)
        self.trainer = Trainer(settings, images, n_classes=n_classes, seed=seed, world=world, pretrained=pretrained)
        self.has_fresh_head = pretrained is not None
        self.steps_per_epoch = -(-len(images) // settings.batch_size)
        self.pieces = cut(slice(0, len(images)), self.steps_per_epoch)
        self.n_steps = settings.epochs * self.steps_per_epoch
        self.rows = torch.zeros(len(COLUMNS) + 1, len(images))  # the last row is the loss
        self.step = 0
        self.history: list[dict[str, Any]] = []
        self.test: tuple[Images, IntArray, int] | None = None
        mark = fingerprint(settings, images, labels, seed=seed, **weights_of(pretrained))
        self.checkpoints = None if folder is None else Checkpoints(Path(folder), mark)

    def set_test(self, images: np.ndarray, labels: IntArray, every: int) -> None:
        tests = Images(images, self.images.device)
        tests.mean, tests.std = self.images.mean, self.images.std
        self.test = (tests, labels, every)

    def train(self) -> SupervisedResult:
        notes = self._resume()
        if notes and self.world.is_first:
            self.progress.report(self.step, self.n_steps, note=" ".join(notes))
        started, first = time.monotonic(), self.step
        while self.step < self.n_steps:
            if self.world.first_says(self.progress.should_stop(), self.images.device):
                self._save()
                raise Stopped(f"Stopped after {self.step} of {self.n_steps} steps.")
            loss = self.one_step()
            self.step += 1
            epoch, within = divmod(self.step, self.steps_per_epoch)
            facts: dict[str, Any] = {}
            if self.step % REPORT_EVERY == 0 or not within:
                speed = (self.step - first) * len(self.images) / self.steps_per_epoch
                speed /= max(time.monotonic() - started, 1e-9)
                facts = {"loss": float(loss), "lr": self._lr(self.step - 1), "images_per_s": round(speed, 1)}
            if not within:
                facts.update(self._end_epoch(epoch))
            if self.world.is_first:
                self.progress.report(self.step, self.n_steps, **facts)
            if not within or self.step % self.settings.checkpoint_every == 0:
                self._save()
        answers = self._answers() if self.test is not None else None
        accuracy = self._share_right(answers) if answers is not None else None
        return SupervisedResult(self.trainer.net, self.history, accuracy, tuple(notes), answers)

    def _lr(self, step: int) -> float:
        s = self.settings
        return s.lr_end + (s.lr - s.lr_end) * SCHEDULES[s.schedule](step / self.n_steps)

    def _batch(self) -> IntArray:
        """This step's images: one of the nearly equal pieces of this epoch's order."""
        epoch, place = divmod(self.step, self.steps_per_epoch)
        order = sampling.permutation(len(self.images), self.seed, Purpose.EPOCH, epoch)
        return order[self.pieces[place]].copy()

    def one_step(self) -> Tensor:
        idx = self._batch()
        rows = self.trainer.with_enough_memory(lambda: self._learn(idx), n_images=len(idx), most_parts=len(idx) // 2)
        self.trainer.update(self._lr(self.step))
        mine = cut(slice(0, len(idx)), self.world.size)[self.world.rank]
        self.rows[:, torch.from_numpy(idx[mine])] = rows.cpu()
        return rows[-1].mean()

    def _learn(self, idx: IntArray) -> Tensor:
        """Collect the gradients of the batch ``idx``; the columns (6, b) of this process's part of it."""
        s, n = self.settings, len(idx)
        rng = sampling.torch_rng(self.seed, Purpose.VIEWS, self.step)
        pad, resized = round(s.shift * self.images.size), s.crop == "resized"
        draw = augment.draw_weak(n, pad=pad, flip=s.flip, generator=rng, resized=resized)
        mine = cut(cut(slice(0, n), self.world.size)[self.world.rank], self.trainer.micro_batches)
        parts = []
        for number, part in enumerate(mine):
            inputs = self.images.normalise(augment.weak(self.images.take(idx[part]), draw.part(part)))
            labels = self.labels[torch.from_numpy(idx[part])].to(self.images.device)
            with self.trainer.part_of_step(last=number == len(mine) - 1):
                logits = self.trainer.shared(inputs)
            losses = F.cross_entropy(logits, labels, reduction="none")
            self.trainer.backward(losses.sum(), self.world.size / n)  # DDP averages over the processes
            parts.append(torch.stack([*columns(logits.detach(), labels).values(), losses.detach()]))
        return torch.cat(parts, dim=1)

    def _end_epoch(self, epoch: int) -> dict[str, Any]:
        rows = dict(zip((*COLUMNS, "loss"), self.world.add_up(self.rows).numpy()))
        entry: dict[str, Any] = {"epoch": epoch, "step": self.step, "lr": self._lr(self.step - 1)}
        entry["train_loss"] = round(float(rows["loss"].mean(dtype=np.float64)), 6)
        entry["train_accuracy"] = round(float(rows["correct"].mean(dtype=np.float64)), 6)
        if self.test is not None and self.test[2] and epoch % self.test[2] == 0:
            entry["test_accuracy"] = round(self._share_right(self._answers()).value, 6)
        self.history.append(entry)
        if self.record is not None and self.world.is_first:
            self._record(rows, epoch)
        self.rows.zero_()
        return entry

    def _record(self, rows: Mapping[str, np.ndarray], epoch: int) -> None:
        assert self.record is not None
        self.record.append(
            target_prob=rows["target_prob"].copy(),
            margin=rows["margin"].copy(),
            correct=rows["correct"].astype(bool),
            el2n=rows["el2n"].copy(),
            entropy=rows["entropy"].copy() if epoch == self.settings.epochs else None,
        )

    def _answers(self) -> IntArray:
        """(M,) the classes that the net as it is gives the evaluation images."""
        assert self.test is not None
        images, precision = self.test[0], self.trainer.precision
        return predict(self.trainer.net, images, precision=precision, world=self.world).labels

    def _share_right(self, answers: IntArray) -> quality.Share:
        assert self.test is not None
        labels = self.test[1]
        return quality.wilson(int((answers == labels).sum()), len(labels))

    def _save(self) -> None:
        if self.checkpoints is not None:
            rows = self.world.add_up(self.rows)
            if self.world.is_first:
                tensors = {**self.trainer.tensors(), **with_prefix("record", {"rows": rows})}
                facts = {**self.trainer.facts(), "history": self.history}
                self.checkpoints.save(self.step, tensors, facts)
        self.world.wait()

    def _resume(self) -> list[str]:
        saved = None if self.checkpoints is None else self.checkpoints.load()
        epochs = 0 if saved is None else saved.step // self.steps_per_epoch
        if self.record is not None and self.world.is_first:
            if self.record.epochs_done < epochs:
                raise InvalidDataError(
                    f"The checkpoint is at epoch {epochs}, but the recorded trajectory ends after "
                    f"{self.record.epochs_done}. Start the run in a new folder."
                )
            self.record.truncate(epochs)
        if saved is None and self.has_fresh_head:
            self.trainer.begin_head(self.images, np.arange(len(self.images)), self.labels.numpy())
        if saved is None or self.checkpoints is None:
            return [] if self.checkpoints is None else list(self.checkpoints.notes)
        self.trainer.restore(saved)
        if self.world.is_first:  # the saved rows are those of all processes; they are added up again
            self.rows.copy_(without_prefix("record", saved.tensors)["rows"])
        self.step, self.history = saved.step, list(saved.facts["history"])
        return [*self.checkpoints.notes, f"Resuming from step {saved.step}."]


def columns(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """The trajectory's facts (B,) for logits (B, C) and labels (B,), in the order of COLUMNS."""
    log_probs = logits.float().log_softmax(-1)
    probs = log_probs.exp()
    target = probs.gather(1, labels[:, None])[:, 0]
    hot = F.one_hot(labels, probs.shape[-1])
    other = (probs - 2 * hot).amax(-1)  # the label's own probability is pushed below zero
    return {
        "target_prob": target,
        "margin": target - other,
        "correct": (target > other).float(),
        "el2n": (probs - hot).norm(dim=-1),
        "entropy": -(probs * log_probs).sum(-1),
    }
