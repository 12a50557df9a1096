"""The page Evaluate: the form, an evaluation under way, one that ended, one that was stopped."""

import json
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import files, jobs
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.dynamics.scoring import score_runs
from semiprune_core.evaluation.data import data_facts, evaluation_data
from semiprune_core.evaluation.not_relabeled import twin_settings
from semiprune_core.evaluation.plot import CROWD
from semiprune_core.evaluation.runs import finished
from semiprune_core.evaluation.settings import DATA_FACTS, EvaluationSettings
from semiprune_core.evaluation.studies import BudgetSettings, SizeSettings
from semiprune_core.evaluation.view import COLUMNS
from semiprune_core.jobs.job import JobStatus, create
from semiprune_core.jobs.locks import release
from semiprune_core.methods import METHODS
from semiprune_core.trials import BOOK, Trial, TrialBook
from tests.support.scored_projects import add_trajectory, call_labels_done, make_scored
from tests.support.trial_tables import fake_evaluation, fake_trials, table, trial
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")


@pytest.fixture(autouse=True)
def labels_are_done(monkeypatch):
    """These projects were given their pseudo-labels; nobody labeled."""
    call_labels_done(monkeypatch)


@pytest.fixture
def project(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=60)
    build_coreset(project, CoresetRequest(pruning_ratio=0.5))
    return project


@pytest.fixture
def queued(monkeypatch):
    """Jobs stay in their queue, for a device that nobody has to look for."""
    monkeypatch.setattr("semiprune_core.learning.machine.devices_for", lambda device, nproc=1: "cpu")
    monkeypatch.setattr("semiprune_core.jobs.supervise", lambda workspace: None)


def opened(project):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    app.run()
    app.switch_page("evaluate.py").run()
    assert not app.exception, app.exception
    return app


def words(app):
    return " ".join(
        one.value for kind in ("markdown", "caption", "info", "warning", "error") for one in getattr(app, kind)
    ).replace("\\", "")


def html(app):
    return " ".join(one.proto.body for one in app.get("html"))


def metric(app, label):
    return next(one.value for one in app.metric if one.label == label)


def test_the_empty_page_explains_and_offers_the_form(project):
    app = opened(project)
    assert "better than a random choice" in app.info[0].value
    assert metric(app, "Trainings") == "48"  # 3 methods x 5 ratios x 3 seeds, and the full data 3 times
    assert metric(app, "Takes about") == "unknown"
    assert "Trains a fresh network on each coreset with the reference labels" in words(app)
    assert "images of the pool that are held out of every coreset, because the pool came without test images" in words(
        app
    )


def test_starting_queues_what_was_chosen(project, queued):
    app = opened(project)
    app.number_input(key="evaluate_seeds").set_value(2).run()
    app.pills(key="evaluate_ratios_compare").set_value([0.9, 0.5]).run()
    app.toggle(key="evaluate_full").set_value(False).run()
    app.button(key="evaluate_start").click().run()
    assert not app.exception, app.exception
    [job] = jobs.list_jobs(project, "evaluate")
    settings = EvaluationSettings.from_json(job.settings)
    assert settings.ratios == (0.5, 0.9) and settings.seeds == (0, 1) and not settings.same_annotation_budget
    assert set(settings.methods) == {"random", "semi_aum_cutoff", "semi_dual_beta"}
    assert "Another evaluation is running" in words(app) and app.button(key="evaluate_start").disabled


def test_the_form_warns_of_one_seed_and_of_no_random(project):
    app = opened(project)
    app.number_input(key="evaluate_seeds").set_value(1).run()
    app.pills(key="evaluate_methods").set_value(["semi_aum_cutoff"]).run()
    said = words(app)
    assert "One seed gives no interval" in said and "Add Random to see whether a method beats chance" in said
    app.pills(key="evaluate_methods").set_value([]).run()
    assert "Choose at least one method" in words(app)
    assert not [button for button in app.button if button.key == "evaluate_start"]


