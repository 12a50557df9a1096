"""Rewrite the results in README.md from ``benchmarks/results/``.

    .venv/bin/python benchmarks/readme_table.py            writes between the two marks
    .venv/bin/python benchmarks/readme_table.py --check    says whether README.md is up to date, and changes nothing

A result that is not there has no row. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from comparisons import Comparison, comparisons

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results")
README = ROOT / "README.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
ALGORITHMS = {
    "supervised": "Supervised only",
    "pseudo_label": "Pseudo-label",
    "fixmatch": "FixMatch",
    "flexmatch": "FlexMatch",
    "freematch": "FreeMatch",
}

Result = dict[str, Any]


class Row(NamedTuple):
    """One row of the table: what was measured, our value, what it is compared with, rounds and spread."""

    what: str
    ours: str
    other: str = ""
    spread: str = ""


MAIN = {"random": "Random", "semi_aum_cutoff": "Semi-AUM+Cutoff", "semi_dual_beta": "Semi-DUAL+Beta"}
"""The methods of a comparison that the README shows; the others are in docs/results.md."""


def ends(values: Result, unit: str = "") -> str:
    """Number of rounds, smallest and largest value."""
    return f"n = {values['n']}, {rounded(values['min'])} to {rounded(values['max'])}{unit}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def rounded(value: float) -> str:
    """Two or three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def importing(result: Result) -> Iterator[Row]:
    details = result["details"]
    yield Row(
        f"Import of {details['n_images']:,} images: decode, hash, thumbnail, training copy",
        f"{result['images_per_s']:,.0f} images/s",
        f"{result['baseline_images_per_s']:,.0f} images/s, a bare Pillow loop that only decodes and resizes",
        ends(details["ours"], " images/s"),
    )
    yield Row(
        f"Opening a pool table of {details['n_rows']:,} rows",
        f"{result['table_1300k_open_s']:.2f} s, {result['table_1300k_mb']:,.0f} MB",
        "",
        ends(details["table_open_s"], " s"),
    )


def labeling(result: Result) -> Iterator[Row]:
    yield Row(
        "Label page: from key press to next image, median and 95th percentile",
        f"{result['p50_ms']:.0f} ms, {result['p95_ms']:.0f} ms",
        f"{result['button_p50_ms']:.0f} ms, the same page with ordinary buttons",
        f"{result['sent']} labels sent, {result['saved']} saved, {result['wrong_image']} on a wrong image",
    )


def fixmatch(result: Result) -> Iterator[Row]:
    for net, title in (("compact", "compact network"), ("wrn_28_2", "WideResNet-28-2")):
        if f"{net}_ratio" in result:
            low, high = result[f"{net}_ours_spread"]
            yield Row(
                f"FixMatch training on the CPU, {title}",
                f"{result[f'{net}_ours_images_per_s']:,.0f} images/s",
                f"{result[f'{net}_usual_images_per_s']:,.0f} images/s, augmented by Pillow in two workers",
                f"n = {result['details']['rounds']}, {low:,.0f} to {high:,.0f} images/s",
            )


def ssl_quality(result: Result) -> Iterator[Row]:
    measured = [name for name in ALGORITHMS if isinstance(result.get(name), dict)]
    base = result.get("supervised")
    preset = " ".join([result["preset"], *(f"with {name} {value}" for name, value in result["settings"].items())])
    for name in measured:
        mine, runs = result[name], result["runs"][name]
        gain = _above(mine["gain_points"]) if base and name != "supervised" else ""
        spread = f" ± {100 * mine['std']:.1f}" if mine["std"] is not None else ""
        minutes = statistics.mean(run["cpu_minutes"] for run in runs)
        yield Row(
            f"Pseudo-label accuracy, pool {result['dataset']}, {ALGORITHMS[name]}, preset {preset}",
            f"{100 * mine['mean']:.1f}{spread}%",
            gain,
            f"{count(len(runs), 'seed')}, {minutes:.1f} CPU minutes each",
        )


def _above(points: float) -> str:
    return f"{abs(points):.1f} points {'above' if points >= 0 else 'below'} supervised only"


def scores(result: Result) -> Iterator[Row]:
    sizes, spread = result["details"]["sizes"], result["details"]["spread"]
    for key, (n, epochs) in (("50k", sizes["pool"]), ("1281k", sizes["imagenet"])):
        other = ""
        if key == "50k":
            other = (
                f"{result['time_ratio']:.0f} times the time and {result['disk_ratio']:.0f} times the disk, "
                f"four scores from stored logits ({sizes['classes']} classes)"
            )
        yield Row(
            f"All scores of {n:,} images over {epochs} epochs",
            f"{result[f'seconds_{key}']:.1f} s, {result[f'peak_mb_{key}']:,} MB",
            other,
            ends(spread[f"seconds_{key}"], " s"),
        )


def select_page(result: Result) -> Iterator[Row]:
    yield Row(
        "Select page, 50,000 images: from slider move to new picture, median and 95th percentile",
        f"{result['p50_ms_50k']:.0f} ms, {result['p95_ms_50k']:.0f} ms",
        "",
        f"1,281,167 images: {result['p50_ms_1281k']:.0f} ms",
    )


