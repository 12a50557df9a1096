"""What the Select page asks: a coreset as it would be, what it does to the pool, and coresets side by side.

Everything that is sent to a browser is counted here first, so that a slider move sends a few hundred numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from semiprune_core import streams
from semiprune_core.coresets.build import CoresetRequest, choose_coreset, evidence_behind, with_alike
from semiprune_core.coresets.label_error import ErrorEstimate, estimate_error, hardness_of
from semiprune_core.coresets.score_view import ScoreView, bin_values
from semiprune_core.dynamics.scoring import rescored
from semiprune_core.learning.quality import Share, wilson
from semiprune_core.methods import METHODS
from semiprune_core.project.workspace import Project
from semiprune_core.records import BoolArray, Coreset, Evidence, FloatArray, IntArray
from semiprune_core.results import CoresetRun, PseudoRun, made_from
from semiprune_core.results.evidence import EvidenceRun
from semiprune_core.scan import ScanRun
from semiprune_core.scores import ScoreSettings, ScoreTable
from semiprune_core.selection import beta_log_density, beta_parameters
from semiprune_core.selection.base import easiness
from semiprune_core.streams import Purpose

BORDER = 10
DENSITY_POINTS = 121


@dataclass(frozen=True)
class Border:
    """A row of images at the edge of the choice."""

    title: str
    kept: bool
    positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Density:
    """The Beta density over the mean probability, ``x`` and ``y`` (M,), and its parameters."""

    x: FloatArray
    y: FloatArray
    alpha: float
    beta: float
    mu_d: float


@dataclass(frozen=True, eq=False)
class Preview:
    """A coreset and what it does. Histograms are (K,) over ``edges`` (K + 1,), class counts (C,).

    ``values`` (N,) are those of the ``score`` it is drawn over.
    """

    coreset: Coreset
    score: str
    values: FloatArray
    edges: FloatArray
    kept: IntArray
    dropped: IntArray
    class_before: IntArray
    class_after: IntArray
    n_human: int
    n_human_before: int
    error: ErrorEstimate
    wrong_before: Share | None
    wrong_after: Share | None
    borders: tuple[Border, ...]
    density: Density | None

    @property
    def budget(self) -> int:
        return len(self.coreset.indices)

    @property
    def has_more_wrong_labels(self) -> bool:
        """Whether wrong labels are more frequent in the coreset than in the pool: by the reference labels, beyond the
        interval; without them, in all likelihood."""
        if self.wrong_after is not None and self.wrong_before is not None:
            return self.wrong_after.low > self.wrong_before.value
        return self.error.is_likely_more


def score_table_for(view: ScoreView, request: CoresetRequest) -> ScoreTable:
    """The view's scores, anew where the request wants another T or gamma for them."""
    settings = view.table.settings.replace(**request.score_changes)
    return view.table if settings == view.table.settings else _rescored(view, settings)


@lru_cache(maxsize=8)
def _rescored(view: ScoreView, settings: ScoreSettings) -> ScoreTable:
    return rescored(view.table, view.runs, settings, view.scores.n_epochs)


@lru_cache(maxsize=8)
def _evidence(view: ScoreView, settings: ScoreSettings) -> Evidence:
    table = view.table if settings == view.table.settings else _rescored(view, settings)
    base = view.evidence
    return dataclasses.replace(base, scores=table.columns, mean_prob=table.columns.get("mean_prob"))


@lru_cache(maxsize=8)
def _own_evidence(view: ScoreView, kept: EvidenceRun) -> Evidence:
    return kept.evidence(view.pool, view.labels)


def shown_score(request: CoresetRequest) -> str:
    """The score a request's picture is drawn over: what it selects by; the mean probability for Beta sampling."""
    return _score_of(request.method, request.selector, request.given)


def _score_of(method: str, selector: str, knobs: Mapping[str, Any]) -> str:
    if selector == "beta":
        return "mean_prob"
    own = METHODS[method].score if method in METHODS else None
    return knobs.get("score") or own or "aum"


