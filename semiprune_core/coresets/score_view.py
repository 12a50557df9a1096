"""What the Scores page asks: histograms, the plane of mean and deviation, the images behind them, one image's story.

Pages draw; which images a click or a box means is decided here. N images, K bins, G groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from semiprune_core.checks import check_choice
from semiprune_core.dynamics.scoring import trajectories_of
from semiprune_core.errors import MissingStepError
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, BoolArray, Evidence, FloatArray, IntArray, PseudoLabels
from semiprune_core.results import PseudoRun, ScoreRun, TrajectoryRun, check_same_pool, made_from
from semiprune_core.results.evidence import evidence_of
from semiprune_core.scores import HARDER, SCORES, ScoreTable
from semiprune_core.scores.windows import sliding_moments
from semiprune_core.selection import Basis
from semiprune_core.training import reference_on

N_BINS = 60
MAX_POINTS = 20_000
"""More images than this are drawn as a density."""
GRID = (120, 80)
MAX_COLOURS = 10
SPLITS = ("none", "class", "source", "right")
FIRST = ("aum", "dual")
FEATURE_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class ScoreView:
    """Scores, labels and pool of one ``scores`` artifact, opened once."""

    pool: Pool
    scores: ScoreRun
    pseudo: PseudoRun
    runs: tuple[TrajectoryRun, ...]
    table: ScoreTable
    _bins: dict[str, tuple[FloatArray, IntArray]] = field(default_factory=dict, repr=False)

    @property
    def n_images(self) -> int:
        return self.table.n_images

    @property
    def names(self) -> list[str]:
        """The scores' names, AUM and DUAL first; those of packages that are no longer installed are passed over."""
        known = [name for name in self.scores.names if name in SCORES]
        return sorted(known, key=lambda name: (name not in FIRST, known.index(name)))

    @cached_property
    def basis(self) -> Basis:
        """What starting values depend on; kept, as a slider asks for it again and again."""
        return self.scores.basis()

    @cached_property
    def labels(self) -> PseudoLabels:
        return self.pseudo.labels()

    @cached_property
    def reference(self) -> IntArray | None:
        """(N,) reference labels as indices into the classes, -1 for none; None where no image has one."""
        found = reference_on(self.pseudo, self.pool)
        return found if (found != UNLABELED).any() else None

    @cached_property
    def right(self) -> IntArray | None:
        """(N,) 1 where the label equals the reference label, 0 where not, -1 where that is unknown."""
        if self.reference is None:
            return None
        same = (self.reference == self.labels.labels).astype(np.int64)
        return np.where(self.reference == UNLABELED, UNLABELED, same)

    @cached_property
    def evidence(self) -> Evidence:
        return evidence_of(self.table, self.pseudo, self.pool)

    def bins(self, score: str) -> tuple[FloatArray, IntArray]:
        """(edges (K + 1,), bin of each image (N,)) of equal width over the score's range."""
        if score not in self._bins:
            self._bins[score] = bin_values(self.table[score])
        return self._bins[score]


def open_view(project: Project, scores: ScoreRun, pool: Pool | None = None) -> ScoreView:
    """Open scores for looking at. They belong to the pool and pseudo-labels they were made from."""
    pool = pool or project.pool()
    check_same_pool(scores.artifact, pool)
    pseudo = PseudoRun(made_from(project, scores.artifact, "pseudo"))
    return ScoreView(pool, scores, pseudo, tuple(trajectories_of(project, scores)), scores.table())


