"""search and evaluate by the command line."""

import json

import pytest

from semiprune_core import cli, jobs
from tests.scored_projects import make_pool, make_scored


@pytest.fixture(autouse=True)
def keep_signals(monkeypatch):
    monkeypatch.setattr("semiprune_core.commands.base.signal.signal", lambda *_: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def run(capsys):
    def run(*words):
        code = cli.main([*words, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def scored(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=50, n_classes=2)
    yield project
    for job in jobs.list_jobs(project):
        job.kill()


def test_search_ends_in_values_that_select_uses(run, scored):
    words = ("--ratios", "0.2", "--seeds", "1", "--epochs", "3", "--device", "cpu")
    code, said = run("search", scored.name, *words)
    assert code == 0 and said["artifact"] == "search-0001" and said["n_trials"] == 4 and said["cheap"] is True
    found = said["best"][0]
    assert found["pruning_ratio"] == 0.2 and found["verdict"] == "unknown"
    code, chosen = run("select", scored.name, "--method", "semi_aum_cutoff", "--ratio", "0.2")
    assert chosen["settings"]["knobs"]["cutoff"] == found["value"]


def test_search_in_the_background_is_queued_with_its_plan(run, scored):
    code, said = run(
        "search",
        scored.name,
        "--background",
        "--device",
        "cpu",
        "--start",
        "paper:cifar10",
        "--full",
        "--ratios",
        "0.5",
    )
    assert code == 0 and said["n_trials"] == 2 * 3 and said["cheap"] is False
    (job,) = jobs.list_jobs(scored, "search")
    assert job.id == said["job"] and job.settings["start"] == "paper:cifar10"
    job.kill()


@pytest.mark.parametrize(
    "words, code",
    [
        (("--method", "random"), "INVALID_SETTING"),
        (("--seeds", "0"), "INVALID_SETTING"),
        (("--ratios", "0.99"), "INVALID_SETTING"),
        (("--start", "paper:mnist"), "UNKNOWN_NAME"),
    ],
)
def test_wrong_words_are_refused(run, scored, words, code):
    assert run("search", scored.name, *words, "--device", "cpu")[1]["code"] == code
    assert not jobs.list_jobs(scored)


def test_what_is_missing_is_named(run, workspace, tmp_path):
    code, said = run("search", make_pool(workspace, tmp_path, n=8, name="Bare").name, "--device", "cpu")
    assert code == 1 and said["code"] == "MISSING_STEP"


def test_evaluate_ends_in_a_table_with_differences(run, scored):
    words = ("--methods", "semi_aum_cutoff,random", "--ratios", "0.5", "--seeds", "1", "--epochs", "1")
    code, said = run("evaluate", scored.name, *words, "--device", "cpu", "--no-full-data")
    assert code == 0 and said["artifact"] == "evaluation-0001" and said["test"] == "held out"
    assert [row["method"] for row in said["table"]] == ["semi_aum_cutoff", "random"]
    assert -1 <= said["table"][0]["difference_to_random"] <= 1


@pytest.mark.parametrize(
    "words, code",
    [
        (("--methods", "semi_aum"), "UNKNOWN_NAME"),
        (("--seeds", "0"), "INVALID_SETTING"),
        (("--truth", "human"), "MISSING_STEP"),
        (("--same-annotation-budget", "--ratios", "0.9"), "INVALID_SETTING"),
    ],
)
def test_an_impossible_evaluation_is_refused(run, scored, words, code):
    assert run("evaluate", scored.name, *words, "--device", "cpu")[1]["code"] == code
    assert not jobs.list_jobs(scored)