@lru_cache(maxsize=16)
def preview(
    view: ScoreView,
    request: CoresetRequest,
    score: str | None = None,
    *,
    stored: EvidenceRun | None = None,
    found: ScanRun | None = None,
) -> Preview:
    """The coreset that ``request`` asks for and what it does, drawn over ``score`` (its own by default).

    ``stored`` is the evidence of a baseline, which has scores of its own; ``found`` the near-duplicates of a scan.
    """
    score = score or shown_score(request)
    if stored is not None:
        evidence = _own_evidence(view, stored)
        values, basis = evidence.scores[score], stored.basis(view.basis)
        edges, place = bin_values(values)
    else:
        table = score_table_for(view, request)
        evidence = _evidence(view, table.settings)
        values, basis = table[score], view.basis
        edges, place = view.bins(score) if table is view.table else _bins(view, table.settings, score)
    if found is not None:
        evidence = with_alike(evidence, view.pool, found)
    coreset = choose_coreset(evidence, request, basis)
    mask = coreset.mask
    n_bins, labels = len(edges) - 1, view.labels
    everything = np.bincount(place, minlength=n_bins)
    kept = np.bincount(place[coreset.indices], minlength=n_bins)
    n_classes = len(labels.class_names)
    return Preview(
        coreset=coreset,
        score=score,
        values=values,
        edges=edges,
        kept=kept,
        dropped=everything - kept,
        class_before=np.bincount(labels.labels, minlength=n_classes),
        class_after=np.bincount(labels.labels[coreset.indices], minlength=n_classes),
        n_human=int(labels.human_mask[coreset.indices].sum()),
        n_human_before=int(labels.human_mask.sum()),
        error=estimated_error(view, coreset, *_chosen_by(request, evidence, score, values)),
        wrong_before=_known_error(view, None),
        wrong_after=_known_error(view, mask),
        borders=borders(evidence, coreset, mask),
        density=density(coreset),
    )


def _chosen_by(request: CoresetRequest, evidence: Evidence, score: str, values: FloatArray) -> tuple[str, FloatArray]:
    """The score that a request selects by, whatever score its picture is drawn over."""
    own = shown_score(request)
    if own == score:
        return score, values
    found = evidence.mean_prob if own == "mean_prob" else evidence.scores.get(own)
    return (score, values) if found is None else (own, found)


@lru_cache(maxsize=16)
def _bins(view: ScoreView, settings: ScoreSettings, score: str) -> tuple[FloatArray, IntArray]:
    return bin_values(_rescored(view, settings)[score])


def density(coreset: Coreset) -> Density | None:
    """The Beta density a coreset was drawn with; None for other selectors."""
    if coreset.settings["selector"] != "beta":
        return None
    known: Mapping[str, Any] = {**coreset.settings["knobs"], **coreset.settings["derived"]}
    alpha, beta = beta_parameters(known["mu_d"], known["pruning_ratio"], known["c_d"], known["concentration"])
    x = np.linspace(0.0, 1.0, DENSITY_POINTS)[1:-1]  # the ends may be poles
    y = np.exp(np.minimum(beta_log_density(x, alpha, beta), 50.0))
    return Density(x, y, alpha, beta, float(known["mu_d"]))


def estimated_error(view: ScoreView, coreset: Coreset, score: str, values: FloatArray) -> ErrorEstimate:
    """How many of the kept pseudo-labels are wrong; ``values`` (N,) are those of the ``score`` it was chosen by."""
    labels = view.labels
    hardness = hardness_of(coreset, score, np.asarray(values, dtype=np.float64))
    return estimate_error(view.pseudo, labels.human_mask, coreset, hardness, np.asarray(view.pseudo.confidence()))


def saved_error(project: Project, run: CoresetRun) -> ErrorEstimate:
    """The same estimate for a coreset that was saved."""
    pseudo, coreset = PseudoRun(made_from(project, run.artifact, "pseudo")), run.coreset()
    evidence, settings = evidence_behind(project, run), run.artifact.settings
    score = _score_of(str(settings["method"]), str(settings["selector"]), settings["knobs"])
    found = evidence.mean_prob if score == "mean_prob" else evidence.scores.get(score)
    values = np.zeros(evidence.n_images) if found is None else np.asarray(found, dtype=np.float64)
    human = pseudo.labels().human_mask
    return estimate_error(pseudo, human, coreset, hardness_of(coreset, score, values), np.asarray(pseudo.confidence()))


def _known_error(view: ScoreView, mask: BoolArray | None) -> Share | None:
    """The share of wrong labels by the reference labels, inside ``mask`` or everywhere."""
    if view.right is None:
        return None
    right = view.right if mask is None else view.right[mask]
    known = right[right >= 0]
    return wilson(int((known == 0).sum()), len(known)) if len(known) else None


