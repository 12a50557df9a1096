"""search and evaluate by the command line."""

import json

import pytest

from semiprune_core import cli, jobs
from semiprune_core.evaluation import EvaluationRun
from semiprune_core.evaluation import runs as evaluation_runs
from semiprune_core.evaluation.studies import LABEL_BUDGET, POOL_SIZE, BudgetSettings, submit_study
from semiprune_core.evaluation.study_view import StudyRun, share_view, trend_sentence
from tests.support.scored_projects import add_clusters, make_pool, make_scored


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


@pytest.mark.usefixtures("jobs_run_here")
def test_search_finds_the_cutoff_of_elfs_on_its_clusters(run, scored):
    kept = add_clusters(scored, n_clusters=2)
    words = ("--method", "elfs", "--ratios", "0.1", "--seeds", "1", "--epochs", "3", "--device", "cpu")
    code, said = run("search", scored.name, *words)
    assert code == 0 and said["method"] == "elfs" and said["n_trials"] == 3
    assert scored.latest("search").inputs["scores"] == kept.artifact.hash
    code, chosen = run("select", scored.name, "--method", "elfs", "--ratio", "0.1")
    assert chosen["settings"]["knobs"]["cutoff"] == said["best"][0]["value"]


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
    assert said["rivals"] == seen.rivals_sentence()
    chance, mine = said["table"]
    assert (chance["method"], mine["method"]) == ("random", "semi_aum_cutoff")
    table = EvaluationRun(scored.latest("evaluation")).trials().set_index(["method", "seed"])
    trials, image = table["test_accuracy"], 1 / table["n_test"].iloc[0]
    each = (trials["semi_aum_cutoff"] - trials["random"]).to_numpy()  # (2,) one per seed
    assert mine["difference_to_random"] == pytest.approx(each.mean()) and mine["n_common_seeds"] == 2
    half = 12.7062 * max(each.std(ddof=1), image) / 2**0.5  # t(0.975, 1) from a table
    assert mine["difference_half_interval_95"] == pytest.approx(half, rel=1e-4)
    assert mine["mean_accuracy"] == pytest.approx(trials["semi_aum_cutoff"].mean()) and mine["sd"] is not None
    assert chance["difference_to_random"] is None and mine["minutes_per_training"] > 0


@pytest.mark.usefixtures("jobs_run_here")
def test_evaluate_says_the_sentence_first_and_then_a_table(scored, capsys):
    assert cli.main(["evaluate", scored.name, *EVALUATE, "--seeds", "1"]) == 0
    sentence, _, kind, head, full, chance, mine, *rest = capsys.readouterr().out.splitlines()
    assert sentence == evaluation_runs.finished(scored)[0].view().sentence() and "from one seed" in sentence
    assert kind == "Test: from scratch"
    assert head.split() == ["Method", "Pruning", "ratio", "Mean", "SD", "Vs", "Random", "Minutes"]
    assert full.startswith("Full data") and chance.startswith("Random") and mine.startswith("Semi-AUM+Cutoff")
    assert "50%" in mine and len({len(line) for line in (head, full, chance, mine)}) == 1
    assert "± half its 95% interval" in rest[0] and rest[-1].startswith("evaluation-0001: trained on reference labels.")


def test_evaluate_hands_settings_to_the_baselines(run, scored, queued):
    words = ("--methods", "zcore,elfs,random", "--ratios", "0.5", "--device", "cpu", "--background")
    given = ("encoder=pixels", "elfs.n_clusters=3", 'elfs.heads={"n_heads": 2}')
    code, said = run("evaluate", scored.name, *words, *(word for one in given for word in ("--evidence", one)))
    assert code == 0, said
    (job,) = jobs.list_jobs(scored, "evaluate")
    assert job.settings["evidence"] == {"encoder": "pixels", "elfs": {"n_clusters": 3, "heads": {"n_heads": 2}}}
    code, said = run("evaluate", scored.name, *words, "--evidence", "encoder")
    assert code == 1 and "--evidence takes KEY=VALUE" in said["error"]


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


@pytest.mark.parametrize("words", [("--study", "same-annotation-budget"), ("--same-annotation-budget",)])
def test_the_same_annotation_budget_is_a_study_with_the_papers_budgets(run, scored, queued, words):
    assert run("evaluate", scored.name, *words, "--device", "cpu", "--background")[0] == 0
    (job,) = jobs.list_jobs(scored, "evaluate")
    assert job.settings["same_annotation_budget"] is True and job.settings["ratios"] == [0.4, 0.6, 0.7, 0.8]


def test_a_label_budget_study_is_queued_as_asked(run, scored, queued):
    words = ("--budgets", "0.2,0.05", "--methods", "random,semi_dual_beta", "--seeds", "2", "--epochs", "3")
    study = ("--study", "label-budget", "--algorithm", "flexmatch", "--device", "cpu", "--background")
    code, said = run("evaluate", scored.name, *study, *words)
    (job,) = jobs.list_jobs(scored, "label_budget")
    settings = BudgetSettings.from_json(job.settings)
    assert code == 0 and said["job"] == job.id and settings.budgets == (0.05, 0.2) and settings.seeds == (0, 1)
    assert settings.methods == ("semi_dual_beta",) and settings.ratios == (0.7, 0.9) and settings.truth == "reference"
    assert settings.algorithm == "flexmatch" and settings.supervised().epochs == 3