def bin_values(values: FloatArray, n_bins: int = N_BINS) -> tuple[FloatArray, IntArray]:
    """Equal-width bins over the range of ``values`` (N,): edges (K + 1,) and the bin of each (N,).

    >>> edges, place = bin_values(np.array([0.0, 0.5, 1.0]), 2)
    >>> edges.tolist(), place.tolist()
    ([0.0, 0.5, 1.0], [0, 1, 1])
    """
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if high <= low:
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, n_bins + 1)
    place = ((values - low) * (n_bins / (high - low))).astype(np.int64)
    return edges, np.clip(place, 0, n_bins - 1)


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the images: ``codes`` (N,) into ``names``; -1 leaves an image out. ``kind`` is one of SPLITS."""

    kind: str
    codes: IntArray
    names: tuple[str, ...]


def group_images(view: ScoreView, split: str, chosen: int | None = None) -> Groups:
    """Split by class, by who gave the label, or by right and wrong.

    More than ten classes are not told apart by colour: ``chosen`` (a class index) stands against all others then.
    """
    check_choice("split", split, SPLITS)
    if split == "source":
        return Groups(split, view.labels.human_mask.astype(np.int64), ("pseudo-label", "human label"))
    if split == "right":
        if view.right is None:
            raise MissingStepError("This pool came without reference labels, so right and wrong are not known.")
        return Groups(split, view.right, ("wrong label", "right label"))
    if split == "class":
        names = view.labels.class_names
        if len(names) <= MAX_COLOURS:
            return Groups(split, view.labels.labels.astype(np.int64), names)
        picked = 0 if chosen is None else chosen
        return Groups(split, (view.labels.labels == picked).astype(np.int64), ("other classes", names[picked]))
    return Groups(split, np.zeros(view.n_images, dtype=np.int64), ("images",))


def histogram(view: ScoreView, score: str, groups: Groups) -> tuple[FloatArray, IntArray]:
    """Edges (K + 1,) and counts (G, K)."""
    edges, place = view.bins(score)
    n_bins, known = len(edges) - 1, groups.codes >= 0
    flat = groups.codes[known] * n_bins + place[known]
    counts = np.bincount(flat, minlength=len(groups.names) * n_bins)
    return edges, counts.reshape(len(groups.names), n_bins)


def in_bins(view: ScoreView, score: str, groups: Groups, chosen: Sequence[tuple[int, int]]) -> IntArray:
    """Positions of the images in (bin, group) bars, by rising score."""
    edges, place = view.bins(score)
    n_bins = len(edges) - 1
    wanted = np.zeros(len(groups.names) * n_bins, dtype=bool)
    for number, group in chosen:
        if 0 <= number < n_bins and 0 <= group < len(groups.names):
            wanted[group * n_bins + number] = True
    mask = (groups.codes >= 0) & wanted[np.maximum(groups.codes, 0) * n_bins + place]
    return by_score(view, score, mask)


def in_range(view: ScoreView, score: str, groups: Groups, low: float, high: float) -> IntArray:
    """Positions of the images of all groups whose score lies in [low, high], by rising score."""
    values = view.table[score]
    return by_score(view, score, (values >= low) & (values <= high) & (groups.codes >= 0))


def by_score(view: ScoreView, score: str, mask: BoolArray) -> IntArray:
    """Positions where ``mask``, by rising score."""
    found = np.flatnonzero(mask)
    return found[np.argsort(view.table[score][found], kind="stable")]


@dataclass(frozen=True, eq=False)
class Plane:
    """Points of the plane: ``x`` mean probability, ``y`` its deviation, ``value`` the colouring score, ``ids``.

    For few images a point is an image and its id the position; for many it is a cell of a grid with ``counts`` images,
    the mean of their scores, and the cell's number as id.
    """

    x: FloatArray
    y: FloatArray
    value: FloatArray
    ids: IntArray
    counts: IntArray | None = None

    @property
    def is_density(self) -> bool:
        return self.counts is not None


def plane(view: ScoreView, score: str, *, limit: int = MAX_POINTS) -> Plane:
    """The plane of prediction mean and deviation, coloured by ``score``."""
    x, y, value = view.table["mean_prob"], view.table["variability"], view.table[score]
    if view.n_images <= limit:
        return Plane(x, y, value, np.arange(view.n_images))
    cells = _cells(view)
    counts = np.bincount(cells, minlength=GRID[0] * GRID[1])
    full = np.flatnonzero(counts)
    means = np.bincount(cells, weights=value, minlength=len(counts))[full] / counts[full]
    (x_edges, _), (y_edges, _) = _axes(view)
    column, row = full // GRID[1], full % GRID[1]
    middle_x, middle_y = (x_edges[:-1] + x_edges[1:]) / 2, (y_edges[:-1] + y_edges[1:]) / 2
    return Plane(middle_x[column], middle_y[row], means, full, counts[full])


def _axes(view: ScoreView) -> tuple[tuple[FloatArray, IntArray], tuple[FloatArray, IntArray]]:
    return bin_values(view.table["mean_prob"], GRID[0]), bin_values(view.table["variability"], GRID[1])


def _cells(view: ScoreView) -> IntArray:
    (_, column), (_, row) = _axes(view)
    return column * GRID[1] + row


def on_plane(
    view: ScoreView, score: str, *, ids: Sequence[int] = (), box: tuple[float, float, float, float] | None = None
) -> IntArray:
    """Positions of the images in a box (x low, x high, y low, y high) or behind the points ``ids``, by rising score."""
    x, y = view.table["mean_prob"], view.table["variability"]
    if box is not None:
        inside = (x >= box[0]) & (x <= box[1]) & (y >= box[2]) & (y <= box[3])
        return by_score(view, score, inside)
    wanted = np.asarray([one for one in ids if one >= 0], dtype=np.int64)
    if view.n_images <= MAX_POINTS:
        mask = np.zeros(view.n_images, dtype=bool)
        mask[wanted[wanted < view.n_images]] = True
        return by_score(view, score, mask)
    return by_score(view, score, np.isin(_cells(view), wanted))


@dataclass(frozen=True, eq=False)
class ImageStory:
    """One image's training, epoch by epoch. Window statistics have T - J + 1 values; ``harder_than`` is in [0, 1]."""

    position: int
    target_prob: FloatArray
    margin: FloatArray
    window: int
    window_mean: FloatArray
    window_deviation: FloatArray
    scores: dict[str, float]
    harder_than: dict[str, float]
    label: str
    is_human: bool
    predicted: str
    confidence: float
    reference: str | None


