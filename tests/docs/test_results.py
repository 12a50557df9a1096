"""The figures of README and docs, made from files as the benchmarks write them."""

import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest

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
    compared_pool(tmp_path, "fashion", "longtail-0.1", rows, n_pool=1200)
    said = table.render(tmp_path)
    title = "Fashion-MNIST, long-tailed (0.1), 1,200 images; pretrained features, probe"
    assert f"| {title}; full pool 90.0 | Random | 81.0 ± 1.4 |" in said
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


def test_the_figures_of_the_readme_and_of_the_measured_page_are_those_on_disk(table):
    for path, again in ((table.README, table.retold), (table.MEASURED, table.rewritten)):
        text = path.read_text()
        assert again(text) == text, "Run .venv/bin/python benchmarks/readme_table.py"


SEED = {"pseudo_label_accuracy": 0.8, "n_labeled": 100, "chosen": {"0.7": "semi_dual_beta"}, "minutes": {"search": 2.0}}


def compared_pool(folder, dataset, variant, rows, **facts):
    """A kept comparison: rows (method, ratio, seed, accuracy) by probe on pretrained features."""
    columns = ["method", "pruning_ratio", "seed", "test_accuracy"]
    trials = pd.DataFrame(rows, columns=columns).assign(dataset=dataset, variant=variant, start="frozen", test="probe")
    trials = trials.assign(balanced_accuracy=trials["test_accuracy"] - 0.1, minutes=0.1)
    trials["worst_class_accuracy"] = trials["balanced_accuracy"] - 0.2
    seeds = {str(seed): SEED for seed in sorted(set(trials["seed"]))}
    path = folder / f"paper_{dataset}_{variant.replace('-', '_')}.csv"
    trials.to_csv(path, index=False)
    record = {"dataset": dataset, "variant": variant, "n_pool": 1000, "n_test": 1000, "images": [1, 2000], **SAID}
    path.with_suffix(".json").write_text(json.dumps({**record, "runs": {"frozen probe": {"seeds": seeds}}, **facts}))


def test_the_results_page_is_that_of_the_result_files(monkeypatch):
    page = script("results_page", monkeypatch).render()
    assert (ROOT / "docs" / "results.md").read_text() == page, "run benchmarks/results_page.py"


def leads(**by_method):
    """Rows at 70% of three seeds in which a method leads Random by its (mean, spread over the seeds) in points."""
    gains = {"random": (0, 0), **by_method}
    return [
        (method, 0.7, seed, round(0.7 + (mean + spread * (seed - 1)) / 100 + 0.01 * seed, 4))
        for method, (mean, spread) in gains.items()
        for seed in range(3)
    ]


def test_cells_are_won_tied_and_lost_by_the_interval_of_paired_differences(monkeypatch, tmp_path):
    ours = {"chosen": (3, 0.2), "semi_aum_cutoff": (-3, 0.2), "semi_dual_beta": (1, 3)}
    compared_pool(tmp_path, "fashion", "standard", leads(**ours, zcore=(5, 0.2), fully_supervised=(9, 0.2)))
    compared_pool(tmp_path, "photos", "standard", leads(**{**ours, "chosen": (2, 4)}, zcore=(-5, 0.2)))
    page = script("results_page", monkeypatch).render(tmp_path)
    assert "2 of them" in page.split("## Cells won")[1][:80]
    # over Random, at 70% and more, over the best other (ZCore in one, Random in the other), first or tied
    assert "| The chosen one of the two | 1 / 1 / 0 | 1 / 1 / 0 | 0 / 1 / 1 | 1 of 2 |" in page
    assert "| Semi-AUM+Cutoff | 0 / 0 / 2 | 0 / 0 / 2 | 0 / 0 / 2 | 0 of 2 |" in page
    by_pool = page.split("## Points above Random, by pool")[1].split("##")[0]
    assert (
        "| | The chosen one of the two | **+3.0 ± 0.5** |" in by_pool and "| | Semi-DUAL+Beta | +1.0 ± 7.5 |" in by_pool
    )
    assert "| | Semi-AUM+Cutoff | **−3.0 ± 0.5** |" in by_pool and "| | Best other | ZCore **+5.0 ± 0.5** |" in by_pool
    assert by_pool.index("Clothing photos") < by_pool.index("Fashion-MNIST")
    methods = page.split("## All methods")[1].split("##")[0]
    assert (
        "| ZCore | 2 | +0.0 | 1 / 0 / 1 |" in methods and "| Fully supervised (all true labels) | 1 | +9.0 |" in methods
    )


def test_balanced_and_worst_class_accuracy_stand_beside_the_mean(monkeypatch, tmp_path):
    compared_pool(tmp_path, "signs", "standard", leads(chosen=(3, 0.2)))
    classes = script("results_page", monkeypatch).render(tmp_path).split("## Uneven classes")[1].split("##")[0]
    assert "| accuracy | – | – | 71.0% | **+3.0 ± 0.5** |" in classes
    assert "|  | balanced accuracy | – | – | 61.0% |" in classes and "|  | worst class | – | – | 41.0% |" in classes


def test_the_gain_is_shown_by_the_size_of_the_pool_with_its_interval(monkeypatch, tmp_path):
    rows = []
    for n, gain in ((6000, 0.01), (60000, 0.03)):
        found = [("random", 0.7, seed, 0.8 + 0.01 * seed) for seed in range(3)]
        found += [("semi_aum_cutoff", 0.7, seed, 0.8 + gain + 0.01 * seed + 0.001 * (seed - 1)) for seed in range(3)]
        rows.append(
            trial_table(*found).assign(dataset="fashion", n=n, n_labeled=n // 10, wrong=600 / n, views=1000, epochs=5)
        )
    pd.concat(rows).to_csv(tmp_path / "sizes_fashion.csv", index=False)
    assert "larger pool" not in script("results_page", monkeypatch).render(tmp_path)  # not finished yet
    (tmp_path / "sizes_fashion.json").write_text(json.dumps(SAID))
    page = script("results_page", monkeypatch).render(tmp_path)
    assert "| points above Random | pruning | 6,000 images | 60,000 images |" in page
    assert "| Semi-AUM+Cutoff | 70% | +1.0 ± 0.2 | +3.0 ± 0.2 |" in page  # 4.30 * 0.1 / sqrt(3)
    assert "Fashion-MNIST, 3 seeds, labels of one draw" in page


def test_wrong_labels_are_shown_by_cutoff_over_all_draws(monkeypatch, tmp_path):
    runs = [
        {"wrong": 0.1, "aum_wrong": low, "aum_right": 0.7, "wrong_in_coreset_to_pool": {"0.4": low}}
        for low in (0.2, 0.4)
    ]
    said = {"ratio": 0.7, "wrong_in_coreset_to_pool": {"0.4": 0.3}, "details": {"runs": runs}, **SAID}
    (tmp_path / "aum.json").write_text(json.dumps(said))
    page = script("results_page", monkeypatch).render(tmp_path)
    assert "of wrong labels is 0.30, of right ones 0.70" in page and "0.30 with a cutoff of 0.4" in page
