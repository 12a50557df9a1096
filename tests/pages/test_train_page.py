"""The Train page in each of its states, all of them read from disk."""

import re

import pytest

from semiprune_core import training
from semiprune_core.jobs import list_jobs, wait
from semiprune_core.labeling import open_store
from semiprune_core.learning import machine
from semiprune_core.learning.machine import Device, Machine, NetFacts
from semiprune_core.project.artifacts import note_facts
from tests.pages.test_pages import opened
from tests.support.training_projects import label, short_run, small_project, unlabeled

CPU = Device("cpu", "CPU, 2 cores", 8 << 30)


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """A machine with a CPU, without the seconds that loading torch takes."""
    found = Machine((CPU,), (NetFacts("compact", "Compact", "Small."),), "2.0", 2)
    monkeypatch.setattr(machine, "look", lambda: found)


@pytest.fixture
def project(workspace, tmp_path):
    return small_project(workspace, tmp_path)


def train(project, **changes):
    job = training.start_training(project, short_run(**changes), device="cpu", immediate=True)
    assert job.status().state == "done", job.log_tail()
    return job


def values(app):
    return {metric.label: metric.value for metric in app.metric}


def words(app):
    return " ".join(element.value for element in [*app.markdown, *app.caption, *app.info, *app.warning, *app.error])


def test_before_the_first_run_it_says_what_would_be_learned_from(project):
    app = opened("train", project)
    assert not app.exception
    shown = values(app)
    assert (shown["Labels"], shown["Classes"], shown["Unlabeled"]) == ("30", "3", "30")
    assert "30 labels measure the result, each with a model that did not see it" in words(app)
    assert training.training_data(project).snapshot.hash[:12] in words(app)
    assert [job.kind for job in list_jobs(project)] == ["preflight"]  # measured without being asked
    assert opened("train", project) and len(list_jobs(project)) == 1  # and once


def from_scratch(project):
    app = opened("train", project)
    app.radio(key="train_start_at").set_value("scratch").run()
    return app


def test_auto_is_started_with_its_budget_where_nothing_is_touched(project):
    app = opened("train", project)
    app.number_input(key="train_budget").set_value(5.0).run()
    app.toggle(key="train_auto_flip").set_value(False).run()
    app.button(key="train_start").click().run()
    (job,) = list_jobs(project, "ssl")
    settings = training.TrainSettings.from_json(job.settings)
    assert (settings.start, settings.budget, settings.training.flip) == ("auto", 300, False)


def test_start_queues_the_chosen_run(project):
    app = from_scratch(project)
    assert "3 labels are held out to measure the result" in words(app)
    app.radio(key="train_algorithm").set_value("freematch").run()
    app.number_input(key="train_seed").set_value(7).run()
    app.number_input(key="train_quick_freematch_epochs").set_value(2).run()
    app.toggle(key="train_quick_freematch_flip").set_value(False).run()
    app.button(key="train_start").click().run()
    assert not app.exception
    (job,) = list_jobs(project, "ssl")
    settings = training.TrainSettings.from_json(job.settings)
    assert (settings.training.algorithm, settings.seed, settings.training.epochs) == ("freematch", 7, 2)
    assert settings.training.flip is False and settings.preset == "quick"
    assert "Waiting for its turn" in opened("train", project).get("progress")[0].proto.text


def test_an_impossible_setting_is_refused_where_it_is_typed(project):
    app = from_scratch(project)
    app.number_input(key="train_quick_fixmatch_batch_size").set_value(1).run()
    assert "batch_size must be at least 2" in app.error[0].value.replace("\\", "")
    assert not [button for button in app.button if button.key == "train_start"]


def test_a_class_without_a_label_is_named_and_label_is_linked(workspace, tmp_path):
    project = small_project(workspace, tmp_path, reference=False)
    label(project, {0: "a", 1: "b"})
    open_store(project).classes.add(["zebra"], annotator="ann")
    app = opened("train", project)
    assert not app.exception
    assert "zebra" in app.warning[0].value


def test_thin_classes_are_warned_of(workspace, tmp_path):
    project = small_project(workspace, tmp_path, reference=False)
    label(project, {0: "rare", **dict.fromkeys(range(1, 9), "many")})
    app = opened("train", project)
    assert "Few labels for rare" in words(app)
    assert "No labels were drawn at random" in words(app)