def borders(evidence: Evidence, coreset: Coreset, mask: BoolArray, k: int = BORDER) -> tuple[Border, ...]:
    """Rows of images just inside and just outside the choice.

    Where one score decides, these are the ends of what is kept and what lies next to them; for Beta sampling, the
    kept images that were least likely and the dropped ones that were most likely; otherwise a few of either side.
    """
    selector, knobs = coreset.settings["selector"], coreset.settings["knobs"]
    if selector in ("cutoff", "top"):
        return _ends(easiness(evidence, knobs["score"], knobs.get("higher_is")), mask, k)
    if selector == "beta":
        found = density(coreset)
        assert found is not None and evidence.mean_prob is not None
        weight = beta_log_density(np.clip(evidence.mean_prob, 1e-6, 1 - 1e-6), found.alpha, found.beta)
        weight = weight + np.log(np.maximum(evidence.scores["dual"], 1e-12))
        return (
            Border("Kept, though unlikely", True, _lowest(weight, mask, k)),
            Border("Dropped, though likely", False, _lowest(-weight, ~mask, k)),
        )
    chance = streams.rng(coreset.seed, Purpose.CORESET_SAMPLE).random(evidence.n_images)
    return (
        Border("Kept, a sample", True, _lowest(chance, mask, k)),
        Border("Dropped, a sample", False, _lowest(chance, ~mask, k)),
    )


def _ends(easy: FloatArray, mask: BoolArray, k: int) -> tuple[Border, ...]:
    if not mask.any() or mask.all():
        return ()
    low, high = easy[mask].min(), easy[mask].max()
    rows = (
        Border("Dropped, just too hard", False, _lowest(-easy, ~mask & (easy <= low), k)),
        Border("Kept, the hardest", True, _lowest(easy, mask, k)),
        Border("Kept, the easiest", True, _lowest(-easy, mask, k)),
        Border("Dropped, just too easy", False, _lowest(easy, ~mask & (easy >= high), k)),
    )
    return tuple(row for row in rows if row.positions)


def _lowest(values: FloatArray, mask: BoolArray, k: int) -> tuple[int, ...]:
    """Positions of the ``k`` smallest values where ``mask``, smallest first."""
    found = np.flatnonzero(mask)
    chosen = values[found]
    if len(found) > k:
        part = np.argpartition(chosen, k)[:k]
        found, chosen = found[part], chosen[part]
    return tuple(found[np.lexsort((found, chosen))].tolist())


@dataclass(frozen=True, eq=False)
class Comparison:
    """K coresets side by side: ``jaccard`` (K, K), how many images are kept by all, by some, by none."""

    jaccard: FloatArray
    n_always: int
    n_contested: int
    n_never: int
    always: tuple[int, ...]
    contested: tuple[int, ...]


def compare(coresets: Sequence[Coreset], k: int = 2 * BORDER) -> Comparison:
    """Overlap of coresets of one pool, and ``k`` examples of images all keep and of images they disagree about most.

    >>> first, second = (Coreset(np.array(kept), "random", {}, 0, 0.5, 4) for kept in ([0, 1], [1, 2]))
    >>> compare([first, second]).jaccard.round(2).tolist(), compare([first, second]).contested
    ([[1.0, 0.33], [0.33, 1.0]], (0, 2))
    """
    masks = np.stack([coreset.mask for coreset in coresets])
    together = masks.astype(np.float32) @ masks.T.astype(np.float32)
    sizes = masks.sum(axis=1)
    union = sizes[:, None] + sizes[None] - together
    votes = masks.sum(axis=0)
    n = len(coresets)
    rank = np.full(masks.shape[1], np.inf)
    rank[coresets[0].indices] = np.arange(len(coresets[0].indices))
    split = np.abs(votes - n / 2)  # most contested: half of them keep it
    return Comparison(
        jaccard=np.divide(together, union, out=np.ones_like(together, dtype=np.float64), where=union > 0),
        n_always=int((votes == n).sum()),
        n_contested=int(((votes > 0) & (votes < n)).sum()),
        n_never=int((votes == 0).sum()),
        always=_lowest(rank, votes == n, k),
        contested=_lowest(split.astype(np.float64), (votes > 0) & (votes < n), k),
    )


@dataclass(frozen=True, eq=False)
class Change:
    """What one coreset has that another has not. Positions; ``classes`` (C,) is the change in count of each class."""

    added: IntArray
    removed: IntArray
    classes: IntArray


def changed(before: Coreset, after: Coreset, labels: IntArray, n_classes: int) -> Change:
    added, removed = after.mask & ~before.mask, before.mask & ~after.mask
    counts = [np.bincount(labels[mask], minlength=n_classes) for mask in (added, removed)]
    return Change(np.flatnonzero(added), np.flatnonzero(removed), counts[0] - counts[1])
