"""The README's results, made from files as the benchmarks write them."""

import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest

from tests.support.trial_tables import fake_trials
from tests.support.trial_tables import table as trial_table

ROOT = Path(__file__).resolve().parents[2]
SAID = {
    "command": "benchmarks/some.py --seeds 3",
    "when": "2026-01-01T00:00:00+00:00",
    "machine": {"cpu": "Some CPU", "cores": 2, "memory_gb": 8},
    "versions": {"python": "3.11.7", "torch": "2.15.0"},
}
RESULTS = {
    "fixmatch": {
        "compact_ratio": 3.0,
        "compact_ours_images_per_s": 3000.0,
        "compact_ours_spread": [2900.0, 3100.0],
        "compact_usual_images_per_s": 1000.0,
        "details": {"rounds": 5},
    },
    "ssl_quality_demo": {
        "dataset": "demo",
        "preset": "quick",
        "settings": {"epochs": 100},
        "runs": {"supervised": 3 * [{"cpu_minutes": 1.2}], "fixmatch": [{"cpu_minutes": 4.5}]},
        "supervised": {"mean": 0.80, "std": 0.002, "minutes": 0.9, "gain_points": 0.0},
        "fixmatch": {"mean": 0.85, "std": None, "minutes": 4.0, "gain_points": 5.0},
    },
    "select_page": {"p50_ms_50k": 80.0, "p95_ms_50k": 120.0, "p50_ms_1281k": 400.0},
    "map_page": {"first_picture_ms_50k": 900, "lasso_ms_50k": 300, "umap_50k_s": None, "largest_message_mb": 1.2},
}


