"""What the steps give: the house's records with what a notebook wants of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from semiprune_core import records
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.quality import Quality, Share
from semiprune_core.library.arrays import Images
from semiprune_core.library.features import SHOWN, Features
from semiprune_core.library.showing import gallery, histograms
from semiprune_core.records import Evidence, FloatArray, IntArray, Trajectory
from semiprune_core.results.pseudo import FROZEN, SCRATCH
from semiprune_core.scores import ScoreSettings, ScoreTable
from semiprune_core.selection import Basis

if TYPE_CHECKING:
    from torch.utils.data import Dataset, Subset


@dataclass(frozen=True, eq=False)
class PseudoLabels(records.PseudoLabels):
    """A label for each of N images, the person's where there is one, and how far the others can be trusted.

    ``labels`` (N,) class numbers, ``confidence`` (N,) (1 for a person's), ``human_mask`` (N,), ``class_names``;
    ``predicted`` (N,) the model's own answers; ``quality`` what is known of its accuracy from labels that it did not
    see, None where too few were drawn at random.
    """

    predicted: IntArray = field(repr=False)
    quality: Quality | None = None
    start: str = FROZEN
    notes: tuple[str, ...] = ()
    features: Features | None = field(default=None, repr=False)
    images: Images | None = field(default=None, repr=False)

    @property
    def accuracy(self) -> Share | None:
        """``value`` with its 95% interval ``low`` to ``high``, from ``n`` held-out labels; None where nobody knows."""
        return None if self.quality is None else self.quality.accuracy

    @property
    def names(self) -> np.ndarray:
        """(N,) the labels as texts."""
        return np.array(self.class_names, dtype=object)[self.labels]

    @property
    def duplicate_of(self) -> IntArray:
        """(N,) position of the first image with the same pixels."""
        if self.images is not None:
            return self.images.duplicate_of
        return np.arange(len(self), dtype=np.int64)

    def frame(self) -> pd.DataFrame:
        columns = {"label": self.names, "confidence": self.confidence, "human": self.human_mask}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        known = "accuracy not known: too few labels were drawn at random"
        if (share := self.accuracy) is not None:
            known = f"accuracy {share.value:.1%}, 95% interval {share.low:.1%} to {share.high:.1%}, n = {share.n}"
        n_human = int(self.human_mask.sum())
        return f"PseudoLabels({len(self):,} images, {n_human:,} labeled by people, {known})"

    def _repr_html_(self) -> str:
        if self.images is None:
            return gallery(repr(self), [])
        doubtful = np.argsort(self.confidence, kind="stable")[:SHOWN]
        shown = [(self.images[at], f"{self.names[at]} {self.confidence[at]:.0%}") for at in doubtful.tolist()]
        return gallery(repr(self), shown)


@dataclass(frozen=True, eq=False)
class TrainingDynamics:
    """How a model learned each image from its label: ``trajectory`` holds (T, N) columns, one row per epoch."""

    trajectory: Trajectory = field(repr=False)
    labels: PseudoLabels | None = field(default=None, repr=False)
    start: str = SCRATCH
    history: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def n_epochs(self) -> int:
        return self.trajectory.n_epochs

    def __repr__(self) -> str:
        return f"TrainingDynamics({self.n_epochs} epochs, {self.trajectory.n_images:,} images)"


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of N images by name, each (N,); what they were computed from stands beside them."""

    table: ScoreTable = field(repr=False)
    n_epochs: int | None = None
    start: str = SCRATCH
    labels: PseudoLabels | None = field(default=None, repr=False)
    trajectory: Trajectory | None = field(default=None, repr=False)

    @classmethod
    def of(cls, columns: Mapping[str, Any], labels: PseudoLabels | None = None) -> Self:
        """Scores that were computed elsewhere, by name: ``Scores.of({"aum": aum})``."""
        arrays = {str(name): np.asarray(values, dtype=np.float64) for name, values in columns.items()}
        lengths = {len(values) for values in arrays.values()}
        if len(lengths) != 1:
            raise InvalidDataError(
                f"Scores are arrays (N,) of one length by name, such as {{'aum': aum}}; got {lengths}."
            )
        return cls(ScoreTable(arrays, ScoreSettings(), lengths.pop()), labels=labels)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.columns)

    def __getitem__(self, name: str) -> FloatArray:
        return self.table[name]

    def __len__(self) -> int:
        return self.table.n_images

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(dict(self.table.columns))

    @cached_property
    def basis(self) -> Basis:
        """What the starting values of knobs depend on, as in a project."""
        columns = self.table.columns
        basis = Basis.learned(columns["aum"], self.n_epochs) if "aum" in columns else Basis(len(self), self.n_epochs)
        is_known = self.start == FROZEN and "mean_prob" in columns and "dual" in columns
        return basis.on_features(columns["mean_prob"], columns["dual"]) if is_known else basis

    @cached_property
    def evidence(self) -> Evidence:
        """What a selector may look at."""
        if self.labels is None:
            return self.table.evidence()
        labels = self.labels
        return self.table.evidence(labels=labels.labels, human_mask=labels.human_mask, duplicate_of=labels.duplicate_of)

    def __repr__(self) -> str:
        return f"Scores({len(self):,} images: {', '.join(self.names)})"

    def _repr_html_(self) -> str:
        return histograms(repr(self), self.table.columns)