def test_the_same_annotation_budget_has_the_papers_budgets(project, queued):
    app = opened(project)
    app.segmented_control(key="evaluate_study").set_value("same_annotation_budget").run()
    app.button(key="evaluate_start").click().run()
    [job] = jobs.list_jobs(project, "evaluate")
    assert job.settings["same_annotation_budget"] is True and job.settings["ratios"] == [0.4, 0.6, 0.7, 0.8]


def test_training_on_pseudo_labels_is_never_silent(project):
    app = opened(project)
    app.selectbox(key="evaluate_truth").set_value("pseudo").run()
    assert "flatter methods that select by them" in words(app)


def test_a_finished_evaluation_is_told_drawn_and_tabled(project):
    run = fake_evaluation(project)
    app = opened(project)
    key = f"shown_{run.artifact.id}"
    assert "At 80% pruning Semi-DUAL+Beta keeps" in words(app) and "points above random (3 seeds)" in words(app)
    assert "<b>" in html(app) and "<u>" in html(app) and "Full data" in html(app)
    assert "Trained with the reference labels that came with the images, tested on 1,000 images" in words(app)
    app.segmented_control(key=f"{key}_ratio").set_value(0.3).run()
    app.selectbox(key=f"{key}_method").set_value("semi_aum_cutoff").run()
    assert "At 30% pruning Semi-AUM+Cutoff" in words(app)
    app.segmented_control(key=f"{key}_table").set_value("difference").run()
    assert not app.exception and "paired by seed" in words(app)
    app.segmented_control(key=f"{key}_band").set_value("interval").run()
    assert not app.exception
    files = {button.label for button in app.get("download_button")}
    assert files == {"Trials CSV", "Means CSV", "LaTeX", "SVG"}


def test_an_evaluation_of_earlier_scores_says_so_above_its_result(project, tmp_path):
    fake_evaluation(project, inputs={"scores": project.latest("scores").hash})
    assert not [one for one in opened(project).info if "was made before" in one.value]
    score_runs(project, [add_trajectory(project, tmp_path, seed=1)])
    (said,) = [one.value.replace("\\", "") for one in opened(project).info if "was made before" in one.value]
    assert said == (
        "evaluation-0001 was made before scores-0002 were made: evaluate again to compare with the present scores."
    )


def test_an_earlier_evaluation_gives_the_time_of_a_new_one(project):
    fake_evaluation(project)
    assert metric(opened(project), "Takes about") != "unknown"


def test_several_evaluations_can_be_chosen_and_one_deleted(project):
    fake_evaluation(project, fake_trials(n_seeds=2))
    fake_evaluation(project, table(("semi_aum_cutoff", 0.7, 0, 0.6)))
    app = opened(project)
    assert "Random was not run there" in words(app)
    app.selectbox(key="evaluate_shown_evaluation-0002").set_value("evaluation-0001").run()
    assert "(2 seeds)" in words(app)
    assert app.dataframe[-1].value["Evaluation"].tolist() == ["evaluation-0002", "evaluation-0001"]
    app.button(key="evaluate_delete").click().run()
    assert [one.id for one in project.artifacts("evaluation")] == ["evaluation-0001"]


def test_what_happens_without_relabeling_can_be_asked_for_and_is_a_curve(project):
    fake_evaluation(project)
    app = opened(project)
    assert app.button(key="twin_evaluation-0001")
    (first,) = finished(project)
    settings = twin_settings(first)
    assert settings.truth == "pseudo" and "full" not in settings.methods and settings.seeds == first.seeds
    fake_evaluation(project, fake_trials(methods=("random", "semi_aum_cutoff")), truth="pseudo")
    app = opened(project)
    app.selectbox(key="evaluate_shown_evaluation-0002").set_value("evaluation-0001").run()
    assert not app.exception and "evaluation-0002" in words(app)
    assert "Semi-AUM+Cutoff, not relabeled" in html(app)


def unfinished(project, state, trials, **status):
    """An evaluation job whose trainings have got so far."""
    settings = EvaluationSettings(methods=("full", "random", "semi_aum_cutoff", "semi_dual_beta"))
    spec = {
        "kind": "evaluate",
        "title": "Evaluate",
        "settings": json.loads(json.dumps(settings.to_json())),
        "device": "cpu",
        "pins": {},
        "nproc": 1,
    }
    facts = {"trials_done": len(trials), "trials_total": 48, "trial": "Random, ratio 0.9, seed 1 of 3"}
    job, lease = create(project, spec, JobStatus(state=state, done=900, total=4800, facts=facts, **status))
    write_partial(job, trials)
    return job, lease