def test_a_finished_run_is_told_in_plain_words(project):
    train(project)
    app = opened("train", project)
    assert not app.exception
    shown = values(app)
    assert shown["Labels used"] == "30" and "%" in shown["Accuracy"]
    (accuracy,) = (metric for metric in app.metric if metric.label == "Accuracy")
    assert re.fullmatch(r"[\d.]+% to [\d.]+%, n = \d+", accuracy.delta)
    assert "%" in shown["Reference accuracy"]
    assert "The model labeled 30 images; 30 have a human label" in words(app)
    assert "Out of date" not in words(app)


def test_what_auto_compared_is_shown_with_its_intervals(project):
    train(project)
    (artifact,) = project.artifacts("pseudo")
    share = artifact.facts["quality"]["accuracy"]
    row = {"accuracy": share, "n": share["n"], "seconds": 3.0}
    sentence = "A close call: From scratch is ahead of Pretrained features by 3.3 points (-5.9 to 10.4)."
    facts = {
        "start": "scratch",
        "decision": f"From scratch taken. {sentence}",
        "candidates": [{**row, "start": "frozen"}, {**row, "start": "scratch"}],
        "comparison": {"close_call": True},
    }
    note_facts(artifact, facts)
    app = opened("train", project)
    assert not app.exception
    assert app.warning[0].value.replace("\\", "") == f"**From scratch taken.** {sentence}"
    assert app.dataframe[0].value["Start"].tolist() == ["Pretrained features", "From scratch"]
    note_facts(artifact, {**facts, "comparison": {"close_call": False}, "missing_classes": ["zebra"]})
    assert "No label yet of zebra: no image got it." in words(opened("train", project))
    assert "From scratch taken" in opened("train", project).info[0].value


def test_new_labels_make_it_out_of_date_and_one_click_trains_anew(project):
    train(project, seed=3)
    label(project, dict.fromkeys(unlabeled(project)[:5], "a"))
    app = opened("train", project)
    assert "Out of date" in words(app) and "5 new" in words(app)
    app.button(key="train_anew").click().run()
    assert not app.exception
    job = list_jobs(project, "ssl")[0]
    assert job.status().state == "queued" and job.settings["seed"] == 3
    assert job.pins["labels"] == training.training_data(project).snapshot.hash


def test_a_failed_run_says_why_and_can_be_retried(project):
    job = training.start_training(project, short_run(), device="cpu")
    cache = project.artifacts("pool")[0].path("images.npy")
    hidden = cache.rename(cache.with_name("hidden"))
    assert wait(job, 120).state == "failed"
    hidden.rename(cache)
    app = opened("train", project)
    assert "import the images again" in app.error[0].value.replace("\\", "")
    app.button(key=f"resume_{job.id}").click().run()
    assert job.status().state == "queued" and job.status().attempt == 2


def test_a_stopped_run_can_be_resumed(project):
    job = training.start_training(project, short_run(), device="cpu")
    job.stop()
    app = opened("train", project)
    assert "Stopped" in app.info[0].value
    app.button(key=f"resume_{job.id}").click().run()
    assert job.status().state == "queued"


def test_runs_stand_side_by_side_and_can_be_deleted(project):
    train(project)
    train(project, lr=0.01)
    app = opened("train", project)
    assert not app.exception
    outcomes, table = (frame.value for frame in app.dataframe[:2])
    assert list(outcomes.columns) == list(table.columns) == ["pseudo-0002", "pseudo-0001"]
    assert table.loc["Learning rate"].tolist() == ["0.01", "0.03"] and "Epochs" not in table.index
    app.toggle(key="train_only_differences").set_value(False).run()
    whole = app.dataframe[1].value
    assert whole.loc["Epochs"].tolist() == ["3", "3"]
    assert not {"None", "True", "False", ""} & set(whole.to_numpy().ravel())
    app.selectbox(key="train_which").set_value("pseudo-0001").run()
    app.button(key="train_delete").click().run()
    assert [run.id for run in training.list_runs(project)] == ["pseudo-0002"]


def test_a_broken_torch_is_said_with_its_remedy(project, monkeypatch):
    broken = Machine((CPU,), (), None, 2, "torch cannot be loaded (no such file). Run `make install`.")
    monkeypatch.setattr(machine, "look", lambda: broken)
    app = opened("train", project)
    assert "make install" in app.error[0].value.replace("\\", "")
    assert app.button(key="train_start").disabled
    assert list_jobs(project) == []
