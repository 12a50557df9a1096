"""Rewrite ``docs/results.md`` and its plots from ``benchmarks/results/``.

    .venv/bin/python benchmarks/results_page.py            writes the page and docs/images/results-*.svg
    .venv/bin/python benchmarks/results_page.py --check    says whether the page is up to date, and changes nothing

A comparison that was not run has no section. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from common import RESULTS, ROOT

from semiprune_core.evaluation_plot import svg_plot
from semiprune_core.evaluation_view import FULL, RANDOM, Difference, EvaluationView, half_interval, percent, view_of
from semiprune_core.methods import METHODS
from semiprune_core.paper_results import RESULTS as PAPER_FILE

PAGE = ROOT / "docs" / "results.md"
PICTURES = ROOT / "docs" / "images"
OURS = ("semi_aum_cutoff", "semi_dual_beta")
TITLES = {"fashion": "Fashion-MNIST", "cifar10": "CIFAR-10", "cifar10_12k": "CIFAR-10"}
VARIANTS = {"standard": "", "corrupt": ", 30% corrupted", "longtail": ", long-tailed (0.1)"}
INTRODUCTION = """# Results

What came out when the whole line was run on real images: a random tenth labeled, pseudo-labels, one run for the scores,
coresets, and a network trained from scratch on each of them with true labels. Every table is made from the files in
`benchmarks/results/`, which hold one row per training; baselines that win are shown like everything else.

**Scale.** The paper trains ResNet-18 for 200 epochs on 50,000 images and more, on GPUs. Everything here was run on two
CPU cores: pools of some thousand small images, a compact network, 30 epochs for the scores and 30 to 90 for each
coreset. Accuracies are therefore lower than the paper's and not comparable with them; what can be compared is which
method is ahead of Random, and by how much. ± is the standard deviation over seeds; differences to Random are paired by
seed, with half their 95% interval (Student), in points.
"""


def methods_of(view: EvaluationView) -> list[str]:
    """Ours behind Random, the others after them."""
    return sorted(view.methods, key=lambda one: (one != RANDOM, one not in OURS))


def table(view: EvaluationView) -> Iterator[str]:
    """Accuracy in percent, the best at a ratio bold, the second underlined."""
    yield f"| method | {' | '.join(percent(ratio) for ratio in view.ratios)} |"
    yield f"|---|{'---|' * len(view.ratios)}"
    marks = {ratio: view.marks(ratio) for ratio in view.ratios}
    for method in methods_of(view):
        cells = []
        for ratio in view.ratios:
            cell = view.cell(method, ratio)
            said = "–" if cell is None else f"{100 * cell.mean:.1f}" + (f" ± {100 * cell.sd:.1f}" if cell.sd else "")
            mark = marks[ratio].get(method)
            cells.append(f"**{said}**" if mark == "best" else f"<u>{said}</u>" if mark == "second" else said)
        yield f"| {view.title(method)} | {' | '.join(cells)} |"


def differences(view: EvaluationView) -> Iterator[str]:
    yield f"| above Random, points | {' | '.join(percent(ratio) for ratio in view.ratios)} |"
    yield f"|---|{'---|' * len(view.ratios)}"
    for method in methods_of(view):
        if method != RANDOM:
            found = [view.cell(method, ratio) for ratio in view.ratios]
            cells = [_points(cell.difference) if cell and cell.difference else "–" for cell in found]
            yield f"| {view.title(method)} | {' | '.join(cells)} |"


def _points(difference: Difference) -> str:
    half = "" if difference.half is None else f" ± {100 * difference.half:.1f}"
    return f"{100 * difference.mean:+.1f}{half}"


def comparison(path: Path) -> Iterator[str]:
    """One run of ``benchmarks/paper.py``."""
    said = json.loads(path.with_suffix(".json").read_text())
    view = view_of(
        pd.read_csv(path),
        titles={name: METHODS.title(name) for name in METHODS},
        unranked=[name for name in METHODS if METHODS[name].labels_from == "reference"],
    )
    title = TITLES.get(said["dataset"], said["dataset"]) + VARIANTS[said["variant"]]
    minutes = sum(said["stage_minutes"].values())
    yield f"## {title}\n"
    yield (
        f"{said['n_pool']:,} images, {said['n_labeled']:,} of them labeled, {said['n_test']:,} test images; "
        f"{100 * said['pseudo_label_accuracy']:.1f}% of the labels that the scores were made with are right. "
        f"{view.n_trials} trainings, {minutes:,.0f} minutes on {said['machine']['cores']} cores "
        f"({said['machine']['cpu']}), torch {said['versions']['torch']}. `{said['command']}`\n"
    )
    if view.full is not None:
        yield f"The whole pool gives {100 * view.full.mean:.1f}%.\n"
    yield f"![Accuracy against pruning ratio](images/results-{path.stem.removeprefix('paper_')}.svg)\n"
    yield from table(view)
    yield ""
    yield from differences(view)
    yield ""
    theirs = paper_table(said["dataset"], said["variant"], view)
    if theirs:
        yield from theirs


def paper_table(dataset: str, variant: str, view: EvaluationView) -> list[str]:
    """The paper's numbers where it has the same data set."""
    rows = pd.read_csv(PAPER_FILE)
    rows = rows[(rows["dataset"] == dataset.removesuffix("_12k")) & (rows["table"] == "coresets")]
    if variant != "standard" or rows.empty:
        return []
    wide = rows[rows["method"] != FULL].pivot(index="title", columns="pruning_ratio", values="test_accuracy_percent")
    order = rows["title"].drop_duplicates()
    lines = ["The paper's own numbers, from all of the data set and ResNet-18 for 200 epochs:\n"]
    lines.append(f"| the paper | {' | '.join(percent(ratio) for ratio in wide.columns)} |")
    lines.append(f"|---|{'---|' * len(wide.columns)}")
    lines += [
        f"| {title} | {' | '.join('–' if np.isnan(v) else f'{v:.1f}' for v in wide.loc[title])} |"
        for title in order
        if title in wide.index
    ]
    return [*lines, ""]


