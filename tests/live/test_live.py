"""The line while labeling: its numbers are Train's, it says why it is missing, and its process comes back."""

import json
import os
import signal

import numpy as np
import pytest

from semiprune_core import cli, live, training
from semiprune_core.errors import InvalidDataError
from semiprune_core.labeling import open_store
from semiprune_core.live import follow
from semiprune_core.results import latest_pseudo
from semiprune_core.training import FROZEN, TrainSettings
from semiprune_core.training import frozen as frozen_runs
from tests.support.features import add_features, clouds_of
from tests.support.pools import NAMES
from tests.support.training_projects import draw, label, small_project
from tests.support.waiting import wait_until


@pytest.fixture
def project(workspace, tmp_path):
    """Ninety images, 60 of them drawn and none labeled; features that tell their classes apart."""
    project = small_project(workspace, tmp_path, n=90, reference=False)
    open_store(project).classes.add(list(NAMES), annotator="ann")
    draw(project, 60 / 90)
    add_features(project, clouds_of(project.pool().reference_labels))
    return project


def label_drawn(project, n):
    """Label the first ``n`` drawn images by what they are."""
    pool, drawing = project.pool(), open_store(project).drawings.latest()
    places = pool.positions(drawing.ids[:n])
    label(project, {int(place): NAMES[pool.reference_labels[place]] for place in places})


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def standing(project):
    return live.standing(project, open_store(project))


def test_below_twenty_labels_it_says_how_many_there_are(project):
    label_drawn(project, 19)
    assert standing(project)["line"] == "Accuracy appears here after 20 labels drawn at random; 19 so far."
    follower = follow.Follower(project, clock=Clock())
    (project.folder / follow.FOLDER).mkdir()
    assert follower.step() and follow.read_report(project)["n_measured"] == 19


def test_its_accuracy_is_what_a_run_on_the_same_labels_says(project, monkeypatch):
    label_drawn(project, 45)
    report = live.report_now(project, open_store(project))
    monkeypatch.setattr(frozen_runs, "embed", lambda *_, **__: frozen_runs_features(project))
    job = training.start_training(project, TrainSettings(start=FROZEN), device="cpu", immediate=True)
    assert job.status().state == "done", job.status().message
    assert report["accuracy"] == latest_pseudo(project).quality()["accuracy"]
    assert report["state"] == "ready" and report["accuracy"]["n"] == 45


def frozen_runs_features(project):
    return follow.followed_features(project)


def test_labels_that_were_added_on_purpose_train_and_do_not_measure(project):
    label_drawn(project, 30)
    pool, store = project.pool(), open_store(project)
    others = np.flatnonzero(~np.isin(pool.ids, store.drawings.latest().ids))[:10]
    label(project, {int(place): NAMES[pool.reference_labels[place]] for place in others})
    report = live.report_now(project, store)
    assert (report["n_labels"], report["n_measured"], report["accuracy"]["n"]) == (40, 30, 30)
    assert report["next"] is None and report["outlook"] == "Too early to say what more labels would bring."


def test_from_forty_labels_on_it_says_what_more_would_bring(project):
    label_drawn(project, 50)
    report = live.report_now(project, open_store(project))
    assert report["next"]["n"] == 40  # no more images are left
    assert report["next"]["low"] <= report["next"]["gain"] <= report["next"]["high"]
    assert len(report["curve"]["n"]) == len(report["curve"]["value"]) and report["curve"]["n"][-1] == 90
    assert "more labels" in report["outlook"]


def test_a_report_follows_every_few_labels_and_every_pause(project):
    clock = Clock()
    (project.folder / follow.FOLDER).mkdir()
    follower = follow.Follower(project, clock=clock)
    label_drawn(project, 20)
    assert follower.step() and not follower.step()
    assert standing(project)["state"] == "ready" and not standing(project)["behind"]
    label_drawn(project, 22)
    assert not follower.step() and standing(project)["behind"]
    clock.now += follow.PAUSE
    assert follower.step() and standing(project)["n_labels"] == 22
    label_drawn(project, 27)
    assert follower.step()
    guess = live.guesses(project)
    assert len(guess.class_ids) == 90 and set(guess.class_ids.tolist()) <= {0, 1, 2}


