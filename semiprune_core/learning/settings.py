"""Settings and presets of the two kinds of training. Nothing here loads torch.

An SSL *epoch* is ``steps_per_epoch`` optimizer steps (the USB code's convention, 1,024 in the paper's presets), or one
pass over the pool where that is 0 (docs/paper.md); a supervised epoch is exactly one pass over the images.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from semiprune_core.checks import check_choice, check_range
from semiprune_core.learning.ssl import ALGORITHMS, Algorithm
from semiprune_core.records import coreset_size
from semiprune_core.settings import Settings

PRECISIONS = ("auto", "fp32", "bf16", "fp16")
CROPS = ("shift", "resized")
LATER = {"halve": True, "crop": "shift", "lr_end": 0.0}
"""Settings that came later, and what was done before: left out where they are so, as results are found by a hash."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Settings):
    """What both kinds of training share."""

    net: str = "compact"
    epochs: int = 10
    batch_size: int = 64
    lr: float = 0.03
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    decay_norms: bool = False
    """Apply weight decay to biases and normalisation weights too."""
    clip_norm: float = 0.0
    """Largest gradient norm; 0 turns clipping off."""
    flip: bool = True
    """Left-right flips; turn off for digits, signs and other images where left and right matter."""
    shift: float = 0.125
    """Largest shift of the random crop, as a fraction of the side."""
    crop: str = "shift"
    """shift: a shifted crop; resized: a random part of the image, enlarged, as for ImageNet (here for strong views)."""
    precision: str = "auto"
    """auto: fp16 or bf16 where the device is faster with it, else fp32."""
    checkpoint_every: int = 200
    """Steps between checkpoints; one is also written at the end and when the run is stopped."""

    def check(self) -> None:
        check_range("epochs", self.epochs, low=1)
        check_range("batch_size", self.batch_size, low=2)
        check_range("lr", self.lr, low=0, low_open=True)
        check_range("momentum", self.momentum, low=0, high=1, high_open=True)
        check_range("weight_decay", self.weight_decay, low=0)
        check_range("clip_norm", self.clip_norm, low=0)
        check_range("shift", self.shift, low=0, high=0.5)
        check_choice("crop", self.crop, CROPS)
        check_choice("precision", self.precision, PRECISIONS)
        check_range("checkpoint_every", self.checkpoint_every, low=1)

    def to_json(self) -> dict[str, Any]:
        """Without what came later and is as it was before."""
        return {name: value for name, value in super().to_json().items() if LATER.get(name, ...) != value}


