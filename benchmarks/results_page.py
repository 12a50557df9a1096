"""Rewrite ``docs/results.md`` from ``benchmarks/results/``.

    .venv/bin/python benchmarks/results_page.py            writes the page
    .venv/bin/python benchmarks/results_page.py --check    says whether the page is up to date, and changes nothing

A comparison that was not run has no row. Nothing is measured here.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import RESULTS, ROOT
from comparisons import Comparison, comparisons
from older_studies import older_studies
from results_words import BEGINNING, BY_CLASS, BY_METHOD, BY_POOL, COMMANDS, COUNTS, FINDINGS, POOLS_END

from semiprune_core.evaluation.view import (
    COLUMNS,
    RANDOM,
    Difference,
    EvaluationView,
    paired_difference,
    percent,
    seeds,
    view_of,
)
from semiprune_core.methods import METHODS

PAGE = ROOT / "docs" / "results.md"
CHOSEN = "chosen"
OURS = ("semi_aum_cutoff", "semi_dual_beta")
TITLES = {CHOSEN: "The chosen one of the two"}
UNRANKED = tuple(name for name in METHODS if METHODS[name].labels_from == "reference")
BESIDE = {"balanced_accuracy": "balanced accuracy", "worst_class_accuracy": "worst class"}
OUTCOMES = ("won", "tied", "lost")


def opened(one: Comparison, measure: str = "test_accuracy") -> EvaluationView:
    """The trials with the methods' titles; ``measure`` stands in for the accuracy."""
    found, n_test = one.trials, one.record["n_test"]
    table = pd.DataFrame({name: found.get(name, "") for name in COLUMNS}, index=found.index)
    table = table.assign(n_train=1, n_test=n_test, n_correct=0)
    titles = {**{name: METHODS.title(name) for name in METHODS}, **TITLES}
    return view_of(table.assign(test_accuracy=found[measure], note=""), titles=titles, unranked=UNRANKED)


def outcome(difference: Difference | None) -> str | None:
    """``won`` or ``lost`` beyond the interval, ``tied`` where it holds 0; None without an interval."""
    if difference is None or difference.half is None:
        return None
    return {"above": "won", "below": "lost"}.get(difference.verdict, "tied")


def against_best(view: EvaluationView, method: str, ratio: float) -> Difference | None:
    """``method`` minus the best other method that uses no more labels, Random among them: the one with the highest
    mean, found with hindsight."""
    others = [name for name in view.methods if name not in (*OURS, CHOSEN, *view.unranked)]
    cells = {name: cell for name in others if (cell := view.cell(name, ratio)) is not None}
    mine = view.cell(method, ratio)
    if mine is None or not cells:
        return None
    best = max(cells.values(), key=lambda cell: cell.mean)
    return paired_difference(mine.by_seed, best.by_seed, mine.n_test)


def points(difference: Difference | None, *, bold: bool = True) -> str:
    if difference is None:
        return "–"
    half = "" if difference.half is None else f" ± {100 * difference.half:.1f}"
    text = f"{100 * difference.mean:+.1f}{half}".replace("-", "−")
    return f"**{text}**" if bold and outcome(difference) in ("won", "lost") else text


def counted(outcomes: Iterable[str | None]) -> str:
    """``3 / 1 / 0``: won, tied, lost."""
    counts = Counter(outcomes)
    return " / ".join(str(counts[name]) for name in OUTCOMES)


def counts(found: Sequence[Comparison]) -> Iterator[str]:
    """Cells won, tied and lost by our methods."""
    views = [opened(one) for one in found]
    cells = [(view, ratio) for view in views for ratio in view.ratios]
    yield COUNTS.format(n_cells=len(cells))
    yield "| method | against Random | at 70% to 90% | against the best other | first or tied with it |"
    yield "|---|---|---|---|---|"
    for method in (CHOSEN, *OURS):
        chance = {cell: outcome(_over_random(*cell, method)) for cell in cells}
        high = [found for (_, ratio), found in chance.items() if ratio >= 0.7]
        best = [outcome(against_best(view, method, ratio)) for view, ratio in cells]
        known = [verdict for verdict in best if verdict is not None]
        first = f"{len(known) - known.count('lost')} of {len(known)}"
        title = views[0].title(method) if views else method
        yield f"| {title} | {counted(chance.values())} | {counted(high)} | {counted(best)} | {first} |"
    yield ""


def _over_random(view: EvaluationView, ratio: float, method: str) -> Difference | None:
    cell = view.cell(method, ratio)
    return cell.difference if cell is not None else None