def starting_values(paths: list[Path]) -> Iterator[str]:
    """What ``benchmarks/defaults.py`` tried."""
    yield "## Starting values\n"
    yield (
        "Which cutoff or c_D to begin with where nothing was searched: points above Random, mean over seeds, with half "
        "the 95% interval where there are three seeds or more. *Wrong* is the share of wrong pseudo-labels in the "
        "coreset; hard images teach most and have most of them, which does no harm once people have "
        "labeled the coreset.\n"
    )
    for path in paths:
        rows = pd.read_csv(path)
        base = rows[rows["method"] == "random"].set_index(["pruning_ratio", "seed"])["test_accuracy"]
        at = pd.MultiIndex.from_frame(rows[["pruning_ratio", "seed"]])
        rows = rows.assign(gain=100 * (rows["test_accuracy"] - base.loc[at].to_numpy()))
        name, n = TITLES.get(rows["dataset"].iloc[0], rows["dataset"].iloc[0]), int(rows["n"].iloc[0])
        yield f"**{name}, {n:,} images**, {rows['seed'].nunique()} seeds (`{path.name}`):\n"
        yield "| pruning | method | knob | accuracy | above Random | wrong |\n|---|---|---|---|---|---|"
        for (ratio, method), some in rows.groupby(["pruning_ratio", "method"], sort=True):
            for knob, cell in some.fillna({"knob": ""}).groupby("knob", sort=True):
                half = half_interval(cell["gain"]) if len(cell) > 2 else None
                gain = "" if method == "random" else f"{cell['gain'].mean():+.1f}" + (f" ± {half:.1f}" if half else "")
                yield (
                    f"| {percent(ratio)} | {METHODS.title(method)} | {_knob(method, str(knob))} "
                    f"| {100 * cell['test_accuracy'].mean():.1f}% | {gain} | {100 * cell['wrong'].mean():.0f}% |"
                )
        yield ""


def _knob(method: str, knob: str) -> str:
    return f"cutoff {knob}" if method == "semi_aum_cutoff" else knob.replace("c_D=", "c_D ").replace("T=", "T ")


def render(results: Path = RESULTS) -> tuple[str, dict[str, str]]:
    """The page, and its plots by file name."""
    lines, plots = [INTRODUCTION], {}
    for path in sorted(results.glob("paper_*.csv"), key=_order):
        lines += comparison(path)
        plots[f"results-{path.stem.removeprefix('paper_')}.svg"] = svg_plot(view_of(pd.read_csv(path)))
    trials = sorted(results.glob("defaults_*.csv"))
    if trials:
        lines += starting_values(trials)
    return "\n".join(lines).rstrip() + "\n", plots


def _order(path: Path) -> tuple[bool, int]:
    variant = path.stem.rpartition("_")[2]
    return "fashion" not in path.stem, list(VARIANTS).index(variant) if variant in VARIANTS else len(VARIANTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    page, plots = render()
    files = {PAGE: page, **{PICTURES / name: text for name, text in plots.items()}}
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    if args.check:
        raise SystemExit(f"Not up to date: {', '.join(map(str, stale))}." if stale else 0)
    for path in stale:
        path.write_text(files[path])


if __name__ == "__main__":
    main()
