"""Benchmarks print their result; only ``--keep`` writes it to ``benchmarks/results/``."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from semiprune_core.labeling import open_store
from semiprune_core.project.workspace import Workspace

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
PAGES = ("readme_table", "results_page")
"""They write pages from the results and measure nothing."""
BENCHMARKS = [path for path in sorted(FOLDER.glob("*.py")) if "__main__" in path.read_text() and path.stem not in PAGES]


@pytest.fixture
def run_scores(monkeypatch, tmp_path, capsys):
    """Run the quickest benchmark in this process, with a results folder of its own that holds an earlier result."""
    scores = opened(monkeypatch, "scores")
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


def test_the_comparison_draws_labels_pseudo_labels_scores_and_evidence_anew_for_every_seed(monkeypatch, tmp_path):
    paper = opened(monkeypatch, "paper")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 8, 8), dtype=np.uint8)
    split = np.repeat(["pool", "test"], [30, 10])
    names = np.array(["a", "b"])
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(40) % 2, split=split, class_names=names)
    asked, queued = {"ssl": [], "dynamics": []}, []
    monkeypatch.setattr(paper, "finish_job", lambda project, kind, wanted, submit: submit())
    monkeypatch.setattr(paper, "start_training", lambda project, settings: asked["ssl"].append(settings.seed))
    monkeypatch.setattr(paper, "submit_dynamics", lambda project, seeds, **_: asked["dynamics"].append(seeds))
    monkeypatch.setattr(paper, "evaluated", lambda args, project, *cell: queued.append((project.name, *cell)))
    flags = ["--dataset", str(tmp_path / "images.npz"), "--n", "30", "--home", str(tmp_path / "home")]
    monkeypatch.setattr(sys, "argv", ["paper.py", *flags, "--seeds", "2", "--closer", "3", "--methods", "random,elfs"])
    monkeypatch.setattr(paper, "report", lambda args, runs: [project for project, _ in runs])
    paper.main()
    assert asked == {"ssl": [0, 1, 2], "dynamics": [(0,), (1,), (2,)]}
    assert [(methods, seed) for _, methods, _, seed in queued] == [
        (("random", "elfs"), 0),
        (("random", "elfs"), 1),
        (paper.CLOSER, 2),
    ]
    workspace = Workspace.open(tmp_path / "home")
    labeled = [open_store(workspace.project(name)).snapshot().ids.tolist() for name, *_ in queued]
    assert len(labeled) == 3 and all(len(ids) == 3 for ids in labeled) and len({*map(tuple, labeled)}) == 3


def opened(monkeypatch, name):
    """A benchmark as a module."""
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module