def write_partial(job, trials):
    """The book and the notes that an evaluation leaves in its folder."""
    book = TrialBook(job.work_folder / BOOK)
    for row in trials.to_dict("records"):
        result = {
            "n_train": row["n_train"],
            "n_test": row["n_test"],
            "n_correct": row["n_correct"],
            "note": row["note"],
        }
        one = Trial(method=row["method"], pruning_ratio=row["pruning_ratio"], seed=row["seed"])
        book.add(one, {**result, "seconds": 60 * row["minutes"], "mark": one.key})
    settings = EvaluationSettings.from_json(job.settings)
    files.write_json(job.work_folder / DATA_FACTS, data_facts(settings, evaluation_data(job.project), 60))


def test_a_running_evaluation_shows_what_it_has(project):
    _, lease = unfinished(project, jobs.RUNNING, fake_trials().head(20), seconds_left=600.0)
    try:
        app = opened(project)
        assert "At 50% pruning Semi-AUM+Cutoff reaches" in words(app)  # as far as it got
        assert html(app).count("–") > 0  # what has not been trained yet
        assert [button.label for button in app.button if button.label == "Stop"] == ["Stop"]
    finally:
        release(lease)


def test_a_running_evaluation_without_a_number_says_so(project):
    _, lease = unfinished(project, jobs.RUNNING, fake_trials().head(0))
    try:
        assert "No training has finished yet" in words(opened(project))
    finally:
        release(lease)


def test_a_stopped_evaluation_keeps_its_numbers_and_goes_on(project, queued):
    job, lease = unfinished(project, jobs.STOPPED, fake_trials().head(30))
    release(lease)
    app = opened(project)
    assert "30 of 48 trainings are done" in words(app) and "pruning" in html(app).lower()
    app.button(key=f"resume_{job.id}").click().run()
    assert not app.exception and job.status().state == jobs.QUEUED
    (progress,) = app.get("progress")
    assert progress.proto.text == "Waiting for its turn: another job is running." and not app.error


def test_the_plot_spans_the_planned_ratios_while_only_one_has_results(project):
    rows = fake_trials()
    _, lease = unfinished(project, jobs.STOPPED, rows[rows["pruning_ratio"] == 0.9])
    release(lease)
    app = opened(project)
    (figure,) = [json.loads(one.proto.spec) for one in app.get("plotly_chart") if "Test accuracy" in one.proto.spec]
    low, high = figure["layout"]["xaxis"]["range"]
    assert low < 0.3 and high > 0.9


def figure_of(app, words):
    (figure,) = [json.loads(one.proto.spec) for one in app.get("plotly_chart") if words in one.proto.spec]
    return {trace["name"]: trace for trace in figure["data"] if trace.get("name")}


def test_the_plot_can_show_the_lead_over_random(project):
    made = fake_evaluation(project).artifact
    app = opened(project)
    assert "Full data" in figure_of(app, "Test accuracy") and "paired differences" not in words(app)
    app.segmented_control(key=f"shown_{made.id}_content").set_value("difference").run()
    assert not app.exception and "95% intervals of the paired differences" in words(app)
    lines = figure_of(app, "Points above Random")
    assert list(lines) == ["Random", "Semi-AUM+Cutoff", "Semi-DUAL+Beta"] and lines["Random"]["y"] == [0, 0]


def drawn_spreads(app):
    """The areas and the bars of the plot, as traces that are in no legend."""
    (figure,) = [json.loads(one.proto.spec) for one in app.get("plotly_chart") if "Test accuracy" in one.proto.spec]
    areas = [trace for trace in figure["data"] if trace.get("fill") == "toself"]
    return areas, [trace for trace in figure["data"] if "error_y" in trace]