@pytest.fixture
def short_study(monkeypatch):
    """A study runs in this process, its semi-supervised training for two steps."""
    ssl = {"epochs": 1, "steps_per_epoch": 2, "batch_size": 8, "unlabeled_ratio": 1}
    monkeypatch.setattr(
        "semiprune_core.commands.evaluating.submit_study",
        lambda project, settings, device: submit_study(
            project, settings.replace(ssl=ssl), device=device, immediate=True
        ),
    )


STUDY = ("--study", "label-budget", "--budgets", "0.02,0.5", "--methods", "semi_aum_cutoff", "--ratios", "0.4,0.5")


def test_a_label_budget_study_is_told_as_the_page_tells_it(scored, capsys, run, short_study):
    words = ("evaluate", scored.name, *STUDY, "--seeds", "1", "--epochs", "2", "--device", "cpu")
    assert cli.main([*words]) == 0
    text = capsys.readouterr().out
    found = StudyRun(scored.latest("study"))
    for ratio in (0.4, 0.5):
        view = share_view(LABEL_BUDGET, found.trials(), ratio, methods=("semi_aum_cutoff",), shares=(0.02, 0.5))
        assert view.sentence() in text
    assert text.startswith("With 50% of the pool labeled, at 50% pruning, Semi-AUM+Cutoff keeps")
    assert "2% (1 label) was left out: " in text and "50% (20 labels): pseudo-labels " in text
    assert text.splitlines()[-1] == "study-0001: trained on reference labels. Tested on 10 images."
    code, said = run(*words)
    assert (
        code == 0
        and said["artifact"].startswith("study-")
        and [one["budget"] for one in said["budgets"]] == [0.02, 0.5]
    )
    high, low = said["ratios"]
    assert (high["pruning_ratio"], low["pruning_ratio"]) == (0.5, 0.4) and "at 50% pruning" in high["sentence"]
    assert {(row["method"], row["label_budget"]) for row in high["table"]} == {
        ("full", 0.0),
        ("random", 0.02),
        ("random", 0.5),
        ("semi_aum_cutoff", 0.5),
    }


def test_a_pool_size_study_is_told_as_the_page_tells_it(scored, capsys, run, short_study):
    words = ("evaluate", scored.name, "--study", "pool-size", "--sizes", "0.5,1", "--labeled", "0.5", "--ratios", "0.5")
    words = (*words, "--methods", "semi_aum_cutoff", "--seeds", "1", "--epochs", "2", "--device", "cpu")
    assert cli.main([*words]) == 0
    text = capsys.readouterr().out
    view = share_view(POOL_SIZE, StudyRun(scored.latest("study")).trials(), 0.5, methods=("semi_aum_cutoff",))
    assert text.startswith(view.sentence()) and "With 100% of the pool, at 50% pruning, Semi-AUM+Cutoff reaches" in text
    assert trend_sentence(view) in text and "50% (20 images, 10 labels): pseudo-labels " in text
    assert "Training on all images gives " in text
    code, said = run(*words)
    assert code == 0 and [one["size"] for one in said["sizes"]] == [0.5, 1.0] and said["ratios"][0]["trend"]
    assert {row["share_of_the_pool"] for row in said["ratios"][0]["table"]} == {0.5, 1.0}
    assert all(0 <= one["full_accuracy"] <= 1 for one in said["sizes"])


@pytest.mark.parametrize(
    "words, message",
    [
        (("--budgets", "0.1"), "--budgets only works with --study label-budget"),
        (("--ssl-preset", "quick"), "--ssl-preset only works with --study label-budget"),
        (("--study", "label-budget", "--no-full-data"), "trains on the whole pool too"),
        (("--study", "label-budget", "--order", "as_given"), "budget by budget"),
        (("--study", "label-budget", "--budgets", "0.1,1.5"), "budget must be"),
        (("--study", "label-budget", "--budgets", ","), "budgets must list one or more"),
        (("--study", "label-budget", "--methods", "random"), "methods must list one or more"),
        (("--study", "label-budget", "--truth", "pseudo"), "truth must be one of"),
        (("--study", "label-budget", "--sizes", "0.5"), "--sizes only works with --study pool-size"),
        (("--study", "pool-size", "--budgets", "0.5"), "--budgets only works with --study label-budget"),
        (("--study", "pool-size", "--sizes", "0,1"), "size must be"),
        (("--study", "pool-size", "--labeled", "0"), "labeled must be"),
        (("--study", "pool-size", "--order", "as_given"), "size by size"),
        (("--study", "pool-size", "--evidence", "encoder=pixels"), "Leave out --evidence"),
        (("--study", "pool-size", "--ratios", "0.99"), "choose smaller ratios, or larger parts"),
        (("--methods", ""), "--methods is empty"),
    ],
)
def test_words_that_do_not_fit_the_study_are_refused(run, scored, words, message):
    code, said = run("evaluate", scored.name, *words, "--device", "cpu")
    assert code == 1 and message in said["error"] and said["code"] == "INVALID_SETTING"
    assert not jobs.list_jobs(scored)