def by_pool(found: Sequence[Comparison]) -> Iterator[str]:
    """Points above Random of our methods, pool by pool."""
    ratios = sorted({ratio for one in found for ratio in opened(one).ratios})
    yield BY_POOL
    yield f"| pool | method | {' | '.join(percent(ratio) for ratio in ratios)} |"
    yield f"|---|---|{'---|' * len(ratios)}"
    for one in found:
        view, name = opened(one), one.title
        accuracy = [view.cell(RANDOM, ratio) for ratio in ratios]
        shown = " | ".join("–" if cell is None else f"{100 * cell.mean:.1f}%" for cell in accuracy)
        yield f"| {name}, {seeds(one.trials['seed'].nunique())} | Random's accuracy | {shown} |"
        for method in (CHOSEN, *OURS):
            cells = " | ".join(points(_over_random(view, ratio, method)) for ratio in ratios)
            yield f"| | {view.title(method)} | {cells} |"
        yield f"| | Best other | {' | '.join(_best_other(view, ratio) for ratio in ratios)} |"
    yield ""


def _best_other(view: EvaluationView, ratio: float) -> str:
    others = [name for name in view.methods if name not in (RANDOM, CHOSEN, *OURS, *view.unranked)]
    cells = [cell for name in others if (cell := view.cell(name, ratio)) is not None and cell.difference]
    if not cells:
        return "–"
    best = max(cells, key=lambda cell: cell.mean)
    return f"{view.title(best.method)} {points(best.difference)}"


def by_method(found: Sequence[Comparison]) -> Iterator[str]:
    """Every method's gain over Random, averaged over the pools, and its cells."""
    views = [opened(one) for one in found]
    ratios = sorted({ratio for view in views for ratio in view.ratios})
    names = [CHOSEN, *OURS, *(name for name in METHODS if name not in (*OURS, RANDOM))]
    yield BY_METHOD
    yield f"| method | pools | {' | '.join(percent(ratio) for ratio in ratios)} | won / tied / lost |"
    yield f"|---|---|{'---|' * (len(ratios) + 1)}"
    for name in names:
        mine = [view for view in views if name in view.methods]
        if not mine:
            continue
        by_ratio = {ratio: [d for view in mine if (d := _over_random(view, ratio, name))] for ratio in ratios}
        means = [f"{100 * np.mean([d.mean for d in some]):+.1f}" if some else "–" for some in by_ratio.values()]
        outcomes = counted(outcome(d) for some in by_ratio.values() for d in some)
        title = mine[0].title(name) + (" (all true labels)" if name in UNRANKED else "")
        yield f"| {title} | {len(mine)} | {' | '.join(means).replace('-', '−')} | {outcomes} |"
    yield ""


def by_class(found: Sequence[Comparison]) -> Iterator[str]:
    """Balanced and worst-class accuracy beside the mean."""
    yield BY_CLASS
    high = (0.5, 0.7, 0.9)
    yield f"| pool | measure | {' | '.join(f'Random at {percent(r)} | chosen' for r in high)} |"
    yield f"|---|---|{'---|---|' * len(high)}"
    for one in found:
        name = one.title
        for measure, words in {"test_accuracy": "accuracy", **BESIDE}.items():
            view, cells = opened(one, measure), []
            for ratio in high:
                chance = view.cell(RANDOM, ratio)
                cells.append("–" if chance is None else f"{100 * chance.mean:.1f}%")
                cells.append(points(_over_random(view, ratio, CHOSEN)))
            yield f"| {name} | {words} | {' | '.join(cells)} |"
            name = ""
    yield ""


def pools(found: Sequence[Comparison]) -> Iterator[str]:
    """What each pool is and how good the labels behind its scores were."""
    yield "## Pools\n\n| pool | drawn from images | labeled | test images | labels right | took Semi-DUAL | minutes |"
    yield "|---|---|---|---|---|---|---|"
    for one in found:
        record, facts = one.record, one.run["seeds"].values()
        right = [100 * seed["pseudo_label_accuracy"] for seed in facts]
        taken = [method == OURS[1] for seed in facts for method in seed["chosen"].values()]
        minutes = sum(sum(seed["minutes"].values()) for seed in facts) + (record.get("embedding_minutes") or 0)
        labeled = next(iter(facts))["n_labeled"]
        first, last = record["images"]
        share = f"{sum(taken)} of {len(taken)} cells" if taken else "–"
        yield (
            f"| {one.title} | {first:,} to {last:,} | {labeled:,} | {record['n_test']:,} | {np.mean(right):.0f}% | "
            f"{share} | {minutes:,.0f} |"
        )
    machine = found[0].record
    cpu, torch = machine["machine"], machine["versions"]["torch"]
    yield f"\n{cpu['cores']} busy cores ({cpu['cpu']}), torch {torch}, one thread each. {POOLS_END}"


def render(results: Path = RESULTS) -> str:
    """The page."""
    found = comparisons(results)
    lines = [BEGINNING]
    if found:
        lines += [*counts(found), *([FINDINGS] if results == RESULTS else [])]
        lines += [*by_pool(found), *by_method(found), *by_class(found), *pools(found)]
    lines += [COMMANDS, *older_studies(results)]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    page = render()
    is_stale = not PAGE.exists() or PAGE.read_text() != page
    if args.check:
        raise SystemExit(f"{PAGE} is not up to date." if is_stale else 0)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
