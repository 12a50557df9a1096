"""search and evaluate by the command line."""

import json

import pytest

from semiprune_core import cli, evaluation_runs, jobs
from semiprune_core.evaluation import EvaluationRun
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


@pytest.fixture
def queued(monkeypatch):
    """Jobs stay in their queue."""
    monkeypatch.setattr("semiprune_core.jobs.supervise", lambda workspace: None)


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


EVALUATE = ("--methods", "semi_aum_cutoff,random", "--ratios", "0.5", "--epochs", "1", "--device", "cpu")


def test_evaluate_ends_in_the_sentence_and_numbers_of_the_page(run, scored):
    code, said = run("evaluate", scored.name, *EVALUATE, "--seeds", "2", "--no-full-data")
    assert code == 0 and said["artifact"] == "evaluation-0001" and said["test"] == "held out"
    seen = evaluation_runs.finished(scored)[0].view()
    assert said["sentence"] == seen.sentence() and "(2 seeds)" in said["sentence"]
    chance, mine = said["table"]
    assert (chance["method"], mine["method"]) == ("random", "semi_aum_cutoff")
    trials = EvaluationRun(scored.latest("evaluation")).trials().set_index(["method", "seed"])["test_accuracy"]
    each = (trials["semi_aum_cutoff"] - trials["random"]).to_numpy()  # (2,) one per seed
    assert mine["difference_to_random"] == pytest.approx(each.mean()) and mine["n_common_seeds"] == 2
    half = 12.7062 * each.std(ddof=1) / 2**0.5  # t(0.975, 1) from a table
    assert mine["difference_half_interval_95"] == pytest.approx(half, rel=1e-4)
    assert mine["mean_accuracy"] == pytest.approx(trials["semi_aum_cutoff"].mean()) and mine["sd"] is not None
    assert chance["difference_to_random"] is None and mine["minutes_per_training"] > 0


def test_evaluate_says_the_sentence_first_and_then_a_table(scored, capsys):
    assert cli.main(["evaluate", scored.name, *EVALUATE, "--seeds", "1"]) == 0
    sentence, _, head, full, chance, mine, *rest = capsys.readouterr().out.splitlines()
    assert sentence == evaluation_runs.finished(scored)[0].view().sentence() and "from one seed" in sentence
    assert head.split() == ["Method", "Pruning", "ratio", "Mean", "SD", "To", "Random", "Minutes"]
    assert full.startswith("Full data") and chance.startswith("Random") and mine.startswith("Semi-AUM+Cutoff")
    assert "50%" in mine and len({len(line) for line in (head, full, chance, mine)}) == 1
    assert "± half its 95% interval" in rest[0] and rest[-1].startswith("evaluation-0001: trained on reference labels.")


@pytest.mark.parametrize("words, order", [((), "cheap_first"), (("--order", "as_given"), "as_given")])
def test_evaluate_takes_the_order_of_its_trainings(run, scored, queued, words, order):
    code, said = run("evaluate", scored.name, *EVALUATE, *words, "--background")
    (job,) = jobs.list_jobs(scored, "evaluate")
    assert code == 0 and job.id == said["job"] and job.settings["order"] == order


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