def script(name, monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def table(monkeypatch):
    return script("readme_table", monkeypatch)


def write(folder, names=tuple(RESULTS)):
    for name in names:
        (folder / f"{name}.json").write_text(json.dumps({**RESULTS[name], **SAID}))


def test_every_result_that_is_there_has_its_row(table, tmp_path):
    write(tmp_path)
    said = table.render(tmp_path)
    for words in (
        "| 3,000 images/s | 1,000 images/s",
        "| 80.0 ± 0.2% |",
        "| 85.0% | 5.0 points above supervised only |",
        "80 ms, 120 ms",
    ):
        assert words in said
    assert "| 3 seeds, 1.2 CPU minutes each |" in said and "| 1 seed, 4.5 CPU minutes each |" in said
    assert "900 ms, 300 ms" in said and "UMAP" not in said
    assert "2 cores (Some CPU, 8 GB)" in said and "`benchmarks/some.py`" in said
    assert all(line.count("|") == 6 for line in said.splitlines() if line.startswith("|"))


def test_a_result_that_is_not_there_has_none(table, tmp_path):
    write(tmp_path, ["select_page"])
    assert len([line for line in table.render(tmp_path).splitlines() if line.startswith("|")]) == 3


def test_trials_become_means_with_their_spread(table, tmp_path):
    rows = [("random", 0.9, 0, 0.80), ("random", 0.9, 1, 0.82), ("semi_aum_cutoff", 0.9, 0, 0.85), ("full", 0, 0, 0.9)]
    rows.append(("elfs", 0.9, 0, 0.7))
    lines = ["dataset,variant,method,pruning_ratio,seed,test_accuracy,minutes"]
    lines += [f"demo,longtail,{method},{ratio},{seed},{accuracy},1" for method, ratio, seed, accuracy in rows]
    (tmp_path / "paper_demo_longtail.csv").write_text("\n".join(lines) + "\n")
    facts = {"dataset": "demo", "variant": "longtail", "n_pool": 1200}
    (tmp_path / "paper_demo_longtail.json").write_text(json.dumps(facts))
    said = table.render(tmp_path)
    assert "| demo, long-tailed (0.1), 1,200 images; full pool 90.0 | Random | 81.0 ± 1.4 |" in said
    assert "|  | Semi-AUM+Cutoff | 85.0 |" in said and "elfs" not in said and "over 1 to 2 seeds" in said


def test_only_what_stands_between_the_marks_changes(table, tmp_path):
    write(tmp_path, ["select_page"])
    text = f"before\n{table.BEGIN}\nstale words\n{table.END}\nafter\n"
    new = table.rewritten(text, tmp_path)
    assert (
        new.startswith(f"before\n{table.BEGIN}\n|")
        and new.endswith(f"{table.END}\nafter\n")
        and "stale words" not in new
    )
    assert table.rewritten(new, tmp_path) == new
    with pytest.raises(SystemExit, match="marks"):
        table.rewritten("no marks here", tmp_path)


def test_the_results_in_the_readme_are_those_on_disk(table):
    text = (ROOT / "README.md").read_text()
    assert table.rewritten(text) == text, "Run .venv/bin/python benchmarks/readme_table.py"


COMPARED = {
    "dataset": "cifar10",
    "variant": "standard",
    "n_pool": 1000,
    "n_test": 200,
    "n_labeled": 100,
    "pseudo_label_accuracy": 0.8,
    "stage_minutes": {"evaluation": 12.0},
}


def test_the_results_page_is_that_of_the_result_files(monkeypatch):
    page, plots = script("results_page", monkeypatch).render()
    assert (ROOT / "docs" / "results.md").read_text() == page, "run benchmarks/results_page.py"
    assert all((ROOT / "docs" / "images" / name).read_text() == text for name, text in plots.items())


def test_a_comparison_is_shown_with_its_differences_and_the_papers_numbers(monkeypatch, tmp_path):
    trials = fake_trials(methods=("random", "semi_aum_cutoff", "zcore"))
    trials.to_csv(tmp_path / "paper_cifar10_standard.csv", index=False)
    (tmp_path / "paper_cifar10_standard.json").write_text(json.dumps({**COMPARED, **SAID}))
    page, plots = script("results_page", monkeypatch).render(tmp_path)
    assert "## CIFAR-10, 1,000 images\n" in page and list(plots) == ["results-cifar10_standard.svg"]
    at_90 = trials[trials["pruning_ratio"] == 0.9].groupby("method")["test_accuracy"].mean()
    assert f"{100 * at_90['semi_aum_cutoff']:.1f} ± " in page
    assert f"{100 * (at_90['semi_aum_cutoff'] - at_90['random']):+.1f} ± " in page
    assert "The paper's own numbers" in page and "| Random | 94.4 |" not in page.split("The paper's own")[0]
    assert "Starting values" not in page and "In short" not in page and " training runs, 3 seeds, " in page


def compared_pool(folder, file, trials, **facts):
    trials.to_csv(folder / f"paper_{file}.csv", index=False)
    (folder / f"paper_{file}.json").write_text(json.dumps({**COMPARED, **SAID, **facts}))


def test_several_comparisons_are_told_in_short_by_the_better_of_our_two(monkeypatch, tmp_path):
    level = {"random": 0.70, "semi_aum_cutoff": 0.75, "semi_dual_beta": 0.72, "zcore": 0.74, "fully_supervised": 0.9}
    ahead = [(method, 0.7, seed, level[method] + 0.001 * seed) for method in level for seed in range(3)]
    compared_pool(tmp_path, "cifar10_standard_longer", trial_table(*ahead), name="longer")
    level |= {"zcore": 0.8, "semi_aum_cutoff": 0.71}  # as far apart by seed as on the average
    unclear = [(m, 0.7, s, level[m] + 0.02 * s * (m != "random")) for m in level for s in (-1, 0, 1)]
    compared_pool(tmp_path, "fashion_longtail", trial_table(*unclear), dataset="fashion", variant="longtail")
    page, _ = script("results_page", monkeypatch).render(tmp_path)
    short = page.split("## In short")[1].split("##")[0]
    assert "| CIFAR-10, 1,000 images, longer | **Semi-AUM +5.0 ± 0.2** | – | – | 1 of 1 | 0 of 1 |" in short
    assert (
        "| Fashion-MNIST, long-tailed (0.1), 1,000 images | Semi-DUAL +2.0 ± 5.0 | – | – | 0 of 1 | 1 of 1 |" in short
    )
    assert short.index("Fashion") < short.index("CIFAR-10,")


def test_more_seeds_of_some_methods_are_said(monkeypatch, tmp_path):
    rows = [
        (m, r, s, 0.7 + 0.01 * s) for m in ("random", "semi_dual_beta", "zcore") for r in (0.3, 0.9) for s in (0, 1)
    ]
    rows += [(method, 0.9, 2, 0.7) for method in ("random", "semi_dual_beta")]
    compared_pool(tmp_path, "cifar10_standard", trial_table(*rows))
    page, _ = script("results_page", monkeypatch).render(tmp_path)
    assert "14 training runs, 2 seeds, 3 for Random and Semi-DUAL+Beta from 90% on, " in page


def test_the_gain_is_shown_by_the_size_of_the_pool_with_its_interval(monkeypatch, tmp_path):
    rows = []
    for n, gain in ((6000, 0.01), (60000, 0.03)):
        found = [("random", 0.7, seed, 0.8 + 0.01 * seed) for seed in range(3)]
        found += [("semi_aum_cutoff", 0.7, seed, 0.8 + gain + 0.01 * seed + 0.001 * (seed - 1)) for seed in range(3)]
        rows.append(
            trial_table(*found).assign(dataset="fashion", n=n, n_labeled=n // 10, wrong=600 / n, views=1000, epochs=5)
        )
    pd.concat(rows).to_csv(tmp_path / "sizes_fashion.csv", index=False)
    assert script("results_page", monkeypatch).render(tmp_path)[1] == {}  # not finished yet
    (tmp_path / "sizes_fashion.json").write_text(json.dumps(SAID))
    page, plots = script("results_page", monkeypatch).render(tmp_path)
    assert "| points above Random | pruning | 6,000 images | 60,000 images |" in page
    assert "| Semi-AUM+Cutoff | 70% | +1.0 ± 0.2 | +3.0 ± 0.2 |" in page  # 4.30 * 0.1 / sqrt(3)
    assert "| Random's accuracy | 70% | 81.0% | 81.0% |" in page
    assert "avoids | 70% | 5% | 16% |" in page  # 1 and 3 of the 19 points that Random gets wrong
    assert "behind the scores | | 10.0% | 1.0% |" in page
    assert "at most 1,000 images over all epochs (5 epochs). 3 seeds, 12 training runs" in page
    plot = plots["results-sizes_fashion.svg"]
    assert plot.count("<circle") == 3 and plot.count('stroke-opacity="0.55"') == 2 and "70% pruned" in plot


def test_wrong_labels_are_shown_by_cutoff_over_all_draws(monkeypatch, tmp_path):
    runs = [
        {"wrong": 0.1, "aum_wrong": low, "aum_right": 0.7, "wrong_in_coreset_to_pool": {"0.4": low}}
        for low in (0.2, 0.4)
    ]
    said = {"ratio": 0.7, "wrong_in_coreset_to_pool": {"0.4": 0.3}, "details": {"runs": runs}, **SAID}
    (tmp_path / "aum.json").write_text(json.dumps(said))
    page, _ = script("results_page", monkeypatch).render(tmp_path)
    assert "of wrong labels is 0.30, of right ones 0.70" in page and "| 0.4 | 0.30 | 0.20 to 0.40 |" in page
