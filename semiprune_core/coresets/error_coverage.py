"""How often the interval of a coreset's label error holds the truth: simulated draws of labels on a scored pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from semiprune_core import streams
from semiprune_core.coresets import error_model
from semiprune_core.coresets.build import CoresetRequest, choose_coreset
from semiprune_core.learning.frozen.intervals import score_interval
from semiprune_core.learning.quality import wilson
from semiprune_core.records import BoolArray, Evidence, FloatArray
from semiprune_core.selection import Basis
from semiprune_core.streams import Purpose

PER_CORESET = 50
"""Draws of labels for each draw of a coreset."""


@dataclass(frozen=True, eq=False)
class KnownPool:
    """A scored pool of which it is known where the model is ``wrong`` (N,)."""

    name: str
    evidence: Evidence
    confidence: FloatArray
    wrong: BoolArray


@dataclass(frozen=True)
class Coverage:
    """Over ``n_draws`` draws of ``n_labels``: the share of intervals that hold the truth, how often the truth lies
    ``below`` them, their mean ``width``, and both of the estimate that was shown before (``earlier``): what is right
    and kept, by the share that is kept, cut to 0..1.

    ``told`` is how often it would be said that more of the coreset's labels are wrong than of the pool's.
    """

    pool: str
    method: str
    pruning_ratio: float
    n_labels: int
    n_draws: int
    error: float
    pool_error: float
    estimate: float
    covered: float
    below: float
    width: float
    earlier_covered: float
    earlier_width: float
    told: float

    def to_json(self) -> dict[str, Any]:
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def simulate_error(
    pool: KnownPool, method: str, pruning_ratio: float, n_labels: int, n_draws: int, seed: int = 0
) -> Coverage:
    """Hold out ``n_labels`` of the pseudo-labeled images at random, and compare the interval with the truth.

    The scores of images whose answer is wrong are those they have with the wrong label, which the estimate never sees.
    """
    evidence = pool.evidence
    human = evidence.human_mask
    assert human is not None
    basis = Basis.learned(evidence.scores["aum"], None)
    rows = []
    for number in range(-(-n_draws // PER_CORESET)):
        request = CoresetRequest(method=method, pruning_ratio=pruning_ratio, seed=number)
        mask = choose_coreset(evidence, request, basis).mask
        rng = streams.rng(seed, Purpose.COVERAGE, n_labels, number)
        drawn = [rng.permutation(np.flatnonzero(~human))[:n_labels] for _ in range(min(PER_CORESET, n_draws))]
        rows.append(_rows(pool, method, mask, drawn))
    table = np.concatenate(rows)[:n_draws]
    truth, everywhere, value, low, high, more, earlier_low, earlier_high = table.T
    return Coverage(
        pool.name,
        method,
        pruning_ratio,
        n_labels,
        len(table),
        float(truth.mean()),
        float(everywhere.mean()),
        float(value.mean()),
        float(((low <= truth) & (truth <= high)).mean()),
        float((truth < low).mean()),
        float((high - low).mean()),
        float(((earlier_low <= truth) & (truth <= earlier_high)).mean()),
        float((earlier_high - earlier_low).mean()),
        float(more.mean()),
    )


def _rows(pool: KnownPool, method: str, mask: BoolArray, drawn: Sequence[np.ndarray]) -> FloatArray:
    """(D, 8): truth, the pool's error, estimate, its ends, whether more is said, the ends that were shown before."""
    from_score = -np.asarray(pool.evidence.scores["aum"] if method == "semi_aum_cutoff" else pool.evidence.mean_prob)
    human = np.asarray(pool.evidence.human_mask)
    places = error_model.places_of(-pool.confidence, from_score, mask, ~human)
    cells = error_model.cells_of(places, ~human)
    n_cells, n = len(cells.shares), len(drawn[0])
    right, wrong = np.zeros((len(drawn), n_cells)), np.zeros((len(drawn), error_model.CONFIDENCE_BINS))
    facts = np.zeros((len(drawn), 5))
    for row, held in enumerate(drawn):
        is_wrong = pool.wrong[held]
        right[row] = np.bincount(places.cells[held[~is_wrong]], minlength=n_cells)
        wrong[row] = np.bincount(places.confidence[held[is_wrong]], minlength=wrong.shape[1])
        rest = ~human
        rest[held] = False
        kept = mask & rest
        earlier = wilson(int((~is_wrong & mask[held]).sum()), n)
        ends = [min(max(1 - part / mask[rest].mean(), 0.0), 1.0) for part in (earlier.high, earlier.low)]
        facts[row] = pool.wrong[kept].mean(), pool.wrong[rest].mean(), kept.sum(), *ends
    if method == "random":
        share = wrong.sum(1) / n
        ends = [score_interval(p, 1 / (1 / n + 1 / n_kept)) for p, n_kept in zip(share, facts[:, 2], strict=True)]
        return np.column_stack([facts[:, :2], share, ends, np.zeros(len(drawn)), facts[:, 3:]])
    (low, value, high), _, more = error_model.estimated_shares(cells, right, wrong, facts[:, 2])
    return np.column_stack([facts[:, :2], value, low, high, more >= error_model.LIKELY, facts[:, 3:]])


def made_up_pool(kind: str, seed: int = 0, n: int = 6000) -> KnownPool:
    """A pool whose errors have another structure: "confident" (sure answers are wrong as often as others, and errors
    gather at hard scores), "between" (errors gather at middling scores), "apart" (nearly all errors, and nothing else,
    are at the hard end).
    """
    rng = streams.rng(seed, Purpose.COVERAGE, n)
    doubt = rng.standard_normal(n)
    hardness = 0.5 * doubt + np.sqrt(0.75) * rng.standard_normal(n)
    level = {
        "confident": -2.6 - 0.3 * doubt + 1.6 * hardness,
        "between": -3.0 + 0.3 * doubt + 3 * np.exp(-(((hardness - 0.3) / 0.6) ** 2)),
        "apart": np.where(hardness > 1.3, 1.5, -4.0) + 0.8 * doubt,
    }[kind]
    wrong = rng.random(n) < 1 / (1 + np.exp(-level))
    mean_prob = 1 / (1 + np.exp(1.2 * hardness - 1.6))
    dual = (1 - mean_prob) * np.sqrt(mean_prob * (1 - mean_prob) + 0.02 * rng.random(n))
    scores = {"aum": 2 * mean_prob - 1 + 0.05 * rng.standard_normal(n), "dual": dual}
    human = np.zeros(n, dtype=bool)
    human[rng.permutation(n)[: n // 10]] = True
    evidence = Evidence(n, scores, mean_prob, labels=np.zeros(n, np.int64), human_mask=human)
    return KnownPool(kind, evidence, 1 / (1 + np.exp(doubt - 2)), wrong)
