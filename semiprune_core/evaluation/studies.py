"""Ready-made studies: the whole line again and again, along one axis.

*Label budget*: how many labels does it take until the coreset beats chance? Nested random subsets of the pool count as
labeled. *Pool size*: does a larger pool help? Nested random parts of the pool stand for smaller pools, and the same
share of each is labeled. Everything after that is done as a project would do it: semi-supervised training, a dynamics
run on its pseudo-labels, scores, coresets, a net trained on each coreset with the true labels, and a test. Random and
the full data need no labels, so the label-budget study trains them once. The work itself is in ``study_job``,
what it found in ``study_view``; nothing here loads torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from semiprune_core import jobs, streams
from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import InvalidSettingError
from semiprune_core.evaluation.data import evaluation_data
from semiprune_core.evaluation.settings import RANDOM
from semiprune_core.evaluation.submit import check_left, pin_labels
from semiprune_core.labeling import open_store
from semiprune_core.learning import machine
from semiprune_core.learning.presets import ssl_preset, supervised_preset
from semiprune_core.learning.settings import SSLSettings, SupervisedSettings
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, IntArray
from semiprune_core.settings import Settings
from semiprune_core.streams import Purpose
from semiprune_core.trials import FULL
from semiprune_core.trials.alike import known_alike, pin_features
from semiprune_core.trials.kinds import for_full

ARTIFACT = "study"
BUDGETS = (0.01, 0.02, 0.05, 0.10, 0.20)
SIZES = (0.125, 0.25, 0.5, 1.0)
COMMON = 0.0
"""The share of rows that are the same for every share: Random and the full data, whatever is labeled."""
CHANCE = (RANDOM, FULL)
"""What needs no label to be chosen."""


@dataclass(frozen=True)
class Axis:
    """What a study varies, as shares in (0, 1].

    ``kind`` is that of its job; ``field`` its place in the settings and in the facts of the result; ``column`` what one
    value is called in tables and stages. The rest is for people: ``place`` begins a sentence, ``usual`` is the value
    that is told first.
    """

    kind: str
    field: str
    column: str
    title: str
    name: str
    place: str
    usual: float


LABEL_BUDGET = Axis(
    "label_budget", "budgets", "budget", "Label-budget study", "Label budget", "With {} of the pool labeled", 0.10
)
POOL_SIZE = Axis("pool_size", "sizes", "size", "Pool-size study", "Share of the pool", "With {} of the pool", 1.0)
AXES = {axis.kind: axis for axis in (LABEL_BUDGET, POOL_SIZE)}


def axis_of(settings: Mapping[str, Any]) -> Axis:
    """The axis of a stored study, known by its settings."""
    return POOL_SIZE if POOL_SIZE.field in settings else LABEL_BUDGET


@dataclass(frozen=True, kw_only=True)
class StudySettings(Settings, ABC):
    """Shares x methods x ratios x seeds. ``ssl`` and ``training`` are what differs from the two presets.

    ``seed`` draws parts and labels and starts the semi-supervised and the dynamics runs; ``seeds`` are those of the
    trainings. ``truth`` None takes the reference labels, else people's where they cover every image.
    """

    axis: ClassVar[Axis]
    methods: tuple[str, ...] = ("semi_aum_cutoff", "semi_dual_beta")
    ratios: tuple[float, ...] = (0.7, 0.9)
    seeds: tuple[int, ...] = (0, 1, 2)
    algorithm: str = "fixmatch"
    ssl_preset: str = "quick"
    ssl: dict[str, Any] = field(default_factory=dict)
    preset: str = "quick"
    training: dict[str, Any] = field(default_factory=dict)
    truth: str | None = None
    seed: int = 0

    @property
    def shares(self) -> tuple[float, ...]:
        return getattr(self, self.axis.field)

    def check(self) -> None:
        for name in (self.axis.field, "methods", "ratios", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                choices = f" of {', '.join(studied_methods())}" if name == "methods" else ""
                raise InvalidSettingError(
                    f"{name} must list one or more values{choices}, each once; got {list(values)}."
                )
        for share in self.shares:
            check_range(self.axis.column, share, low=0, high=1, low_open=True)
        for ratio in self.ratios:
            check_range("ratio", ratio, low=0, high=1, low_open=True, high_open=True)
        for method in self.methods:
            check_choice("method", method, studied_methods())
        if self.truth is not None:
            check_choice("truth", self.truth, ("reference", "human"))
        self.semi_supervised()
        self.supervised()

    def semi_supervised(self) -> SSLSettings:
        return ssl_preset(self.ssl_preset, self.algorithm, **self.ssl)

    def supervised(self) -> SupervisedSettings:
        """Of the dynamics run and of every training on a coreset, but for the batch of small ones."""
        return supervised_preset(self.preset, **self.training)

    @abstractmethod
    def plan(self, n_images: int) -> list[Planned]:
        """What is trained, in order, on a pool of ``n_images``."""

    @abstractmethod
    def parts(self, labels: IntArray, duplicate_of: IntArray) -> list[Part]:
        """The same with its images and labels drawn, from the true ``labels`` (N,) of the whole pool."""


@dataclass(frozen=True, kw_only=True)
class BudgetSettings(StudySettings):
    """A label-budget study; ``budgets`` are shares of the pool that count as labeled."""

    axis: ClassVar[Axis] = LABEL_BUDGET
    budgets: tuple[float, ...] = BUDGETS

    def plan(self, n_images: int) -> list[Planned]:
        own = [Planned(budget, n_images, self.methods) for budget in self.budgets]
        return [Planned(COMMON, n_images, CHANCE), *own]

    def parts(self, labels: IntArray, duplicate_of: IntArray) -> list[Part]:
        everything = np.arange(len(labels))
        drawn = nested_labels(labels, duplicate_of, self.budgets, self.seed)
        own = [Part(budget, everything, given, self.methods) for budget, given in zip(self.budgets, drawn, strict=True)]
        return [Part(COMMON, everything, None, CHANCE), *own]


@dataclass(frozen=True, kw_only=True)
class SizeSettings(StudySettings):
    """A pool-size study; ``sizes`` are shares of the pool, of each of which the share ``labeled`` is labeled."""

    axis: ClassVar[Axis] = POOL_SIZE
    sizes: tuple[float, ...] = SIZES
    labeled: float = 0.10

    def check(self) -> None:
        super().check()
        check_range("labeled", self.labeled, low=0, high=1, low_open=True)

    def plan(self, n_images: int) -> list[Planned]:
        return [Planned(size, max(1, round(size * n_images)), (*CHANCE, *self.methods)) for size in self.sizes]

    def parts(self, labels: IntArray, duplicate_of: IntArray) -> list[Part]:
        parts = []
        for size, among in zip(self.sizes, nested_parts(duplicate_of, self.sizes, self.seed), strict=True):
            (given,) = nested_labels(labels[among], copies_among(duplicate_of, among), (self.labeled,), self.seed)
            parts.append(Part(size, among, given, (*CHANCE, *self.methods)))
        return parts


SETTINGS: dict[str, type[StudySettings]] = {kind.axis.kind: kind for kind in (BudgetSettings, SizeSettings)}
"""By the kind of their job."""


@dataclass(frozen=True)
class Planned:
    """One share of a study before anything is drawn: how many images there are, which methods are trained on them."""

    share: float
    n_images: int
    methods: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """One share of a study: positions ``among`` the images, their given ``labels`` (-1: none), the methods to train.

    Without any ``labels`` there is nothing but chance to choose by.
    """

    share: float
    among: IntArray
    labels: IntArray | None
    methods: tuple[str, ...]

    @property
    def scored(self) -> tuple[str, ...]:
        """The methods that need pseudo-labels and scores."""
        return tuple(method for method in self.methods if method not in CHANCE)


def studied_methods() -> tuple[str, ...]:
    """Methods that choose by scores on pseudo-labels: those that labels and images change."""
    return tuple(name for name in METHODS if METHODS[name].evidence == "scores")


def nested_labels(labels: IntArray, duplicate_of: IntArray, budgets: Sequence[float], seed: int) -> list[IntArray]:
    """For each budget the labels (N,) of a random share of the pictures, -1 elsewhere; each share contains the smaller.

    Copies of one picture count once: the first of them gets the label.

    >>> small, large = nested_labels(np.zeros(10, int), np.arange(10), (0.2, 0.5), seed=0)
    >>> int((small >= 0).sum()), int((large >= 0).sum()), bool((large[small >= 0] >= 0).all())
    (2, 5, True)
    """
    first = np.flatnonzero((duplicate_of == np.arange(len(labels))) & (labels >= 0))
    subsets: list[IntArray] = []
    for chosen in _nested(first, budgets, streams.rng(seed, Purpose.STUDY_LABELS)):
        drawn = np.full(len(labels), UNLABELED, dtype=np.int64)
        drawn[chosen] = labels[chosen]
        subsets.append(drawn)
    return subsets


def nested_parts(duplicate_of: IntArray, sizes: Sequence[float], seed: int) -> list[IntArray]:
    """For each size the sorted positions of a random share of the pictures, with all their copies; each contains the
    smaller.

    >>> small, large = nested_parts(np.arange(10), (0.2, 0.5), seed=0)
    >>> len(small), len(large), bool(np.isin(small, large).all())
    (2, 5, True)
    """
    first = np.flatnonzero(duplicate_of == np.arange(len(duplicate_of)))
    return [
        np.flatnonzero(np.isin(duplicate_of, chosen))
        for chosen in _nested(first, sizes, streams.rng(seed, Purpose.STUDY_PARTS))
    ]


def _nested(pictures: IntArray, shares: Sequence[float], rng: np.random.Generator) -> list[IntArray]:
    """A random share of the pictures for each of ``shares``, at least one, the smaller within the larger."""
    order = rng.permutation(pictures)
    return [order[: max(1, round(share * len(pictures)))] for share in shares]


def copies_among(duplicate_of: IntArray, among: IntArray) -> IntArray:
    """Positions of first copies among some images that keep copies together, so that the first is always there."""
    place = np.full(len(duplicate_of), -1, dtype=np.int64)
    place[among] = np.arange(len(among))
    return place[duplicate_of[among]]


# --- what it costs -------------------------------------------------------------------------------------------------


def n_trainings(settings: StudySettings) -> int:
    """How many coresets (and full data sets) are trained on."""
    return sum(_n_trainings(settings, share.methods) for share in settings.plan(1))


def _n_trainings(settings: StudySettings, methods: Sequence[str]) -> int:
    return len(settings.seeds) * sum(1 if method == FULL else len(settings.ratios) for method in methods)


@dataclass(frozen=True)
class Cost:
    """What one share of a study trains on, in images, every step or epoch counted: progress is measured in these."""

    ssl: int
    dynamics: int
    trainings: int

    @property
    def total(self) -> int:
        return self.ssl + self.dynamics + self.trainings


def cost_of(settings: StudySettings, n_images: int, methods: Sequence[str]) -> Cost:
    """The cost of ``methods`` on ``n_images``."""
    ssl, training = settings.semi_supervised().on_pool(n_images), settings.supervised()
    is_scored = any(method not in CHANCE for method in methods)
    once = sum(training.images_seen(n_images, ratio) for ratio in settings.ratios)
    full = for_full(training, settings.ratios, n_images).images_seen(n_images, 0.0)
    trained = sum(full if method == FULL else once for method in methods)
    return Cost(
        ssl=ssl.n_steps
        * ssl.batch_size
        * (1 + 2 * ssl.unlabeled_ratio)
        * is_scored,  # a weak and a strong view of each
        dynamics=n_images * training.epochs * is_scored,
        trainings=trained * len(settings.seeds),
    )


def submit_study(
    project: Project, settings: StudySettings, *, device: str = "auto", immediate: bool = False
) -> jobs.Job:
    """Queue a study; it needs a true label for every image, reference or human."""
    snapshot = open_store(project).snapshot()
    final = open_store(project).final_test()
    # pseudo-labels will not do: they are what is studied
    data = evaluation_data(project, settings.truth, snapshot=snapshot, final=final, alike=known_alike(project))
    axis, n = settings.axis, len(settings.shares)
    fewest = min(share.n_images for share in settings.plan(len(data.chosen_from)))
    remedy = "Choose smaller ratios."
    if axis is POOL_SIZE:
        remedy = f"The smallest part has {fewest:,} images: choose smaller ratios, or larger parts of the pool."
    check_left(fewest, settings.ratios, len(data.class_names), remedy)
    return jobs.submit(
        project,
        axis.kind,
        settings.replace(truth=data.truth).to_json(),
        title=f"{axis.title}, {n} {axis.column}{'s' if n != 1 else ''}",
        device=machine.devices_for(device),
        pins={"pool": project.pool().hash, **pin_labels(project, snapshot, final), **pin_features(project)},
        immediate=immediate,
    )