def map_page(result: Result) -> Iterator[Row]:
    umap = f", UMAP {result['umap_50k_s']:.0f} s" if result.get("umap_50k_s") else ""
    yield Row(
        "Map page, 50,000 images: first picture, and lasso to gallery",
        f"{result['first_picture_ms_50k']:,} ms, {result['lasso_ms_50k']:,} ms",
        "",
        f"largest message {result['largest_message_mb']:.1f} MB{umap}",
    )


def exporting(result: Result) -> Iterator[Row]:
    details = result["details"]
    yield Row("CSV export of a 50,000-image pool", f"{result['csv_50k_s']:.1f} s", "", ends(details["csv_50k"], " s"))
    yield Row(
        f"CSV export of {details['n_large']:,} rows",
        f"{result['csv_1281k_s']:.1f} s, {result['peak_mb_1281k']:,} MB",
        f"{result['pandas_csv_1281k_s']:.1f} s, pandas",
        ends(details["csv_1281k"], " s"),
    )


TABLE: tuple[tuple[str, Callable[[Result], Iterator[Row]]], ...] = (
    ("import.json", importing),
    ("labeling.json", labeling),
    ("fixmatch.json", fixmatch),
    ("ssl_quality_*.json", ssl_quality),
    ("scores.json", scores),
    ("select_page.json", select_page),
    ("map_page.json", map_page),
    ("export.json", exporting),
)


def coresets(found: Iterable[Comparison]) -> Iterator[str]:
    """Test accuracy on coresets, mean and spread over seeds: pools and methods by pruning ratio."""
    pools = {one.title: _by_cell(one.trials) for one in found}
    ratios = sorted({ratio for cells in pools.values() for method, ratio in cells if method != "full"})
    if not ratios:
        return
    n_seeds = sorted({len(values) for cells in pools.values() for values in cells.values()})
    yield (
        "Test accuracy (%) after learning from coresets with true labels, on images that nothing was tuned on, mean ± "
        f"standard deviation over {' to '.join(map(str, dict.fromkeys((n_seeds[0], n_seeds[-1]))))} seeds. [All "
        "methods, points above Random with intervals, and the settings](docs/results.md)."
    )
    yield ""
    yield f"| pool | method | {' | '.join(f'{ratio:.0%} removed' for ratio in ratios)} |"
    yield "|---" * (2 + len(ratios)) + "|"
    for title, cells in pools.items():
        pool = f"{title}; full pool {_mean(cells['full', 0.0])}" if ("full", 0.0) in cells else title
        for method, name in MAIN.items():
            yield f"| {pool} | {name} | {' | '.join(_mean(cells.get((method, ratio))) for ratio in ratios)} |"
            pool = ""


def _by_cell(trials: pd.DataFrame) -> dict[tuple[str, float], list[float]]:
    """Accuracies by method and ratio."""
    found = trials.groupby(["method", "pruning_ratio"])["test_accuracy"].apply(list)
    return {(str(method), float(ratio)): values for (method, ratio), values in found.items()}


def _mean(values: list[float] | None) -> str:
    if not values:
        return ""
    spread = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread}"


def render(folder: Path = RESULTS) -> str:
    """Everything between the two marks."""
    lines = [
        "| measurement | SemiPrune Studio | compared with | rounds and spread | benchmark |",
        "|---|---|---|---|---|",
    ]
    last: Result = {}
    for pattern, rows_of in TABLE:
        for path in sorted(folder.glob(pattern)):
            result = json.loads(path.read_text(encoding="utf-8"))
            command = f"`{result['command'].split()[0]}`"
            lines += [f"| {' | '.join((*row, command))} |" for row in rows_of(result)]
            when = result.get("when") or result["date"]
            last = max(last, {"when": when, **result}, key=lambda other: other.get("when", ""))
    if last:
        box, versions = last["machine"], last["versions"]
        processor = box.get("cpu", box.get("processor", "unknown processor"))
        memory = f", {box['memory_gb']} GB" if "memory_gb" in box else ""
        lines += [
            "",
            f"Medians on {box['cores']} cores ({processor}{memory}), no GPU, Python {versions['python']}, torch "
            f"{versions['torch']}. The machine was not idle: each file in `benchmarks/results/` records the load.",
            "",
        ]
    lines += coresets(comparisons(folder))
    return "\n".join(lines).strip() + "\n"


def rewritten(text: str, folder: Path = RESULTS) -> str:
    """``text`` with the part between the marks made anew."""
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"README.md has lost its marks {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n{render(folder)}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Rewrite the results in README.md.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where it is out of date")
    args = parser.parse_args()
    text = README.read_text(encoding="utf-8")
    new = rewritten(text)
    if args.check and new != text:
        raise SystemExit("The results in README.md are out of date. Run: .venv/bin/python benchmarks/readme_table.py")
    if not args.check:
        README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
