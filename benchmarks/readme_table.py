"""Rewrite the tables of docs/measured.md and the figures of README.md from ``benchmarks/results/`` and the demo.

    .venv/bin/python benchmarks/readme_table.py            writes between the marks
    .venv/bin/python benchmarks/readme_table.py --check    says whether both are up to date, and changes nothing

A result that is not there has no row. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from comparisons import Comparison, comparisons

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from semiprune_core.demo.figures import figures  # noqa: E402

RESULTS = Path(__file__).with_name("results")
README, MEASURED = ROOT / "README.md", ROOT / "docs" / "measured.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
STORY, STORY_END = "<!-- story:begin -->", "<!-- story:end -->"
ALGORITHMS = {
    "supervised": "Supervised only",
    "pseudo_label": "Pseudo-label",
    "fixmatch": "FixMatch",
    "flexmatch": "FlexMatch",
    "freematch": "FreeMatch",
}

TAKEN = {"frozen": "a head on features", "scratch": "a net from scratch", "finetune": "a fine-tuned net"}
"""Where learning began, for readers."""

Result = dict[str, Any]


class Row(NamedTuple):
    """One row of the table: what was measured, our value, what it is compared with, rounds and spread."""

    what: str
    ours: str
    other: str = ""
    spread: str = ""


MAIN = {"random": "Random", "semi_aum_cutoff": "Semi-AUM+Cutoff", "semi_dual_beta": "Semi-DUAL+Beta"}
"""The methods of a comparison that the page shows; the others are in docs/results.md."""


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


def features(result: Result) -> Iterator[Row]:
    details = result["details"]
    yield Row(
        f"From the files of {details['n_images']:,} photographs to features, EfficientNet-Lite0 at 224 pixels",
        f"{result['images_per_s']:,.0f} images/s, {result['peak_mb']:,.0f} MB",
        f"{result['usual_images_per_s']:,.0f} images/s, decoded by Pillow in two workers, eager torch",
        f"{ends(details['ours'], ' images/s')}; cosine with eager torch at least {result['cosine_min']:.3f}",
    )


def labeling(result: Result) -> Iterator[Row]:
    yield Row(
        "Label page: from key press to next image, median and 95th percentile",
        f"{result['p50_ms']:.0f} ms, {result['p95_ms']:.0f} ms",
        f"{result['button_p50_ms']:.0f} ms, the same page with ordinary buttons",
        f"{result['sent']} labels sent, {result['saved']} saved, {result['wrong_image']} on a wrong image",
    )
    if "with_line_p50_ms" in result:
        yield Row(
            "The same while the labels are measured beside it",
            f"{result['with_line_p50_ms']:.0f} ms, {result['with_line_p95_ms']:.0f} ms",
            "",
            f"{result['line_after_s']:.1f} s from the twentieth label to the line that says how good they are",
        )


def predicting(result: Result) -> Iterator[Row]:
    details = result["details"]
    for kind, title in (("head", "a run on pretrained features"), ("net", "a run from scratch")):
        if f"{kind}_images_per_s" in result:
            yield Row(
                f"`predict` on {details['n_new']:,} new photographs, {title}",
                f"{result[f'{kind}_images_per_s']:,.0f} images/s",
                f"{result[f'{kind}_loop_images_per_s']:,.0f} images/s, a bare loop over the same files",
                ends(details[kind]["images_per_s"]["ours"], " images/s"),
            )


def auto(result: Result) -> Iterator[Row]:
    for pool, draws in result["details"].items():
        mean, each = result[pool], [f"{draw['accuracy']:.1%}" for draw in draws]
        yield Row(
            f"*Auto*, pool {pool}, {draws[0]['n_labels']:,} labels: share of the other images that is right",
            f"{mean['accuracy']:.1%}, balanced {mean['balanced']:.1%}",
            f"took {', '.join(dict.fromkeys(TAKEN[start] for start in mean['starts']))}",
            f"{count(len(draws), 'draw')}: {', '.join(each)}",
        )


def finishing(result: Result) -> Iterator[Row]:
    yield Row(
        f"*Finish* on {result['images']:,} images: from the last label to coresets, map and report",
        f"{result['seconds']['median']:.0f} s",
        "",
        ends(result["seconds"], " s"),
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
    ("features.json", features),
    ("labeling.json", labeling),
    ("fixmatch.json", fixmatch),
    ("ssl_quality_*.json", ssl_quality),
    ("auto_*.json", auto),
    ("finish.json", finishing),
    ("predict*.json", predicting),
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
        "methods, points above Random with intervals, and the settings](results.md)."
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
    """The page of measurements with the part between its marks made anew."""
    return _between(text, BEGIN, END, render(folder))


def retold(text: str, folder: Path = RESULTS) -> str:
    """The README with its story told by the present figures."""
    return _between(text, STORY, STORY_END, story(folder))


def _between(text: str, begin: str, end: str, content: str) -> str:
    before, mark, rest = text.partition(begin)
    _, closing, after = rest.partition(end)
    if not mark or not closing:
        raise SystemExit(f"The page has lost its marks {begin} and {end}.")
    return f"{before}{begin}\n{content}{end}{after}"


def story(folder: Path = RESULTS) -> str:
    """What it brings and what decides, in the figures that were measured."""
    parts = [
        "**Photographs, signs, and what decides.** " + " ".join(_decided(folder)),
        "**What it costs and brings.** " + _brought(),
    ]
    return "\n".join(f"{textwrap.fill(part, 118, break_on_hyphens=False)}\n" for part in parts) + "\n"


def _decided(folder: Path) -> Iterator[str]:
    photos, signs = (
        json.loads((folder / f"auto_{name}.json").read_text(encoding="utf-8")) for name in ("photos", "signs")
    )
    first, draws = signs["details"]["signs"][0], signs["details"]["signs"]
    frozen, scratch = (statistics.mean(_candidate(draw, start) for draw in draws) for start in ("frozen", "scratch"))
    compared = first["comparison"]
    low, high = sorted((-100 * compared["low"], -100 * compared["high"]))
    taken = sum(draw["start"] == "scratch" for draw in draws)
    yield (
        f"On 1,500 photographs of clothes with {photos['details']['photos'][0]['n_labels']} labels, a head on "
        f"pretrained features gets {photos['photos']['accuracy']:.0%} of the other images right "
        f"({_draws(photos['details']['photos'])}), a minute after the features are there."
    )
    yield (
        f"On 6,000 traffic signs with {first['n_labels']} labels the same kind of head gets {frozen:.0%} of held-out "
        f"labels right and a network trained from scratch {scratch:.0%}: what an encoder saw on the web tells it "
        "little about signs. The app tries both, compares them on labels that neither had seen, keeps the better one "
        f"(the network in {taken} of {len(draws)} draws), and says how sure that is (the first draw: by "
        f"{-100 * compared['difference']:.0f} points, 95% interval {low:.0f} to {high:.0f}). "
        f"It then gets {signs['signs']['accuracy']:.0%} of all other signs right ({_draws(draws)})."
    )


def _draws(draws: list[Result]) -> str:
    *most, last = sorted(f"{100 * draw['accuracy']:.0f}" for draw in draws)
    return f"{len(draws)} draws of the labels: {', '.join(most)} and {last}%"


def _candidate(draw: Result, start: str) -> float:
    return next(float(one["accuracy"]["value"]) for one in draw["candidates"] if one["start"] == start)


def _brought() -> str:
    demo = figures()
    if demo is None:
        raise SystemExit("The finished demo is not bundled here; the README tells its figures.")
    cells = (demo.coreset, demo.full, demo.random)
    coreset, full, random = (f"{100 * cell.mean:.1f} ± {100 * (cell.half or 0):.1f}%" for cell in cells)
    return (
        f"The bundled demo has {demo.n_pool:,} pictures. {demo.n_labeled:,} labels were enough to choose half of "
        f"them, and {demo.labels_saved:,} images nobody has to label at all. Trained on that half, with its labels, a "
        f"network gets {coreset} right on {demo.coreset.n_test:,} other images; on all pictures {full}, on a random "
        f"half {random} ({demo.coreset.n} seeds, ± is half the 95% interval)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Rewrite the measured figures of README.md and docs/measured.md.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where one is out of date")
    args = parser.parse_args()
    for path, again in ((MEASURED, rewritten), (README, retold)):
        text = path.read_text(encoding="utf-8")
        new = again(text)
        if args.check and new != text:
            raise SystemExit(f"{path.name} is out of date. Run: .venv/bin/python benchmarks/readme_table.py")
        if not args.check:
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
