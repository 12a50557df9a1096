"""Sections of ``docs/results.md`` on studies of starting values from scratch, of pool sizes and of wrong labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from comparisons import TITLES, record_of

from semiprune_core.evaluation.view import RANDOM, Difference, half_interval, percent, view_of
from semiprune_core.methods import METHODS
from semiprune_core.selection import Basis, default_knobs, learned_from

EARLIER = """## Earlier studies, by nets from scratch

On Fashion-MNIST and CIFAR-10 as a whole, with their test images: they say where starting values come from, and claim
nothing.
"""
STARTING_VALUES = """### Starting values

Points above Random with the starting value of a project (in brackets the best of all that were tried): mean over the
seeds, half the 95% interval where there are three or more. Everything that was tried is in the files.
"""
OURS = ("semi_aum_cutoff", "semi_dual_beta")


def older_studies(results: Path) -> Iterator[str]:
    """What there is of them."""
    sizes = [path for path in sorted(results.glob("sizes_*.csv")) if path.with_suffix(".json").exists()]
    trials = {path: read_trials(path) for path in results.glob("defaults_*.csv")}
    if sizes or trials or (results / "aum.json").exists():
        yield EARLIER
    for path in sizes:
        yield from by_pool_size(pd.read_csv(path, keep_default_na=False), record_of(path)["command"])
    if (results / "aum.json").exists():
        yield from wrong_labels(results / "aum.json")
    if trials:
        yield from starting_values(dict(sorted(trials.items(), key=lambda item: _pool(item[1].iloc[0]))))


def shown(difference: Difference) -> str:
    half = "" if difference.half is None else f" ± {100 * difference.half:.1f}"
    return f"{100 * difference.mean:+.1f}{half}"


def by_pool_size(rows: pd.DataFrame, command: str) -> Iterator[str]:
    """What ``benchmarks/sizes.py`` found: the gain over Random with the starting values, by the size of the pool."""
    gains, sizes = gains_by_size(rows), sorted(rows["n"].unique())
    title = TITLES.get(rows["dataset"].iloc[0], rows["dataset"].iloc[0])
    yield f"**Does a larger pool help?** {title}, {_seeds(rows)}, labels of one draw (`{command}`):\n"
    yield f"| points above Random | pruning | {' | '.join(f'{n:,} images' for n in sizes)} |"
    yield f"|---|---|{'---|' * len(sizes)}"
    for (method, ratio), by_size in gains.items():
        cells = [shown(by_size[n]) if n in by_size else "–" for n in sizes]
        yield f"| {METHODS.title(method)} | {percent(ratio)} | {' | '.join(cells)} |"
    yield ""


def gains_by_size(rows: pd.DataFrame) -> dict[tuple[str, float], dict[int, Difference]]:
    """The paired gain over Random by (method, ratio) and pool size."""
    gains: dict[tuple[str, float], dict[int, Difference]] = {}
    for n, some in rows.groupby("n"):
        for (method, ratio), cell in view_of(some).cells.items():
            if method in OURS and cell.difference is not None:
                gains.setdefault((method, ratio), {})[int(n)] = cell.difference
    return dict(sorted(gains.items()))


def wrong_labels(path: Path) -> Iterator[str]:
    """What ``benchmarks/aum.py`` found."""
    record = json.loads(path.read_text())
    runs = record["details"]["runs"]
    wrong, low, high = (np.mean([run[name] for run in runs]) for name in ("wrong", "aum_wrong", "aum_right"))
    shares = [f"{mean:.2f} with a cutoff of {cutoff}" for cutoff, mean in record["wrong_in_coreset_to_pool"].items()]
    yield (
        f"**Does AUM find wrong labels?** On the demo pool, over {len(runs)} draws of the labeled tenth "
        f"({100 * wrong:.0f}% of the labels wrong), the mean AUM of wrong labels is {low:.2f}, of right ones "
        f"{high:.2f}. In a coreset at {record['ratio']:.0%} the share of wrong labels, relative to the pool, is "
        f"{', '.join(shares)} (`{record['command']}`).\n"
    )


def read_trials(path: Path) -> pd.DataFrame:
    """Trials of ``benchmarks/defaults.py`` with their ``gain`` over Random of the same ratio and seed, in points."""
    rows = pd.read_csv(path, dtype={"knob": str}, keep_default_na=False)
    base = rows[rows["method"] == RANDOM].set_index(["pruning_ratio", "seed"])["test_accuracy"]
    at = pd.MultiIndex.from_frame(rows[["pruning_ratio", "seed"]])
    gain = 100 * (rows["test_accuracy"] - base.loc[at].to_numpy())
    return rows.assign(gain=gain, truth="pseudo" if path.stem.endswith("_pseudo") else "true")


def starting_values(trials: Mapping[Path, pd.DataFrame]) -> Iterator[str]:
    """What ``benchmarks/defaults.py`` tried: the starting value of a project and the best of those tried."""
    ratios = sorted({ratio for rows in trials.values() for ratio in rows["pruning_ratio"]})
    yield STARTING_VALUES
    yield f"| pool | labels wrong | method | {' | '.join(percent(ratio) for ratio in ratios)} |"
    yield f"|---|---|---|{'---|' * len(ratios)}"
    for path, rows in trials.items():
        trial = rows.iloc[0]
        trained = "" if trial["truth"] == "true" else ", trained on pseudo-labels"
        name = (
            f"{TITLES.get(trial['dataset'], trial['dataset'])} {trial['n']:,}{trained} (`{path.name}`, {_seeds(rows)})"
        )
        for method in OURS:
            mine = rows[rows["method"] == method]
            cells = [_start_and_best(mine[mine["pruning_ratio"] == ratio]) for ratio in ratios]
            yield f"| {name} | {trial['pool_wrong']:.0%} | {METHODS.title(method)} | {' | '.join(cells)} |"
    yield ""


def _start_and_best(rows: pd.DataFrame) -> str:
    if rows.empty:
        return "–"
    by_knob = rows.groupby("knob")["gain"]
    start, best = _default(rows), by_knob.mean().max()
    if start not in by_knob.groups:
        return f"– ({best:+.1f})"
    mine = by_knob.get_group(start)
    half = half_interval(mine) if len(mine) > 2 else None
    return f"{mine.mean():+.1f}{f' ± {half:.1f}' if half else ''} ({best:+.1f})"


def _default(rows: pd.DataFrame) -> str:
    """The starting value for a method, pool and ratio, as its trials name it: of several cutoffs the one whose AUM is
    nearest to where a project starts."""
    trial = rows.iloc[0]
    if trial.get("aum_from", "") != "":
        far = (rows["aum_from"].astype(float) - learned_from(trial["pruning_ratio"], "accuracy")).abs()
        return str(rows["knob"][far.idxmin()])
    basis = Basis(int(trial["n"]), int(trial["epochs"]))
    knobs = default_knobs(trial["method"], trial["pruning_ratio"], basis)
    if "cutoff" in knobs.selector:
        return f"{knobs.selector['cutoff']:g}"
    return f"T={knobs.scores['dual_epochs']} c_D={knobs.selector['c_d']:g}"


def _seeds(rows: pd.DataFrame) -> str:
    counts = rows.groupby("n")["seed"].nunique()
    ends = " to ".join(dict.fromkeys(f"{value:,}" for value in (counts.min(), counts.max())))
    return f"{ends} seed{'s' * (ends != '1')}"


def _pool(trial: pd.Series) -> tuple[bool, bool, float, int]:
    """Which pool a trial is of, in the order of the page: true labels, Fashion-MNIST and many labels first."""
    return trial["truth"] != "true", trial["dataset"] != "fashion", -float(trial["labeled"]), int(trial["n"])