@dataclass(frozen=True, eq=False)
class Coreset(records.Coreset):
    """What is kept of ``n_pool`` images: ``indices``, best first, and ``settings``, with which it is chosen again."""

    scores: Scores | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def labels(self) -> IntArray | None:
        """(k,) the class number of each kept image, in the order of ``indices``; None where no labels are known."""
        known = self.scores.labels if self.scores is not None else None
        return None if known is None else known.labels[self.indices]

    def frame(self) -> pd.DataFrame:
        """A row for each kept image: its position, label and scores."""
        columns: dict[str, Any] = {"position": self.indices}
        if self.scores is not None:
            if self.scores.labels is not None:
                columns |= self.scores.labels.frame().iloc[self.indices].to_dict("series")
            columns |= {name: values[self.indices] for name, values in self.scores.table.columns.items()}
        return pd.DataFrame({name: np.asarray(values) for name, values in columns.items()})

    def subset(self, dataset: Dataset[Any]) -> Subset[Any]:
        """The kept part of a PyTorch data set that has the pool's images in the pool's order."""
        from torch.utils.data import Subset

        n = len(dataset)  # type: ignore[arg-type]
        if n != self.n_pool:
            raise InvalidDataError(
                f"This coreset is of {self.n_pool:,} images, but the data set has {n:,}. Give the one that was "
                "pruned, in the same order."
            )
        return Subset(dataset, self.indices.tolist())

    def __repr__(self) -> str:
        return f"Coreset({len(self):,} of {self.n_pool:,} images, {self.method}, seed {self.seed})"

    def _repr_html_(self) -> str:
        if self.scores is None:
            return gallery(repr(self), [])
        labels, kept = self.scores.labels, self.mask
        bars = histograms("", {name: self.scores[name] for name in self.scores.names[:3]}, kept)
        if labels is None or labels.images is None:
            return gallery(repr(self), []) + bars
        shown = [(labels.images[at], str(labels.names[at])) for at in self.indices[:SHOWN].tolist()]
        return gallery(repr(self), shown) + bars


@dataclass(frozen=True)
class Evaluation:
    """Test accuracy of a model trained on the ``coreset``, on ``random`` ones of its size, on the ``full`` pool."""

    coreset: Share
    random: tuple[Share, ...]
    full: Share

    @property
    def gain(self) -> float:
        """How far the coreset is above the mean of the random ones, as a share of the test images."""
        return self.coreset.value - float(np.mean([share.value for share in self.random]))

    def __repr__(self) -> str:
        random = ", ".join(f"{share.value:.1%}" for share in self.random)
        return (
            f"Evaluation(coreset {self.coreset.value:.1%}, 95% interval {self.coreset.low:.1%} to "
            f"{self.coreset.high:.1%}, n = {self.coreset.n}; random {random}; full pool {self.full.value:.1%})"
        )
