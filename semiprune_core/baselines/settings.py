"""What may be set about each kind of evidence. Nothing here loads torch."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from semiprune_core.checks import check_choice, check_range
from semiprune_core.embeddings.encoders import LEAST_SIDE, MOST_SIDE
from semiprune_core.errors import InvalidSettingError
from semiprune_core.results.pseudo import FROZEN, SCRATCH
from semiprune_core.scores import score_knobs
from semiprune_core.settings import Settings

AUTO = "auto"
QUICK, PAPER = "quick", "paper"


@dataclass(frozen=True, kw_only=True)
class EncoderSettings(Settings):
    """Where features come from: ``auto``, ``ssl``, ``pixels``, or an encoder's name with its ``weights`` file.

    ``auto`` is a pretrained encoder that needs no network where one is installed, raw pixels otherwise. A pretrained
    encoder sees the images at ``encoder_size`` pixels; 0 is what it is made for (224 mostly), and for
    ``efficientnet_lite0`` twice the side of the training cache, 64 to 224. ``a+b`` puts the features of two encoders
    side by side, each scaled to length 1; their files are given as ``FILE+FILE``.
    """

    encoder: str = AUTO
    weights: str = ""
    encoder_size: int = 0

    def check(self) -> None:
        if self.encoder_size:
            check_range("encoder_size", self.encoder_size, low=LEAST_SIDE, high=MOST_SIDE)


@dataclass(frozen=True, kw_only=True)
class PrototypeSettings(EncoderSettings):
    """k-means with ``n_clusters`` (0: as many as there are classes), the best of ``n_starts``."""

    n_clusters: int = 0
    n_starts: int = 10

    def check(self) -> None:
        super().check()
        check_range("n_clusters", self.n_clusters, low=0)
        check_range("n_starts", self.n_starts, low=1)


@dataclass(frozen=True, kw_only=True)
class ZCoreSettings(EncoderSettings):
    """ZCore's knobs, with its paper's values.

    ``n_samples`` points are drawn (0: 20 per image, 100,000 at least and the paper's million at most), each in
    ``subspace`` random dimensions; ``n_redundant`` nearest images share a penalty by distance to the power
    -``exponent``. ``random_start`` begins with scores in [0, 1) instead of 0.
    """

    n_samples: int = 0
    subspace: int = 2
    n_redundant: int = 1000
    exponent: float = 4.0
    random_start: bool = True

    def check(self) -> None:
        super().check()
        check_range("n_samples", self.n_samples, low=0)
        check_range("subspace", self.subspace, low=1)
        check_range("n_redundant", self.n_redundant, low=1)
        check_range("exponent", self.exponent, low=0)


@dataclass(frozen=True, kw_only=True)
class HeadSettings(Settings):
    """TEMI's clustering heads. Symbols of the paper: ``beta`` in the mutual information, ``n_heads`` H."""

    n_heads: int = 8
    n_neighbours: int = 50
    epochs: int = 60
    batch_size: int = 512
    hidden: int = 128
    bottleneck: int = 64
    lr: float = 2e-3
    warm_up: float = 0.1
    """Share of the steps in which the learning rate rises."""
    weight_decay: float = 1e-4
    beta: float = 0.6
    temperature: float = 0.1
    share_momentum: float = 0.9
    """Of the running mean of the teacher's class shares."""
    teacher_momentum: float = 0.98
    n_components: int = 64
    """Principal components the features are reduced to first; 0 leaves them as they are."""

    def check(self) -> None:
        for name in ("n_heads", "n_neighbours", "epochs", "hidden", "bottleneck"):
            check_range(name, getattr(self, name), low=1)
        check_range("batch_size", self.batch_size, low=2)
        check_range("lr", self.lr, low=0, low_open=True)
        check_range("warm_up", self.warm_up, low=0, high=1)
        check_range("weight_decay", self.weight_decay, low=0)
        check_range("beta", self.beta, low=0, high=1, low_open=True)
        check_range("temperature", self.temperature, low=0, low_open=True)
        for name in ("share_momentum", "teacher_momentum"):
            check_range(name, getattr(self, name), low=0, high=1, high_open=True)
        check_range("n_components", self.n_components, low=0)


HEADS = {
    QUICK: HeadSettings(),
    PAPER: HeadSettings(
        n_heads=50,
        epochs=200,
        batch_size=1024,
        hidden=512,
        bottleneck=256,
        lr=4e-4,
        teacher_momentum=0.996,
        n_components=0,
    ),
}
"""``paper`` as ELFS ran TEMI: 50 heads, 200 epochs, lr 1e-4 per 256 images of the batch."""


@dataclass(frozen=True, kw_only=True)
class SwavSettings(Settings):
    """SwAV on the pool. ``epsilon`` and ``rounds`` belong to Sinkhorn, ``frozen`` is the share of steps without
    learning the prototypes, ``warm_up`` the share in which the learning rate rises."""

    net: str = "compact"
    epochs: int = 30
    batch_size: int = 256
    n_prototypes: int = 100
    hidden: int = 256
    projection: int = 64
    lr: float = 0.1
    warm_up: float = 0.0
    weight_decay: float = 1e-5
    temperature: float = 0.1
    epsilon: float = 0.05
    rounds: int = 3
    frozen: float = 0.02
    n_ops: int = 2
    strength: float = 0.5
    cutout: float = 0.3
    flip: bool = True

    def check(self) -> None:
        for name in ("epochs", "hidden", "projection", "rounds"):
            check_range(name, getattr(self, name), low=1)
        check_range("batch_size", self.batch_size, low=2)
        check_range("n_prototypes", self.n_prototypes, low=2)
        for name in ("lr", "temperature", "epsilon"):
            check_range(name, getattr(self, name), low=0, low_open=True)
        for name in ("frozen", "warm_up"):
            check_range(name, getattr(self, name), low=0, high=1)
        check_range("strength", self.strength, low=0, high=1)
        check_range("cutout", self.cutout, low=0, high=1)


SWAV = {
    QUICK: SwavSettings(),
    PAPER: SwavSettings(
        net="resnet50",
        epochs=500,
        batch_size=512,
        n_prototypes=30,
        hidden=2048,
        projection=128,
        lr=0.06,
        warm_up=0.02,
        weight_decay=1e-6,
        temperature=0.5,
        frozen=900 / 48_500,
        strength=1.0,
    ),
}
"""``paper`` as ELFS trained SwAV on CIFAR (swav-cifar10): ResNet-50, 500 epochs, 10 of them warming up, the prototypes
fixed for 900 of 48,500 steps. docs/baselines.md says what differs. It trained 200 epochs on larger images."""


@dataclass(frozen=True, kw_only=True)
class ScoringSettings(Settings):
    """The dynamics run of a baseline: a net from scratch (``start`` is "scratch"), or a head on the project's features
    ("frozen"). ``training`` is what differs from the training of the project's own run of that kind."""

    start: str = SCRATCH
    training: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        check_choice("start", self.start, (SCRATCH, FROZEN))


@dataclass(frozen=True, kw_only=True)
class ReferenceSettings(ScoringSettings):
    """A dynamics run on reference labels has no settings of its own."""


@dataclass(frozen=True, kw_only=True)
class ClusterSettings(EncoderSettings, ScoringSettings):
    """Deep clustering with ``n_clusters`` (0: as many as there are classes), then a dynamics run on its labels."""

    n_clusters: int = 0
    preset: str = QUICK
    heads: dict[str, Any] = field(default_factory=dict)
    """What differs from the preset's clustering heads."""

    def check(self) -> None:
        EncoderSettings.check(self)
        ScoringSettings.check(self)
        check_range("n_clusters", self.n_clusters, low=0)
        check_choice("preset", self.preset, tuple(HEADS))
        self.clustering()

    def clustering(self) -> HeadSettings:
        return HEADS[self.preset].replace(**self.heads)


@dataclass(frozen=True, kw_only=True)
class SelfClusterSettings(ScoringSettings):
    """As :class:`ClusterSettings`, on an encoder that is trained on the pool first."""

    n_clusters: int = 0
    preset: str = QUICK
    swav: dict[str, Any] = field(default_factory=dict)
    heads: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        super().check()
        check_range("n_clusters", self.n_clusters, low=0)
        check_choice("preset", self.preset, tuple(SWAV))
        self.clustering()
        self.encoder_training()

    def clustering(self) -> HeadSettings:
        return HEADS[self.preset].replace(**self.heads)

    def encoder_training(self) -> SwavSettings:
        return SWAV[self.preset].replace(**self.swav)


SCORER = "scorer"


@dataclass(frozen=True, kw_only=True)
class ExtrapolationSettings(EncoderSettings, ScoringSettings):
    """Neighbours are looked for among the features of ``encoder``; ``scorer`` is what was scored with: the net's, or
    those that the head stands on. With ``n_neighbours`` 0 their number is chosen by how well it carries known scores.
    """

    encoder: str = SCORER
    n_neighbours: int = 0

    def check(self) -> None:
        EncoderSettings.check(self)
        ScoringSettings.check(self)
        check_range("n_neighbours", self.n_neighbours, low=0)


@dataclass(frozen=True, kw_only=True)
class GraphSettings(ExtrapolationSettings):
    """A graph network of ``hidden`` layers over the graph of ``n_neighbours``; the epoch with the lowest error in
    dynamic uncertainty on a tenth of the labeled images counts. ``blank`` is the share of learned images that go
    without their label in an epoch."""

    n_neighbours: int = 10
    hidden: tuple[int, ...] = (512, 256)
    dropout: float = 0.5
    blank: float = 0.5
    lr: float = 0.01
    epochs: int = 100

    def check(self) -> None:
        super().check()
        check_range("n_neighbours", self.n_neighbours, low=1)
        check_range("dropout", self.dropout, low=0, high=1, high_open=True)
        check_range("blank", self.blank, low=0, high=1)
        check_range("lr", self.lr, low=0, low_open=True)
        check_range("epochs", self.epochs, low=1)
        for width in self.hidden:
            check_range("hidden", width, low=1)


BY_PROVIDER: dict[str, type[Settings]] = {
    "reference_scores": ReferenceSettings,
    "prototype_scores": PrototypeSettings,
    "zcore_scores": ZCoreSettings,
    "cluster_scores": ClusterSettings,
    "self_cluster_scores": SelfClusterSettings,
    "knn_scores": ExtrapolationSettings,
    "graph_scores": GraphSettings,
}
T = TypeVar("T", bound=Settings)


def own_settings(kind: type[T], given: Mapping[str, Any]) -> T:
    """The settings of one provider out of those given for several; a name that belongs to none is refused."""
    check_names(given)
    mine = {field.name for field in dataclasses.fields(kind)}
    return kind.from_json({name: value for name, value in given.items() if name in mine})


def check_names(given: Mapping[str, Any]) -> None:
    """Refuse a setting that no provider has."""
    allowed = {field.name for kind in BY_PROVIDER.values() for field in dataclasses.fields(kind)} | {*score_knobs()}
    for name in given:
        if name not in allowed:
            close = difflib.get_close_matches(name, allowed, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise InvalidSettingError(
                f"There is no evidence setting '{name}'.{hint} Known: {', '.join(sorted(allowed))}."
            )


def score_changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of the score settings; settings of the providers are passed over.

    >>> score_changes({"encoder": "pixels", "gamma": 0.5})
    {'gamma': 0.5}
    """
    check_names(given)
    return {name: given[name] for name in score_knobs() if name in given}