@dataclass(frozen=True, kw_only=True)
class SSLSettings(TrainingSettings):
    """A semi-supervised run."""

    algorithm: str = "fixmatch"
    options: dict[str, Any] = field(default_factory=dict)
    """The algorithm's own settings, such as ``{"threshold": 0.95}``."""
    steps_per_epoch: int = 1024
    """Optimizer steps between two measurements; 0: as many as one pass over the unlabeled images takes."""
    unlabeled_ratio: int = 7
    """Unlabeled images per labeled image in a batch (mu)."""
    ema_decay: float = 0.999
    warm_up: float = 0.0
    """Fraction of the run that learns from labels alone before unlabeled images join."""
    n_ops: int = 2
    """Augmentation operations per strong view."""
    strength: float = 1.0
    """Strength of the strong views; 1 is the published range."""
    cutout: float = 0.5
    """Largest side of the cutout square, as a fraction of the image's."""
    distribution_alignment: str = "none"
    """Pull the mean prediction towards the class shares of labels drawn at random, or towards uniform ones."""
    held_out: float = 0.10
    """Fraction of the human labels held out of training to measure the pseudo-labels (at least 50 if possible)."""
    refit: bool = False
    """Train again on all labels for the final pseudo-labels; the quality reported is that of the first run."""
    cross_fit: int = 0
    """With k > 1, k runs each hold out a different k-th of the labels, so quality is measured on every label."""

    def check(self) -> None:
        super().check()
        check_choice("algorithm", self.algorithm, tuple(ALGORITHMS))
        self.make_algorithm()
        check_range("steps_per_epoch", self.steps_per_epoch, low=0)
        check_range("unlabeled_ratio", self.unlabeled_ratio, low=1)
        check_range("ema_decay", self.ema_decay, low=0, high=1, high_open=True)
        check_range("warm_up", self.warm_up, low=0, high=1, high_open=True)
        check_range("n_ops", self.n_ops, low=0, high=10)
        check_range("strength", self.strength, low=0, high=1)
        check_range("cutout", self.cutout, low=0, high=1)
        check_choice("distribution_alignment", self.distribution_alignment, ("none", "labels", "uniform"))
        check_range("held_out", self.held_out, low=0, high=0.5)
        check_range("cross_fit", self.cross_fit, low=0, high=20)

    def make_algorithm(self) -> Algorithm:
        return ALGORITHMS[self.algorithm].from_json(self.options)

    def on_pool(self, n_images: int) -> SSLSettings:
        """The settings with the length that an epoch has on a pool of ``n_images``.

        >>> SSLSettings(batch_size=64, unlabeled_ratio=7, steps_per_epoch=0).on_pool(50_000).steps_per_epoch
        112
        """
        one_pass = -(-n_images // (self.batch_size * self.unlabeled_ratio))
        return self if self.steps_per_epoch else self.replace(steps_per_epoch=max(1, one_pass))

    @property
    def n_steps(self) -> int:
        """The length of the run, of settings :meth:`on_pool`."""
        return self.epochs * self.steps_per_epoch


@dataclass(frozen=True, kw_only=True)
class SupervisedSettings(TrainingSettings):
    """A supervised run over all images, such as the one that records the trajectory."""

    epochs: int = 30
    batch_size: int = 128
    lr: float = 0.1
    lr_end: float = 0.0
    """Learning rate that the cosine ends at."""
    schedule: str = "cosine"
    nesterov: bool = False
    decay_norms: bool = True
    stretch: float = 1.0
    """A coreset with a share s of the pool is trained for 1/s times the epochs, but at most this many times."""
    halve: bool = True
    """Whether the batch is halved for coresets from ratio 0.8 on, and again from 0.9 on."""

    def check(self) -> None:
        super().check()
        check_choice("schedule", self.schedule, ("cosine", "step"))
        check_range("stretch", self.stretch, low=1)
        check_range("lr_end", self.lr_end, low=0, high=self.lr)

    def for_coreset(self, pruning_ratio: float) -> SupervisedSettings:
        """The settings for a coreset: the batch is halved from ratio 0.8 on and again from 0.9 on (the paper's
        appendix, for all data sets but ImageNet-1K), and a short schedule is stretched.

        >>> settings = SupervisedSettings(epochs=30, stretch=3)
        >>> [(one.batch_size, one.epochs) for one in map(settings.for_coreset, (0, 0.5, 0.8, 0.9))]
        [(128, 30), (128, 60), (64, 90), (32, 90)]
        """
        check_range("pruning_ratio", pruning_ratio, low=0, high=1, high_open=True)
        halved = self.halve * ((pruning_ratio >= 0.8) + (pruning_ratio >= 0.9))
        longer = min(self.stretch, 1 / (1 - pruning_ratio))
        return self.replace(batch_size=max(2, self.batch_size >> halved), epochs=round(longer * self.epochs))

    def images_seen(self, n_images: int, pruning_ratio: float) -> int:
        """How many images a training on a coreset of a pool of ``n_images`` sees, every epoch counted."""
        return coreset_size(n_images, pruning_ratio) * self.for_coreset(pruning_ratio).epochs

    def epochs_at(self, pruning_ratios: Iterable[float]) -> str:
        """How long trainings at these ratios are, for people.

        >>> SupervisedSettings(epochs=30, stretch=3).epochs_at((0.5, 0.9))
        '60 to 90'
        """
        lengths = sorted({self.for_coreset(ratio).epochs for ratio in pruning_ratios} or {self.epochs})
        return " to ".join(f"{length:,}" for length in dict.fromkeys((lengths[0], lengths[-1])))