def image_story(view: ScoreView, position: int) -> ImageStory:
    """The trajectory of one image (of the first seed), its windows and where its scores stand in the pool."""
    trajectory = view.runs[0].trajectory()
    prob = np.asarray(trajectory.target_prob[:, position], dtype=np.float64)
    margin = np.asarray(trajectory.margin[:, position], dtype=np.float64)
    window = min(view.table.settings["window"], len(prob))
    mean, squares = sliding_moments(prob[:, None], window)
    scores = {name: float(view.table[name][position]) for name in view.names}
    harder = {}
    for name, value in scores.items():
        below = float((view.table[name] < value).mean())
        above = float((view.table[name] > value).mean())
        harder[name] = below if SCORES.facts(name)["higher_is"] == HARDER else above
    names, labels = view.labels.class_names, view.labels
    known = None if view.reference is None else int(view.reference[position])
    return ImageStory(
        position=position,
        target_prob=prob,
        margin=margin,
        window=window,
        window_mean=mean[:, 0],
        window_deviation=np.sqrt(squares[:, 0] / max(window - 1, 1)),
        scores=scores,
        harder_than=harder,
        label=names[int(labels.labels[position])],
        is_human=bool(labels.human_mask[position]),
        predicted=names[int(view.pseudo.predicted()[position])],
        confidence=float(view.pseudo.confidence()[position]),
        reference=None if known in (None, UNLABELED) else names[int(known)],
    )


def neighbours(features: np.ndarray, position: int, k: int = 8) -> tuple[IntArray, FloatArray]:
    """The ``k`` images nearest to one by the cosine of their features (N, D), nearest first, and the cosines.

    >>> neighbours(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]]), 0, k=1)[0].tolist()
    [2]
    """
    one = _unit(np.asarray(features[position : position + 1], dtype=np.float32))[0]
    likeness = np.empty(len(features), dtype=np.float32)
    for start in range(0, len(features), FEATURE_BLOCK):
        block = np.asarray(features[start : start + FEATURE_BLOCK], dtype=np.float32)
        likeness[start : start + len(block)] = _unit(block) @ one
    likeness[position] = -np.inf
    k = min(k, len(features) - 1)
    if k < 1:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    near = np.argpartition(-likeness, k - 1)[:k]
    near = near[np.argsort(-likeness[near], kind="stable")]
    return near, likeness[near]


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