def test_a_failure_is_said_once_and_does_not_end_it(project, monkeypatch):
    def fail(*_, **__):
        raise error

    (project.folder / follow.FOLDER).mkdir()
    label_drawn(project, 20)
    follower = follow.Follower(project, clock=Clock())
    monkeypatch.setattr(follow, "measure", fail)
    error = InvalidDataError("Label more images.")
    assert follower.step() and not follower.step()
    assert standing(project)["line"] == "Accuracy cannot be estimated: Label more images."
    label_drawn(project, 25)
    error = ZeroDivisionError()
    assert follower.step() and "The reason is in live/log.txt" in standing(project)["line"]


def test_labels_of_one_group_of_near_duplicates_measure_nothing(project):
    pool, drawn = project.pool(), open_store(project).drawings.latest().ids
    outside = int(np.flatnonzero(~np.isin(pool.ids, drawn))[0])
    add_features(project, np.ones((90, 4)) + 9 * (np.arange(90) == outside)[:, None])
    label_drawn(project, 20)
    assert "near-duplicates of each other" in live.report_now(project, open_store(project))["line"]


def test_without_features_it_says_why(workspace, tmp_path, monkeypatch):
    project = small_project(workspace, tmp_path, title="Plain")
    assert "they are switched off here. To compute them, run: semiprune embed plain" in standing(project)["line"]
    monkeypatch.setenv("SEMIPRUNE_FEATURES", "on")
    assert "not all images have them" in standing(project)["line"]


def test_the_process_that_follows_comes_back_after_a_kill(project, monkeypatch):
    """Started by whoever looks, one for each project; what it wrote last is still there when it is gone."""
    monkeypatch.setattr(follow, "RESTART_EVERY", 0.0)
    label_drawn(project, 20)
    live.watch(project)
    first = follow._started[project.folder / follow.FOLDER][1]
    try:
        wait_until(lambda: standing(project)["state"] == "ready", "the first report")
        live.watch(project)
        assert follow._started[project.folder / follow.FOLDER][1] is first
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        assert standing(project)["state"] == "ready"
        label_drawn(project, 30)
        live.watch(project)
        wait_until(lambda: standing(project).get("n_labels") == 30 and not standing(project)["behind"], "a new report")
        second = follow._started[project.folder / follow.FOLDER][1]
        assert second.pid != first.pid
    finally:
        follow._started[project.folder / follow.FOLDER][1].kill()
        follow._started.pop(project.folder / follow.FOLDER)[1].wait()


def test_it_ends_when_nobody_looks_any_more(project):
    folder = project.folder / follow.FOLDER
    folder.mkdir()
    (folder / follow.WATCHED).touch()
    os.utime(folder / follow.WATCHED, (0, 0))
    assert follow.follow(project.folder) == 0 and not (folder / follow.REPORT).exists()


def test_a_second_process_leaves_the_labels_to_the_first(project):
    folder = project.folder / follow.FOLDER
    folder.mkdir()
    (folder / follow.WATCHED).touch()
    with follow.locks.held(folder / follow.LOCK):
        assert follow.follow(project.folder) == 0


def test_the_command_says_the_same(project, capsys):
    label_drawn(project, 45)
    expected = live.report_now(project, open_store(project))
    assert cli.main(["progress", project.name, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["labeled"] == 45 and value["left"] == 15
    assert value["estimate"]["accuracy"] == expected["accuracy"] and value["estimate"]["next"] == expected["next"]
    assert cli.main(["progress", project.name]) == 0
    assert f"{expected['line']}. {expected['outlook']}" in capsys.readouterr().out