def test_the_plot_shows_the_spread_at_one_ratio_as_bars(project):
    rows = fake_trials()
    fake_evaluation(project, rows[rows["pruning_ratio"].isin([0.0, 0.8])])
    areas, bars = drawn_spreads(opened(project))
    assert not areas and len(bars) == 3 == len({bar["x"][0] for bar in bars})
    assert all(bar["error_y"]["array"][0] > 0 for bar in bars)


def test_one_seed_is_drawn_without_a_band(project):
    rows = fake_trials()
    fake_evaluation(project, rows[(rows["seed"] == 0) | (rows["pruning_ratio"] < 0.8)])
    areas, bars = drawn_spreads(opened(project))
    assert len(areas) == 3 and max(areas[0]["x"]) == 0.7 and not bars


def test_of_many_methods_some_wait_in_the_legend(project):
    methods = ("full", *list(METHODS)[:9], "random", "semi_aum_cutoff", "semi_dual_beta")
    trials = fake_trials(tuple(dict.fromkeys(methods)))
    fake_evaluation(project, trials, titles={name: METHODS.title(name) for name in METHODS})
    app = opened(project)
    lines = figure_of(app, "Test accuracy")
    waiting = {name for name, line in lines.items() if line.get("visible") == "legendonly"}
    assert len(lines) - len(waiting) == CROWD + 1 and not waiting & {"full", "Random", "Semi-AUM+Cutoff"}
    assert "Click a name in the legend to show or hide its line." in words(app)


def test_what_a_stopped_evaluation_has_can_be_kept(project):
    job, lease = unfinished(project, jobs.STOPPED, fake_trials().head(30))
    release(lease)
    app = opened(project)
    app.button(key=f"keep_{job.id}").click().run()
    assert not app.exception and project.latest("evaluation").facts["stopped"] is True
    assert "stopped early" in words(app)


def test_a_failed_evaluation_says_why(project):
    _, lease = unfinished(project, jobs.FAILED, fake_trials().head(3), message="The disk is full.")
    release(lease)
    app = opened(project)
    assert "The disk is full." in app.error[0].value.replace("\\", "")
    assert [button.label for button in app.button if button.label == "Retry"] == ["Retry"]


def test_names_from_outside_are_text(project):
    fake_evaluation(
        project,
        table(("random", 0.5, 0, 0.5), ("evil", 0.5, 0, 0.6), ("evil", 0.5, 1, 0.6)),
        titles={"random": "Random", "evil": "<img src=x onerror=alert(1)>**x**"},
    )
    app = opened(project)
    assert "<img" not in html(app)
    headline = next(one.value for one in app.markdown if one.value.startswith("####"))
    assert r"\<img" in headline and r"\*\*x" in headline


def test_a_label_budget_study_is_started_from_the_page(project, queued):
    app = opened(project)
    app.segmented_control(key="evaluate_study").set_value("label_budget").run()
    assert metric(app, "Trainings") == "69"  # 3 seeds x (2 ratios x (Random + 5 budgets x 2 methods) + full data)
    app.pills(key="budget_budgets").set_value([0.2, 0.05]).run()
    app.button(key="budget_start").click().run()
    assert not app.exception, app.exception
    [job] = jobs.list_jobs(project, "label_budget")
    assert job.settings["budgets"] == [0.05, 0.2] and job.settings["truth"] == "reference"


def test_a_pool_size_study_is_started_from_the_page(project, queued):
    app = opened(project)
    app.segmented_control(key="evaluate_study").set_value("pool_size").run()
    assert metric(app, "Trainings") == "84"  # 3 seeds x 4 sizes x (2 ratios x (Random + 2 methods) + all images)
    app.pills(key="size_sizes").set_value([1.0, 0.5]).run()
    app.pills(key="size_ratios").set_value([0.5]).run()
    app.number_input(key="size_labeled").set_value(20).run()
    app.button(key="size_start").click().run()
    assert not app.exception and not app.error, (app.exception, app.error)
    [job] = jobs.list_jobs(project, "pool_size")
    assert job.settings["sizes"] == [0.5, 1.0] and job.settings["labeled"] == 0.2


