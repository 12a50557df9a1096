"""Trackers follow the runs, and whatever they do, the run ends as it would without them."""

import json
import shutil
import threading

import pytest

from semiprune_core import cli
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.errors import InvalidSettingError, UnknownNameError
from semiprune_core.project.workspace import Workspace
from semiprune_core.tracking import (
    TRACKERS,
    VARIABLE,
    chosen_trackers,
    follow,
    keep_trackers,
    parse_trackers,
)
from semiprune_core.tracking.base import TrackedRun
from semiprune_core.training import start_training
from tests.support.scored_projects import make_scored
from tests.support.training_projects import short_run, small_project


class Memory:
    """A tracker that remembers; ``fails`` is the call in which it raises ``error``, ``gate`` holds it up."""

    fails, error, gate = "", RuntimeError("the tracker\nis ill"), None
    all = []

    def __init__(self, run, address):
        self.run, self.address, self.told, self.files, self.state = run, address, [], {}, None
        Memory.all.append(self)
        self._meet("open")

    def points(self, points):
        self._meet("points")
        self.told += points

    def file(self, path):
        self._meet("file")
        self.files[path.parent.name] = json.loads(path.read_text())

    def end(self, state):
        self._meet("end")
        self.state = state

    def _meet(self, call):
        if Memory.gate is not None:
            Memory.gate.wait(60)
        if Memory.fails == call:
            raise Memory.error


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    for name, value in (("all", []), ("fails", ""), ("gate", None), ("error", Memory.error)):
        monkeypatch.setattr(Memory, name, value)
    TRACKERS.register("memory", title="Memory", needs="json", address="")(Memory)
    TRACKERS.register("absent", title="Absent", needs="no_such_package", address="http://there")(Memory)
    yield
    TRACKERS._remove("memory")
    TRACKERS._remove("absent")


@pytest.fixture(scope="module")
def _made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracking")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEMIPRUNE_ROOTS", str(folder))
        return small_project(Workspace.open(folder / "home"), folder)


@pytest.fixture
def untracked(_made, workspace):
    shutil.copytree(_made.folder, workspace.root / _made.name)
    return workspace.project(_made.name)


@pytest.fixture
def project(untracked):
    keep_trackers(untracked.workspace, {"memory": ""})
    return untracked


def train(project):
    return start_training(project, short_run(), device="cpu", immediate=True)


def notes(job):
    return [line for line in (job.folder / "log.txt").read_text().splitlines() if "does not follow" in line]


def test_a_run_is_followed_with_its_settings_numbers_and_manifest(project):
    job = train(project)
    (tracker,) = Memory.all
    assert (tracker.run.id, tracker.run.project, tracker.state) == (job.id, project.name, "done")
    assert tracker.run.flat_settings()["ssl.lr"] == "0.03"
    names = {name for point in tracker.told for name in point.values}
    assert {"loss", "held_out_accuracy", "accuracy"} <= names and not names & {"time", "attempt", "done"}
    steps = [point.step for point in tracker.told]
    assert steps == sorted(steps) and steps[-1] > 0
    assert tracker.files["pseudo-0001"]["hash"] == project.artifact("pseudo-0001").hash
    assert notes(job) == []


def test_nobody_follows_by_default(untracked):
    assert chosen_trackers(untracked.workspace) == {} and not follow(*nobodys_run(untracked))


def nobodys_run(project):
    return project, TrackedRun(project.name, project.folder, "run-1", "", "ssl", {})


