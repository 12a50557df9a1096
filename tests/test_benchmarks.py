"""Benchmarks print their result; only ``--keep`` writes it to ``benchmarks/results/``."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
PAGES = ("readme_table", "results_page")
"""They write pages from the results and measure nothing."""
BENCHMARKS = [path for path in sorted(FOLDER.glob("*.py")) if "__main__" in path.read_text() and path.stem not in PAGES]


@pytest.fixture
def run_scores(monkeypatch, tmp_path, capsys):
    """Run the quickest benchmark in this process, with a results folder of its own that holds an earlier result."""
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("scores", FOLDER / "scores.py")
    scores = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scores)
    monkeypatch.setattr(scores, "run_step", lambda name, folder, *numbers: scores.STEPS[name](folder, *numbers))
    results = tmp_path / "results"
    results.mkdir()
    (results / "scores.json").write_text("earlier")
    monkeypatch.setattr(sys.modules["common"], "RESULTS", results)

    def run(*flags):
        monkeypatch.setattr(sys, "argv", ["scores.py", *flags])
        scores.main()
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    run.results, run.sizes = results, scores.SIZES
    return run


def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_prints_its_result_and_leaves_the_results_folder_alone(run_scores):
    assert run_scores("--small")["disk_ratio"] > 1
    assert contents(run_scores.results) == {"scores.json": "earlier"}


def test_keep_writes_the_printed_result_with_its_command_and_machine(run_scores):
    run_scores.sizes[False] = run_scores.sizes[True]
    printed = run_scores("--keep")
    assert list(contents(run_scores.results)) == ["scores.json"]
    result = json.loads((run_scores.results / "scores.json").read_text())
    assert result.items() >= printed.items()
    assert result["command"] == "benchmarks/scores.py --keep" and result["machine"]["cores"]


def test_a_small_run_is_kept_beside_the_real_results(run_scores):
    printed = run_scores("--small", "--keep")
    files = contents(run_scores.results)
    assert files.pop("scores.json") == "earlier" and list(files) == ["small/scores.json"]
    assert json.loads(files["small/scores.json"]).items() >= printed.items()


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_every_benchmark_takes_its_flags_and_its_folder_from_the_one_place(path):
    text = path.read_text()
    assert "benchmark_parser(__doc__, small=" in text and "[--small] [--keep]" in text
    assert "RESULTS" not in text and "ArgumentParser(" not in text


@pytest.mark.parametrize(
    "flags, folder",
    [((), "work"), (("--small",), "work/small"), (("--keep",), "results"), (("--small", "--keep"), "results/small")],
)
def test_a_study_grows_in_its_work_folder_and_with_keep_in_the_results(flags, folder, run_scores, tmp_path):
    common = sys.modules["common"]
    args = common.benchmark_parser(None, small="one image").parse_args(flags)
    assert common.output_folder(args, tmp_path / "work") == tmp_path / folder
    assert (common.results_folder(args) is None) == ("--keep" not in flags)
