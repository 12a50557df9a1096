"""Benchmarks print their result; only ``--keep`` writes it to ``benchmarks/results/``."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from semiprune_core.labeling import open_store

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


@pytest.fixture
def paper(monkeypatch):
    return opened(monkeypatch, "paper")


@pytest.fixture
def few_signs(paper, monkeypatch, tmp_path):
    """A folder with 90 pictures of two classes, bright and dark, in the place of the traffic signs."""
    pools = sys.modules["paper_pools"]
    monkeypatch.setitem(pools.PARTS, "signs", (pools.Part(1, 60, pools.CONFIRM),))
    rng, labels = np.random.default_rng(0), np.arange(90) % 2
    images = (100 * labels[:, None, None, None] + rng.integers(0, 120, (90, 16, 16, 3))).astype(np.uint8)
    split = np.repeat(["train", "test"], [60, 30])
    names = np.array(["dark", "bright"])
    np.savez(tmp_path / pools.FILES["signs"], images=images, labels=labels, split=split, class_names=names)
    return tmp_path


@pytest.mark.parametrize(
    "dataset, images, part",
    [
        ("fashion", None, (30_001, 60_000, "confirm")),
        ("fashion", "30001-60000", (30_001, 60_000, "confirm")),
        ("fashion", "1-30000", (1, 30_000, "tune")),
        ("cifar10", "1-6000", (1, 6_000, "tune")),
        ("cifar10", None, (6_001, 12_000, "confirm")),
        ("photos", None, (1, 1_500, "confirm")),
        ("signs", "1-100", (1, 100, "confirm")),
    ],
)
def test_every_image_either_may_tune_or_only_confirms(paper, dataset, images, part):
    found = paper.images_asked(images, dataset)
    assert (found.first, found.last, found.role) == part


@pytest.mark.parametrize(
    "dataset, images, words",
    [
        ("fashion", "29001-31000", "mix tuning with claims: 1 to 30,000 may tune, 30,001 to 60,000 only confirm"),
        ("cifar10", "6000-6001", "mix tuning with claims: 1 to 6,000 may tune, 6,001 to 12,000 only confirm"),
        ("cifar10", "1-12001", "within 1-12000"),
        ("photos", "0-5", "must be FIRST-LAST"),
        ("fashion", "some", "must be FIRST-LAST"),
    ],
)
def test_images_of_both_sides_are_refused(paper, dataset, images, words):
    with pytest.raises(SystemExit, match=words):
        paper.main(["--dataset", dataset, "--images", images])


def test_knobs_by_hand_are_refused_on_images_that_confirm(paper):
    with pytest.raises(SystemExit, match="30,001 to 60,000 of Fashion-MNIST, which only confirm"):
        paper.main(["--knobs", '{"elfs": {"0.7": {"cutoff": 0.2}}}'])
    tuning = paper.images_asked("1-30000", "fashion")
    paper.check_role(tuning, paper.argparse.Namespace(knobs={"elfs": {}}, dataset="fashion"))


def test_a_tuning_pool_never_meets_an_image_of_a_claim(paper, monkeypatch, tmp_path):
    pools, image_data = sys.modules["paper_pools"], sys.modules["image_data"]
    numbers = np.arange(60_000, dtype=np.int64)  # each image is its own place in the file
    tests = np.arange(-10_000, 0)
    data = image_data.Data("fashion", numbers, numbers, tests, tests, ("a", "b"))
    monkeypatch.setattr(pools, "fashion", lambda: data)
    tuning = pools.cut("fashion", pools.images_asked("1-30000", "fashion"), None, None, tmp_path)
    claim = pools.cut("fashion", pools.images_asked(None, "fashion"), None, None, tmp_path)
    assert {*tuning.images, *tuning.test_images} == set(range(30_000)) and len(tuning.test_images) == 6_000
    assert {*claim.images} == set(range(30_000, 60_000)) and {*claim.test_images} == set(range(-10_000, 0))
    small = pools.cut("fashion", pools.images_asked(None, "fashion"), 100, 50, tmp_path)
    assert small.images.tolist() == claim.images[:100].tolist() and len(small.test_images) == 50


def test_the_comparison_draws_labels_pseudo_labels_scores_and_evidence_anew_for_every_seed(
    paper, few_signs, monkeypatch
):
    asked, queued = {"ssl": [], "dynamics": []}, []
    monkeypatch.setattr(paper, "embed", lambda *_, **__: None)
    monkeypatch.setattr(paper, "finish_job", lambda project, kind, wanted, submit: submit())
    monkeypatch.setattr(paper, "start_training", lambda project, settings, **_: asked["ssl"].append(settings.seed))
    monkeypatch.setattr(paper, "submit_dynamics", lambda project, seeds, **_: asked["dynamics"].append(seeds))
    monkeypatch.setattr(paper, "write", lambda *_: None)
    monkeypatch.setattr(paper, "rows_of", lambda *_: [])
    monkeypatch.setattr(paper, "TrialBook", lambda path: [])
    monkeypatch.setattr(paper, "evaluated", lambda args, project, seed: queued.append((project, seed)) or FakeJob)
    paper.main(["--dataset", "signs", "--data", str(few_signs), "--seeds", "3", "--home", str(few_signs / "home")])
    assert asked == {"ssl": [0, 1, 2], "dynamics": [(0,), (1,), (2,)]} and [seed for _, seed in queued] == [0, 1, 2]
    labeled = [tuple(open_store(project).snapshot().ids.tolist()) for project, _ in queued]
    assert all(len(ids) == 6 for ids in labeled) and len({*labeled}) == 3
    settings = paper.evaluation_settings(paper_args(paper, seeds="1"), 7)
    assert settings.seeds == (7,) and settings.evidence_seed == 7


class FakeJob:
    work_folder = Path()


def paper_args(paper, **values):
    """The arguments of a call, by name."""
    found = {}
    words = [word for name, value in values.items() for word in (f"--{name}", value)]

    def keep(args, part):
        found["args"] = args
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "base_project", keep)
        with pytest.raises(KeyboardInterrupt):
            paper.main(words)
    return found["args"]


def test_a_comparison_writes_its_rows_and_goes_on_where_it_ended(paper, few_signs, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["common"], "RESULTS", few_signs / "results")
    monkeypatch.setattr(sys, "argv", ["paper.py"])
    flags = ["--dataset", "signs", "--data", str(few_signs), "--home", str(few_signs / "home"), "--keep"]
    flags += ["--encoder", "efficientnet_lite0", "--search-seeds", "2", "--ratios", "0.5"]
    paper.main([*flags, "--seeds", "1", "--methods", "full,random,semi_aum_cutoff,semi_dual_beta"])
    path = few_signs / "results" / "paper_signs_standard.csv"
    first = pd.read_csv(path)
    assert tuple(first.columns) == paper.COLUMNS
    assert set(first["method"]) == {"full", "random", "semi_aum_cutoff", "semi_dual_beta", "chosen"}
    assert set(first["start"]) == {"frozen"} and set(first["test"]) == {"probe"} and set(first["seed"]) == {0}
    shares = first[["worst_class_accuracy", "balanced_accuracy", "test_accuracy"]]
    assert ((shares >= 0) & (shares <= 1)).all(axis=None)
    assert (first["worst_class_accuracy"] <= first["balanced_accuracy"]).all()
    chosen = first[first["method"] == "chosen"]["test_accuracy"].item()
    assert chosen in first[first["method"].isin(paper.OURS)]["test_accuracy"].tolist()
    jobs_before = list((few_signs / "home").glob("*/runs/*"))
    paper.main([*flags, "--seeds", "2", "--methods", "full,random,semi_aum_cutoff,semi_dual_beta"])
    again = pd.read_csv(path)
    assert again[again["seed"] == 0].reset_index(drop=True).equals(first) and set(again["seed"]) == {0, 1}
    assert {*jobs_before} < {*(few_signs / "home").glob("*/runs/*")}
    assert not [job for job in jobs_before if "seed-1" in str(job)]
    record = json.loads(path.with_suffix(".json").read_text())
    assert record["role"] == "confirm" and record["images"] == [1, 60] and record["n_test"] == 30
    facts = record["runs"]["frozen probe"]["seeds"]
    assert set(facts) == {"0", "1"} and set(facts["0"]["chosen"].values()) <= set(paper.OURS)


def test_accuracy_is_also_that_of_the_classes(paper):
    assert paper.accuracies({"right_by_class": [90, 1, 0], "n_by_class": [100, 2, 0]}) == (0.8922, 0.7, 0.5)


def test_the_chosen_method_is_the_one_that_searches_speak_for_else_the_usual_one(paper):
    def value(verdict, difference):
        return paper.BestValue(0.7, "cutoff", 0.1, None, 2, 100, 0.8, 0, 0.7, 0, difference, 0.01, 3, verdict)

    aum, dual = paper.OURS
    assert paper.chosen_method([(aum, value("better", 0.02)), (dual, value("better", 0.03))]) == dual
    assert paper.chosen_method([(aum, value("unclear", 0.02)), (dual, value("better", 0.01))]) == dual
    assert paper.chosen_method([(aum, value("worse", -0.02)), (dual, value("unclear", 0.03))]) == paper.USUAL


def opened(monkeypatch, name):
    """A benchmark as a module."""
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module