def test_a_coreset_is_followed_with_its_manifest(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    keep_trackers(workspace, {"memory": ""})
    built = build_coreset(project, CoresetRequest(pruning_ratio=0.5))
    follow_all()
    (tracker,) = Memory.all
    assert tracker.state == "done" and tracker.files == {built.artifact.id: built.artifact.manifest}
    assert tracker.told[0].values["n_kept"] == 60
    build_coreset(project, CoresetRequest(pruning_ratio=0.5))  # the same one again
    assert len(Memory.all) == 1


def follow_all():
    for thread in threading.enumerate():
        if thread.name.startswith("tracker-"):
            thread.join(60)


@pytest.mark.fault
@pytest.mark.parametrize(
    "call, error",
    [
        ("open", ConnectionError("no route")),
        ("points", RuntimeError("the tracker\nis ill")),
        ("file", SystemExit(3)),
        ("end", KeyError("gone")),
    ],
)
def test_a_tracker_that_raises_costs_one_note(call, error, project, monkeypatch):
    monkeypatch.setattr(Memory, "fails", call)
    monkeypatch.setattr(Memory, "error", error)
    job = train(project)
    assert job.status().state == "done" and job.result()["artifact"] == "pseudo-0001"
    (note,) = notes(job)
    assert "Memory" in note and type(error).__name__ in note and "Everything else goes on" in note


@pytest.mark.fault
def test_a_tracker_that_never_answers_is_left_behind(project, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(Memory, "gate", gate)
    monkeypatch.setattr("semiprune_core.tracking.followers.END_SECONDS", 0.1)
    try:
        job = train(project)
        assert job.status().state == "done" and "did not take everything" in notes(job)[0]
    finally:
        gate.set()
        follow_all()


@pytest.mark.fault
def test_a_tracker_that_is_too_slow_does_not_fill_the_memory(project, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(Memory, "gate", gate)
    monkeypatch.setattr("semiprune_core.tracking.followers.MOST_WAITING", 10)
    followers = follow(*nobodys_run(project))
    for step in range(100):
        followers.tell(step, {"loss": 1.0})
    gate.set()
    followers.wait()
    assert len(Memory.all[0].told) <= 11


@pytest.mark.fault
@pytest.mark.parametrize("text", ["absent=http://there", "nobody", "memory=http://there"])
def test_a_choice_of_the_environment_that_cannot_be_followed_costs_one_note(text, project, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    job = train(project)
    assert job.status().state == "done"
    lines = (job.folder / "log.txt").read_text().splitlines()
    assert len([line for line in lines if "No tracker follows this" in line]) == 1


@pytest.mark.parametrize(
    "text, error, words",
    [
        ("absent=http://there", InvalidSettingError, "pip install no_such_package"),
        ("memry", UnknownNameError, "Did you mean 'memory'"),
        ("memory=http://there", InvalidSettingError, "takes no address"),
    ],
)
def test_a_choice_that_cannot_be_kept_is_refused_in_words(text, error, words):
    with pytest.raises(error, match=words):
        parse_trackers(text)


def test_addresses_are_needed_and_of_a_kind_that_is_known():
    TRACKERS.register("there", title="There", needs="json", address="http://127.0.0.1:1")(Memory)
    try:
        assert parse_trackers(" memory , there=http://a:1/x ") == {"memory": "", "there": "http://a:1/x"}
        with pytest.raises(InvalidSettingError, match="needs an address: there=http://127.0.0.1:1"):
            parse_trackers("there")
        with pytest.raises(InvalidSettingError, match="begins with http://"):
            parse_trackers("there=javascript:alert(1)")
    finally:
        TRACKERS._remove("there")


def test_the_command_line_keeps_the_choice_and_ends_it(untracked, capsys):
    workspace = untracked.workspace

    def track(text):  # nothing can be resumed: the choice is kept before that is said
        code = cli.main(["train", untracked.name, "--resume", "--track", text])
        return code, capsys.readouterr().err, chosen_trackers(workspace)

    assert track("memory")[2] == {"memory": ""}
    code, said, chosen = track("memry")
    assert code == 1 and "Did you mean 'memory'" in said and chosen == {"memory": ""}
    assert track("off")[2] == {}


def test_the_environment_decides_alone(workspace, monkeypatch):
    keep_trackers(workspace, {"memory": ""})
    monkeypatch.setenv(VARIABLE, "off")
    assert chosen_trackers(workspace) == {}
    with pytest.raises(InvalidSettingError, match=VARIABLE):
        keep_trackers(workspace, {})
