"""Semi-supervised training: from a pool with some labels to a label for every image, with an honest number for it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from semiprune_core import files, streams
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning import augment, quality, sampling
from semiprune_core.learning.alignment import align, begin_alignment
from semiprune_core.learning.checkpoints import Checkpoint, Checkpoints, with_prefix, without_prefix
from semiprune_core.learning.distributed import World
from semiprune_core.learning.images import Images
from semiprune_core.learning.labels import check_labels
from semiprune_core.learning.nets import Net
from semiprune_core.learning.optim import MovingAverage, fixmatch_cosine
from semiprune_core.learning.predict import SETTLE_IMAGES, Predictions, predict, settle_norms
from semiprune_core.learning.pretrained import Pretrained, weights_of
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.shares import FEWEST, drawn_counts, image_weights
from semiprune_core.learning.ssl.base import Algorithm, Targets
from semiprune_core.learning.ssl.supervised import Supervised
from semiprune_core.learning.trainer import Trainer, fingerprint
from semiprune_core.progress import InnerProgress, Progress, Stopped
from semiprune_core.records import UNLABELED, BoolArray, ClassProbs, FloatArray, IntArray, PseudoLabels
from semiprune_core.streams import Purpose

FEATURES = "features.npy"
REPORT_EVERY = 10
"""Steps between reports that carry the loss (reading it waits for the device)."""
UNKNOWN_SHARES = (
    f"Fewer than {FEWEST} labels were drawn at random, so how common each class is is not known: predictions are not "
    "aligned with class shares."
)
CHECKED = 2000
"""Reference labels looked at while training; all of them are left to the caller afterwards."""


@dataclass(frozen=True, eq=False)
class SSLResult:
    """``labels`` (N,): a person's where there is one, else the model's; ``predicted`` (N,) the model's for all.

    ``confidence`` (N,) of the model and its ``margin`` (N,) over the second class, ``probs`` of all classes,
    ``features`` (N, D) float16 of the EMA net's penultimate layer, ``held_out_mask`` (N,) human labels kept out of
    training, ``held_out_answers`` (N,) what nets that never saw them say of these (-1 elsewhere), ``history`` one
    entry per epoch.
    """

    labels: IntArray
    predicted: IntArray
    confidence: FloatArray
    margin: FloatArray
    probs: ClassProbs
    human_mask: BoolArray
    held_out_mask: BoolArray
    held_out_answers: IntArray
    held_out_confidence: FloatArray
    features: np.ndarray
    quality: quality.Quality | None
    history: list[dict[str, Any]]
    notes: tuple[str, ...]
    net: Net

    def pseudo_labels(self, class_names: Sequence[str]) -> PseudoLabels:
        """The record for the next step; human labels have confidence 1."""
        confidence = np.where(self.human_mask, 1.0, self.confidence).astype(np.float32)
        return PseudoLabels(self.labels, confidence, self.human_mask, tuple(class_names))


def train_ssl(
    images: np.ndarray,
    labels: IntArray,
    *,
    class_names: Sequence[str],
    settings: SSLSettings,
    seed: int,
    progress: Progress,
    device: torch.device | str = "cpu",
    folder: Path | None = None,
    reference: IntArray | None = None,
    measurable_mask: BoolArray | None = None,
    world: World | None = None,
    pretrained: Callable[[], Pretrained] | None = None,
) -> SSLResult:
    """Train on ``images`` (N, H, W[, C]) uint8 with human ``labels`` (N,), -1 where there is none.

    With a ``folder`` the run leaves checkpoints there, goes on from them when it is called again with the same
    arguments, and writes the features to ``features.npy``. ``reference`` (N,), -1 for unknown, is only ever compared
    with. ``measurable_mask`` (N,) says which labels were drawn uniformly (all where None): only they may be held out to
    measure, and only they say how common a class is. ``pretrained`` opens an encoder anew for every net, which then
    begins with its weights instead of fresh ones. Raises :class:`Stopped` after a checkpoint when ``progress`` asks for
    it.
    """
    labels = np.asarray(labels)
    check_labels(labels, len(images), class_names)
    pixels = Images(images, torch.device(device))
    human = np.flatnonzero(labels >= 0)
    measurable = None if measurable_mask is None else np.flatnonzero(np.asarray(measurable_mask)[human])
    rounds = _rounds(labels[human], settings, seed, measurable)
    settings = settings.on_pool(len(images))
    n_steps = settings.n_steps
    finished: list[_Round] = []
    for number, (train, held) in enumerate(rounds):
        run = SSLRun(
            pixels,
            labels,
            human[train],
            human[held],
            n_classes=len(class_names),
            settings=settings,
            seed=streams.derived(seed, Purpose.SSL_RUN, number),
            progress=_Shifted(progress, number * n_steps, len(rounds) * n_steps, number, len(rounds)),
            folder=None if folder is None else Path(folder) / f"round-{number}",
            reference=reference,
            world=world or World(),
            pretrained=None if pretrained is None else pretrained(),
            uniform_mask=measurable_mask,
        )
        finished.append(run.train())
    return _conclude(finished, pixels, labels, len(class_names), settings, folder, world or World())


def _rounds(
    labels: IntArray, settings: SSLSettings, seed: int, measurable: IntArray | None = None
) -> list[tuple[IntArray, IntArray]]:
    """(train, held out) positions among the human labels, one pair for each net to train."""
    rng = streams.rng(seed, Purpose.SPLIT)
    if settings.cross_fit > 1:
        n_usable = len(labels) if measurable is None else len(measurable)
        if n_usable < 2 * settings.cross_fit:
            raise InvalidDataError(
                f"Cross-fitting in {settings.cross_fit} parts needs at least {2 * settings.cross_fit} labels, "
                f"but there are {n_usable}. Label more, or turn it off."
            )
        return quality.split_folds(labels, settings.cross_fit, rng, measurable)
    first = quality.split_held_out(labels, settings.held_out, rng, measurable)
    everything = (np.arange(len(labels)), np.arange(0))
    return [first, everything] if settings.refit and len(first[1]) else [first]


@dataclass(frozen=True, eq=False)
class _Round:
    """One trained net and what it says."""

    net: Net
    held: IntArray
    on_held: Predictions
    history: list[dict[str, Any]]
    notes: list[str]
    precision: str


@dataclass(frozen=True)
class _Shifted(InnerProgress):
    """Progress of one round within all of them."""

    before: int
    total: int
    number: int
    rounds: int

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        if self.rounds > 1:
            facts["round"], facts["rounds"] = self.number + 1, self.rounds
        self.whole.report(self.before + done, self.total, **facts)


class SSLRun:
    """One net from its first step to its last."""

    def __init__(
        self,
        images: Images,
        labels: IntArray,
        train: IntArray,
        held: IntArray,
        *,
        n_classes: int,
        settings: SSLSettings,
        seed: int,
        progress: Progress,
        folder: Path | None,
        reference: IntArray | None,
        world: World,
        pretrained: Pretrained | None = None,
        uniform_mask: BoolArray | None = None,
    ) -> None:
        self.images, self.labels, self.train_idx, self.held = images, labels, train, held
        self.settings, self.seed, self.progress, self.world = settings, seed, progress, world
        self.n_classes = n_classes
        self.algorithm = settings.make_algorithm()
        self.trainer = Trainer(settings, images, n_classes=n_classes, seed=seed, world=world, pretrained=pretrained)
        self.has_fresh_head = pretrained is not None
        self.average = MovingAverage(self.trainer.net, settings.ema_decay)
        uniform = None if uniform_mask is None else np.asarray(uniform_mask)[train]
        self.drawn = drawn_counts(labels[train], uniform, n_classes)
        self.order = sampling.LabeledOrder(labels[train], self.drawn, seed)
        train_labels = torch.from_numpy(labels[train].astype(np.int64)).to(images.device)
        drawn = None if self.drawn is None else torch.from_numpy(self.drawn)
        like = torch.zeros(n_classes, device=images.device)
        self.state = {
            **self.algorithm.begin(train_labels, len(images), n_classes),
            **begin_alignment(settings.distribution_alignment, drawn, like),
        }
        self.step = 0
        self.history: list[dict[str, Any]] = []
        self.sums: dict[str, Tensor] = {}
        self.counts = np.zeros(n_classes, dtype=np.int64)
        self.reference_idx, self.reference = self._reference_sample(reference)
        learned = np.where(np.isin(np.arange(len(labels)), train), labels, -1)
        mark = fingerprint(settings, images, learned, seed=seed, drawn=self._drawn(), **weights_of(pretrained))
        self.checkpoints = None if folder is None else Checkpoints(folder, mark)

    def _drawn(self) -> list[float] | None:
        return None if self.drawn is None else self.drawn.tolist()

    def _reference_sample(self, reference: IntArray | None) -> tuple[IntArray, IntArray]:
        if reference is None:
            return np.arange(0), np.arange(0)
        rest = np.flatnonzero((np.asarray(reference) >= 0) & (self.labels == UNLABELED))
        chosen = np.sort(streams.rng(self.seed, Purpose.CHECK).permutation(rest)[:CHECKED])
        return chosen, np.asarray(reference)[chosen]

    def train(self) -> _Round:
        notes = [*self._what_is_unknown(), *self._resume()]
        total, epoch = self.settings.n_steps, self.settings.steps_per_epoch
        if notes and self.world.is_first:
            self.progress.report(self.step, total, note=" ".join(notes))
        started, n_seen = time.monotonic(), 0
        while self.step < total:
            if self.world.first_says(self.progress.should_stop(), self.images.device):
                self._save()
                raise Stopped(f"Stopped after {self.step} of {total} steps.")
            n_seen += self.images_in(self.step)
            recent = self.one_step()
            self.step += 1
            at_epoch = self.step % epoch == 0
            facts: dict[str, Any] = {}
            if self.step % REPORT_EVERY == 0 or at_epoch:
                speed = n_seen / max(time.monotonic() - started, 1e-9)
                facts = {name: float(value) for name, value in recent.items()}
                facts.update(lr=self._lr(self.step - 1), epoch=self.step // epoch, images_per_s=round(speed, 1))
            if at_epoch:
                facts.update(self._end_epoch())
            if self.world.is_first:
                self.progress.report(self.step, total, **facts)
            if self.step % self.settings.checkpoint_every == 0 or self.step == total:
                self._save()
        self._settle()
        answers = predict(self.average.net, self.images, self.held, precision=self.trainer.precision, world=self.world)
        return _Round(self.average.net, self.held, answers, self.history, notes, self.trainer.precision)

    def _what_is_unknown(self) -> list[str]:
        is_asked = self.settings.distribution_alignment == "labels"
        return [UNKNOWN_SHARES] if is_asked and self.drawn is None else []

    def _settle(self) -> None:
        """Fit the averaged net's normalisation to the images as they are, always the same ones."""
        order = sampling.permutation(len(self.images), self.seed, Purpose.SETTLE, 0)
        some = np.sort(order[:SETTLE_IMAGES])
        settle_norms(self.average.net, self.images, some, precision=self.trainer.precision)

    def _algorithm_at(self, step: int) -> Algorithm:
        """The warm-up learns from labels alone."""
        return Supervised() if step < self.settings.warm_up * self.settings.n_steps else self.algorithm

    def images_in(self, step: int) -> int:
        """Labeled and unlabeled images of a step, each counted once."""
        ratio = self.settings.unlabeled_ratio if self._algorithm_at(step).view else 0
        return self.settings.batch_size * (1 + ratio)

    def _lr(self, step: int) -> float:
        return self.settings.lr * fixmatch_cosine(step / self.settings.n_steps)

    def one_step(self) -> dict[str, Tensor]:
        log, state, counts = self.trainer.with_enough_memory(
            self._learn, n_images=self.images_in(self.step), most_parts=self.settings.batch_size // 2
        )
        self.state = state
        self.trainer.update(self._lr(self.step))
        self.average.update(self.trainer.net)
        for name, value in log.items():
            self.sums[name] = value + self.sums[name] if name in self.sums else value
        self.counts += counts
        return log

    def _learn(self) -> tuple[dict[str, Tensor], dict[str, Tensor], IntArray]:
        """Collect the gradients of one step; returns what to log, the algorithm's next state and target counts."""
        s, algorithm = self.settings, self._algorithm_at(self.step)
        rng = sampling.torch_rng(self.seed, Purpose.VIEWS, self.step)
        pad = round(s.shift * self.images.size)
        labeled_draw = augment.draw_weak(s.batch_size, pad=pad, flip=s.flip, generator=rng)
        labeled_idx = self.train_idx[self.order.take(self.step * s.batch_size, s.batch_size)]
        labels = torch.from_numpy(self.labels[labeled_idx].astype(np.int64)).to(self.images.device)
        targets, state, views = None, self.state, None
        if algorithm.view is not None:
            targets, state, views = self._targets(pad, rng)
        parts = self.trainer.parts(s.batch_size)
        log: dict[str, Tensor] = {}
        for number, mine in enumerate(parts):
            weight = (mine.stop - mine.start) * self.world.size / s.batch_size
            pixels = self.images.take(labeled_idx[mine])
            inputs = self.images.normalise(augment.weak(pixels, labeled_draw.part(mine)))
            n_labeled = len(inputs)
            if views is not None:
                inputs = torch.cat([inputs, views[number]])
            with self.trainer.part_of_step(last=number == len(parts) - 1):
                logits = self.trainer.shared(inputs)
            part = None if targets is None else targets.part(self._unlabeled(mine))
            step = algorithm.step(logits[:n_labeled], labels[mine], logits[n_labeled:], part)
            self.trainer.backward(step.loss, weight)
            for name, value in {"loss": step.loss.detach(), **step.log}.items():
                log[name] = log.get(name, torch.zeros_like(value)) + value * weight
        counts = np.zeros(self.n_classes, dtype=np.int64)
        if targets is not None:
            sure = targets.labels[targets.weights > 0]
            counts = sure.bincount(minlength=self.n_classes).cpu().numpy()
        return log, state, counts

    def _targets(self, pad: int, rng: torch.Generator) -> tuple[Targets, dict[str, Tensor], list[Tensor]]:
        """Targets for the whole unlabeled batch, the next state, and the views of this process's parts to learn on."""
        s = self.settings
        n = s.batch_size * s.unlabeled_ratio
        idx = sampling.stream(len(self.images), self.step * n, n, seed=self.seed, purpose=Purpose.POOL)
        weak_draw = augment.draw_weak(n, pad=pad, flip=s.flip, generator=rng)
        strong_draw = augment.draw_strong(
            n,
            pad=pad,
            flip=s.flip,
            n_ops=s.n_ops,
            strength=s.strength,
            generator=rng,
            resized=s.crop == "resized",
        )
        probs, views = [], []
        for labeled in self.trainer.parts(s.batch_size):
            mine = self._unlabeled(labeled)
            pixels = self.images.take(idx[mine])
            weak = self.images.normalise(augment.weak(pixels, weak_draw.part(mine)))
            with torch.no_grad(), self.trainer.autocast():
                probs.append(self.trainer.net(weak).float().softmax(-1))
            if self.algorithm.view == "weak":
                views.append(weak)
            else:
                strong = augment.strong(pixels, strong_draw.part(mine), cutout=s.cutout, fill=self.images.mean)
                views.append(self.images.normalise(strong))
        everyone = self.world.gather(torch.cat(probs))
        aligned, align_state = align(everyone, {k: v for k, v in self.state.items() if k.startswith("align_")})
        own = {k: v for k, v in self.state.items() if not k.startswith("align_")}
        where = torch.from_numpy(idx).to(self.images.device)
        targets, own = self.algorithm.targets(aligned, where, own, done=self.step / s.n_steps)
        return targets, {**own, **align_state}, views

    def _unlabeled(self, labeled: slice) -> slice:
        """The part of the unlabeled batch that goes with a part of the labeled one."""
        ratio = self.settings.unlabeled_ratio
        return slice(labeled.start * ratio, labeled.stop * ratio)

    def _end_epoch(self) -> dict[str, Any]:
        """Look at the averaged net after an epoch; the entry for the history, which is also reported."""
        epoch = self.settings.steps_per_epoch
        entry: dict[str, Any] = {"epoch": self.step // epoch, "step": self.step}
        entry.update({name: round(float(value) / epoch, 6) for name, value in self.sums.items()})
        entry["lr"] = self._lr(self.step - 1)
        n_unlabeled = self.settings.batch_size * self.settings.unlabeled_ratio if self.algorithm.view else 0
        steps = self.step - min(self.step, math.ceil(self.settings.warm_up * self.settings.n_steps))
        entry["pool_passes"] = round(steps * n_unlabeled / len(self.images), 3)
        entry["class_counts"] = self.counts.tolist()
        self._settle()
        truth = {"held_out": (self.held, self.labels[self.held]), "reference": (self.reference_idx, self.reference)}
        for name, (idx, true_labels) in truth.items():
            if len(idx):
                answer = predict(self.average.net, self.images, idx, precision=self.trainer.precision, world=self.world)
                share = quality.wilson(int((answer.labels == true_labels).sum()), len(true_labels))
                entry[f"{name}_accuracy"] = round(share.value, 6)
                entry[f"{name}_interval"] = [round(share.low, 6), round(share.high, 6)]
        self.sums, self.counts = {}, np.zeros_like(self.counts)
        self.history.append(entry)
        return entry

    def _save(self) -> None:
        if self.checkpoints is not None and self.world.is_first:
            tensors = {
                **self.trainer.tensors(),
                **with_prefix("average", self.average.net.state_dict()),
                **with_prefix("state", self.state),
            }
            facts = {
                **self.trainer.facts(),
                "history": self.history,
                "sums": {name: float(value) for name, value in self.sums.items()},
                "counts": self.counts.tolist(),
            }
            self.checkpoints.save(self.step, tensors, facts)
        self.world.wait()

    def _resume(self) -> list[str]:
        saved: Checkpoint | None = None
        if self.checkpoints is not None:
            saved = self.checkpoints.load()
        if saved is None:
            if self.has_fresh_head:
                mine = self.labels[self.train_idx]
                self.trainer.begin_head(self.images, self.train_idx, mine, image_weights(mine, self.drawn))
                self.average.net.load_state_dict(self.trainer.net.state_dict())
            return list(self.checkpoints.notes) if self.checkpoints else []
        self.trainer.restore(saved)
        self.average.net.load_state_dict(without_prefix("average", saved.tensors))
        state = without_prefix("state", saved.tensors)
        self.state = {name: tensor.to(self.images.device) for name, tensor in state.items()}
        self.step, self.history = saved.step, list(saved.facts["history"])
        self.sums = {
            name: torch.tensor(value, device=self.images.device) for name, value in saved.facts["sums"].items()
        }
        self.counts = np.array(saved.facts["counts"], dtype=np.int64)
        assert self.checkpoints is not None
        return [*self.checkpoints.notes, f"Resuming from step {saved.step}."]


def _conclude(
    rounds: list[_Round],
    images: Images,
    labels: IntArray,
    n_classes: int,
    settings: SSLSettings,
    folder: Path | None,
    world: World,
) -> SSLResult:
    """Label every image: by the last net, or by the mean of all nets when they were cross-fitted."""
    last = rounds[-1]
    features, publish = _room_for_features((len(images), last.net.n_features), folder if world.is_first else None)
    nets = rounds if settings.cross_fit > 1 else [last]
    kept = ClassProbs.room(len(images), n_classes)
    answers = predict(
        last.net,
        images,
        precision=last.precision,
        world=world,
        keep_probs=len(nets) > 1,
        features_out=features,
        probs_out=kept if len(nets) == 1 else None,
    )
    if len(nets) > 1:
        assert answers.probs is not None
        total = answers.probs.astype(np.float64)
        for other in nets[:-1]:
            more = predict(other.net, images, precision=other.precision, world=world, keep_probs=True)
            assert more.probs is not None
            total += more.probs
        mean = (total / len(nets)).astype(np.float32)
        kept.put(slice(None), mean)
        two = np.partition(mean, -2, axis=1)[:, -2:]
        answers = Predictions(mean.argmax(1), mean.max(1), two[:, 1] - two[:, 0])
    features = publish()
    measured = rounds if settings.cross_fit > 1 else rounds[:1]
    held = np.concatenate([trained.held for trained in measured])
    on_held = np.concatenate([trained.on_held.labels for trained in measured])
    measured_quality = quality.measure(
        on_held,
        labels[held],
        np.concatenate([trained.on_held.confidence for trained in measured]),
        n_classes=n_classes,
        measured_on=_in_words(settings, len(held), refitted=len(rounds) > 1),
    )
    human_mask = labels >= 0
    held_mask = np.zeros(len(labels), dtype=bool)
    held_mask[held] = True
    held_answers = np.full(len(labels), UNLABELED)
    held_answers[held] = on_held
    held_confidence = np.zeros(len(labels), dtype=np.float32)
    held_confidence[held] = np.concatenate([trained.on_held.confidence for trained in measured])
    return SSLResult(
        labels=np.where(human_mask, labels, answers.labels).astype(np.int64),
        predicted=answers.labels,
        confidence=answers.confidence,
        margin=answers.margin,
        probs=kept,
        human_mask=human_mask,
        held_out_mask=held_mask,
        held_out_answers=held_answers,
        held_out_confidence=held_confidence,
        features=features,
        quality=measured_quality,
        history=[{**entry, "round": number + 1} for number, trained in enumerate(rounds) for entry in trained.history],
        notes=tuple(note for trained in rounds for note in trained.notes),
        net=last.net,
    )


def _room_for_features(shape: tuple[int, int], folder: Path | None) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
    """An array (N, D) to fill, and what to call when it is full: with a folder it then is ``features.npy``, whole."""
    if folder is None:
        array = np.empty(shape, np.float16)
        return array, lambda: array
    path = Path(folder) / FEATURES
    aside = path.with_name(f".{FEATURES}.part")
    with files.named_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        mapped = np.lib.format.open_memmap(aside, mode="w+", dtype=np.float16, shape=shape)

    def publish() -> np.ndarray:
        with files.named_disk_errors(path):
            mapped.flush()
            os.replace(aside, path)
        return np.load(path, mmap_mode="r", allow_pickle=False)

    return mapped, publish


def _in_words(settings: SSLSettings, n_held: int, *, refitted: bool) -> str:
    if settings.cross_fit > 1:
        return (
            f"{n_held} human labels, each held out from one of {settings.cross_fit} models; "
            "the pseudo-labels are the mean of these models and tend to be a little better."
        )
    return quality.on_held_out(n_held, refitted=refitted)