def test_a_finished_pool_size_study_is_told_by_size(project):
    rows = []
    for seed, size in ((seed, size) for seed in (0, 1) for size in (0.25, 1.0)):
        rows.append((size, *trial("full", 0.0, seed, 0.8 + 0.1 * size)))
        rows.append((size, *trial("random", 0.9, seed, 0.5)))
        rows.append((size, *trial("semi_aum_cutoff", 0.9, seed, 0.5 + 0.1 * size)))
    settings = SizeSettings(sizes=(0.25, 1.0), methods=("semi_aum_cutoff",), ratios=(0.9,), seeds=(0, 1))
    with project.draft("study", settings=settings.to_json(), inputs={"pool": project.pool().hash}) as draft:
        pd.DataFrame(rows, columns=["size", *COLUMNS]).to_parquet(draft.path("trials.parquet"))
        stages = [
            {"size": size, "n_images": 60, "n_labels": 6, "pseudo_accuracy": 0.7, "ssl_minutes": 1.0}
            for size in (0.25, 1.0)
        ]
        draft.facts.update(sizes=stages, truth="reference", n_test=12)
    app = opened(project)
    assert "With 100% of the pool, at 90% pruning, Semi-AUM+Cutoff reaches 60.0% accuracy, 10.0" in words(app)
    assert "goes from +2.5 to +10.0 points: it grows" in words(app) and "pool-size study" in words(app)
    (behind,) = [one.value for one in app.dataframe if "Accuracy with all images" in one.value]
    assert behind["Accuracy with all images"].tolist() == ["82.5%", "90.0%"] and behind["Images"].tolist() == [
        "60",
        "60",
    ]


def test_what_stopped_before_something_newer_can_still_go_on(project, queued):
    job, lease = unfinished(project, jobs.STOPPED, fake_trials().head(30))
    release(lease)
    newer, lease = unfinished(project, jobs.STOPPED, fake_trials().head(10))
    release(lease)
    app = opened(project)
    assert any("Stopped earlier (1)" in one.label for one in app.expander)
    assert "stopped, 30 of 48 trainings done" in words(app)
    app.button(key=f"resume_{job.id}").click().run()
    assert not app.exception and job.status().state == jobs.QUEUED and newer.status().state == jobs.STOPPED


def test_a_finished_label_budget_study_is_told_by_budget(project):
    rows = [(0.0, *trial("full", 0.0, 0, 0.9))]
    for seed in (0, 1):
        rows.append((0.0, *trial("random", 0.9, seed, 0.5)))
        rows += [(budget, *trial("semi_aum_cutoff", 0.9, seed, 0.5 + budget)) for budget in (0.05, 0.1)]
    settings = BudgetSettings(budgets=(0.01, 0.05, 0.1), methods=("semi_aum_cutoff",), ratios=(0.9,), seeds=(0, 1))
    with project.draft("study", settings=settings.to_json(), inputs={"pool": project.pool().hash}) as draft:
        pd.DataFrame(rows, columns=["budget", *COLUMNS]).to_parquet(draft.path("trials.parquet"))
        stages = [{"budget": 0.01, "n_labels": 1, "problem": "3 of 4 classes have no labeled image."}]
        stages += [
            {"budget": budget, "n_labels": round(60 * budget), "pseudo_accuracy": 0.7, "ssl_minutes": 1.0}
            for budget in (0.05, 0.1)
        ]
        draft.facts.update(full_epochs=90, budgets=stages, truth="reference", n_test=12)
    app = opened(project)
    assert "With 10% of the pool labeled, at 90% pruning, Semi-AUM+Cutoff keeps 67% of full accuracy, 10.0" in words(
        app
    )
    assert "1% (1 label) was skipped" in words(app) and "Label budget" in html(app)
    assert "was made before" not in words(app)
    with project.draft("study", settings=settings.to_json(), inputs={"pool": "0" * 64}) as draft:
        pd.DataFrame(rows, columns=["budget", *COLUMNS]).to_parquet(draft.path("trials.parquet"))
        draft.facts.update(budgets=[], truth="reference", n_test=12)
    assert "study-0002 was made before the pool changed: start it again" in words(opened(project))
