"""One button: everything that is out of date is made again in order, with the settings it had."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import cli, dynamics, jobs, refresh, training
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.dynamics import submit_dynamics
from semiprune_core.dynamics.scoring import with_settings
from semiprune_core.errors import MissingStepError
from semiprune_core.jobs import launch
from semiprune_core.jobs.context import JobContext
from semiprune_core.labeling import open_store
from semiprune_core.maps.embedding_map import MapSettings, make_maps
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Workspace
from semiprune_core.refresh import freshness
from semiprune_core.refresh import job as refresh_job
from semiprune_core.results import CoresetRun, latest_scores
from semiprune_core.trust import review
from tests.support.scored_projects import make_scored
from tests.support.training_projects import short_run, small_project, unlabeled
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")
DYNAMICS = {"epochs": 4, "batch_size": 16, "precision": "fp32", "checkpoint_every": 3}


@pytest.fixture(scope="module")
def whole_line(tmp_path_factory):
    """Every stop of the line once: pseudo-labels, two seeds of dynamics, scores, coresets, a map."""
    folder = tmp_path_factory.mktemp("line")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMIPRUNE_ROOTS", str(folder))
        made = small_project(Workspace.open(folder / "home"), folder, n=48)
    training.start_training(made, short_run(seed=3, epochs=1), device="cpu", immediate=True)
    submit_dynamics(made, device="cpu", immediate=True, seeds=(5, 6), **DYNAMICS)
    with_settings(made, gamma=0.5)
    for ratio in (0.5, 0.8):
        build_coreset(
            made, CoresetRequest(method="semi_aum_cutoff", pruning_ratio=ratio, min_per_class=1, given={"cutoff": 0.1})
        )
    make_maps(made, MapSettings(method="pca"), Collected())
    assert freshness.out_of_date(made) == []
    return made


@pytest.fixture
def project(whole_line, tmp_path):
    shutil.copytree(whole_line.workspace.root, tmp_path / "home")
    made = Workspace.open(tmp_path / "home").project(whole_line.name)
    yield made
    for job in jobs.list_jobs(made):
        job.kill()
    launch.reap()


def correct_one(project):
    review.label_images(open_store(project), [int(project.pool().ids[unlabeled(project)[0]])], "b", annotator="bob")


def in_this_process(monkeypatch):
    """Let the refresh run its jobs here, one after the other."""

    def at_once(function):
        return lambda *given, **known: function(*given, **{**known, "immediate": True})

    for module, name in ((refresh_job, "start_training"), (refresh_job, "submit_dynamics"), (jobs, "submit")):
        monkeypatch.setattr(module, name, at_once(getattr(module, name)))
    monkeypatch.setattr(refresh_job, "LOOK_SECONDS", 0.0)


def done(job):
    assert job.status().state == jobs.DONE, job.status().message + job.log_tail()
    return job


def test_a_correction_is_carried_through_the_whole_line(project, monkeypatch):
    correct_one(project)
    before = {kind: project.latest(kind) for kind in refresh.STEPS}
    assert refresh.plan(project).steps == refresh.STEPS
    in_this_process(monkeypatch)
    job = done(refresh.bring_up_to_date(project))
    assert freshness.out_of_date(project) == [] and refresh.plan(project) is None
    after = {kind: project.latest(kind) for kind in refresh.STEPS}
    assert job.result()["artifacts"] == {kind: one.id for kind, one in after.items()}
    for kind in refresh.STEPS:
        assert after[kind].id != before[kind].id
        assert {**after[kind].settings, "derived": 0} == {**before[kind].settings, "derived": 0}, kind
    assert after["pseudo"].inputs["labels"] == open_store(project).snapshot().hash
    assert [one.manifest["seed"] for one in project.artifacts("trajectory")] == [5, 6, 5, 6]
    assert after["scores"].facts["seeds"] == [5, 6] and after["scores"].settings["gamma"] == 0.5
    ratios = [one.settings["pruning_ratio"] for one in project.artifacts("coreset")]
    assert ratios == [0.5, 0.8, 0.5, 0.8]
    assert all(one.inputs["scores"] == after["scores"].hash for one in project.artifacts("coreset")[2:])
    assert job.status().done == job.status().total and job.status().facts["step"] == "map"


def test_the_command_says_what_is_out_of_date_and_makes_it_again(project, monkeypatch, capsys):
    monkeypatch.setattr("semiprune_core.commands.base.signal.signal", lambda *_: None)

    def run(*words):
        assert cli.main(["refresh", project.name, *words, "--home", str(project.workspace.root), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert run() == {"out_of_date": [], "artifacts": {}}
    correct_one(project)
    said = run("--plan")
    assert [one["kind"] for one in said["out_of_date"]] == list(refresh.STEPS)
    assert said["out_of_date"][0]["reason"] and not jobs.list_jobs(project, refresh.KIND)
    in_this_process(monkeypatch)
    said = run()
    assert said["artifacts"] == {kind: project.latest(kind).id for kind in refresh.STEPS}
    assert freshness.out_of_date(project) == []


@pytest.mark.slow
def test_a_stop_stops_the_job_under_way_and_resuming_takes_up_the_same_one(project, monkeypatch):
    correct_one(project)
    in_this_process(monkeypatch)
    asked = []

    def stop_in_the_dynamics(self):
        asked.append(self.job.kind)
        return asked.count("dynamics") >= 4

    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "should_stop", stop_in_the_dynamics)
        job = refresh.bring_up_to_date(project)
    assert job.status().state == jobs.STOPPED
    assert [one.artifact.kind for one in freshness.out_of_date(project)][0] == "trajectory"
    pseudo, child = project.latest("pseudo").id, jobs.list_jobs(project, "dynamics")[0]
    assert child.status().state == jobs.STOPPED
    monkeypatch.undo()
    job.resume()
    assert jobs.wait(job, timeout=240).state == jobs.DONE, job.log_tail()
    assert freshness.out_of_date(project) == []
    assert project.latest("pseudo").id == pseudo  # not trained a second time
    assert child.status().attempt == 2 and child.status().state == jobs.DONE
    assert len(jobs.list_jobs(project, "dynamics")) == 2


def test_a_failure_names_the_step_and_trying_again_goes_on_behind_what_is_done(project, monkeypatch):
    correct_one(project)
    in_this_process(monkeypatch)
    fails = pytest.MonkeyPatch()
    fails.setattr("semiprune_core.dynamics.job._one_seed", lambda *_: 1 / 0)
    job = refresh.bring_up_to_date(project)
    fails.undo()
    assert job.status().state == jobs.FAILED and "Training dynamics failed: " in job.status().message
    n_trained = len(jobs.list_jobs(project, "ssl"))
    monkeypatch.setattr(jobs, "supervise", lambda _: None)
    child = jobs.list_jobs(project, "dynamics")[0]
    monkeypatch.setattr(type(child), "resume", run_here)
    done(run_here(job))
    assert len(jobs.list_jobs(project, "ssl")) == n_trained and freshness.out_of_date(project) == []


def run_here(job):
    """Resume a job in this process."""
    from semiprune_core.jobs.context import run_job
    from semiprune_core.jobs.job import JobStatus

    with job.lease() as mine:
        assert mine
        job.write_status(JobStatus(state=jobs.RUNNING, attempt=job.status().attempt + 1))
        run_job(JobContext(job))
    return job


def test_pressed_twice_it_is_one_job(project):
    correct_one(project)
    job = refresh.bring_up_to_date(project)
    assert job.status().state == jobs.QUEUED and job.title == "Bring up to date"
    assert refresh.bring_up_to_date(project) == job and refresh.running(project) == job
    job.stop()
    assert refresh.running(project) is None


def test_the_page_offers_it_and_shows_its_steps(project, monkeypatch):
    correct_one(project)
    monkeypatch.setenv("SEMIPRUNE_HOME", str(project.workspace.root))
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    app.run()
    for page in ("pseudo", "map", "scores", "select"):
        app.switch_page(f"{page}.py").run()
        assert not app.exception, app.exception
        assert any(one.label == "Bring up to date" for one in app.button), page
    next(one for one in app.button if one.label == "Bring up to date").click().run()
    assert not app.exception, app.exception
    job = refresh.running(project)
    assert job is not None and list(job.settings["steps"]) == list(refresh.STEPS)
    assert any("Bringing up to date" in one.value and "Training dynamics" in one.value for one in app.markdown)
    assert not any(one.label == "Bring up to date" for one in app.button)
    next(one for one in app.button if one.label == "Stop").click().run()
    assert job.status().state == jobs.STOPPED


def test_only_what_is_behind_the_change_is_made_again(project, monkeypatch):
    submit_dynamics(project, device="cpu", immediate=True, seeds=(7,), **DYNAMICS)
    assert refresh.plan(project).steps == ("coreset",)
    in_this_process(monkeypatch)
    n_jobs = len(jobs.list_jobs(project))
    done(refresh.bring_up_to_date(project))
    assert len(jobs.list_jobs(project)) == n_jobs + 1 and freshness.out_of_date(project) == []


def test_a_coreset_that_cannot_be_rebuilt_is_told_and_the_others_are_made(project, monkeypatch):
    correct_one(project)
    in_this_process(monkeypatch)
    build = refresh_job.build_coreset

    def refuse_the_larger(project, request, **known):
        if request.pruning_ratio == 0.5:
            raise MissingStepError("No such luck.")
        return build(project, request, **known)

    monkeypatch.setattr(refresh_job, "build_coreset", refuse_the_larger)
    job = done(refresh.bring_up_to_date(project))
    assert len(project.artifacts("coreset")) == 3
    assert any(line.get("note") == "coreset-0001 could not be rebuilt: No such luck." for line in job.progress())


def test_a_coreset_says_its_request(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    asked = CoresetRequest(
        method="semi_dual_beta", pruning_ratio=0.6, seed=4, min_per_class=2, given={"c_d": 3.5, "gamma": 0.7}
    )
    made = build_coreset(project, asked)
    again = refresh.request_of(project, made)
    assert again.replace(n_epochs=None) == asked.replace(class_share=0.0)
    assert np.array_equal(build_coreset(project, again).coreset().indices, made.coreset().indices)
    assert build_coreset(project, again).artifact == made.artifact


def test_how_it_was_made_is_found_in_the_artifact_when_the_job_is_gone(project):
    pseudo, trajectory = project.latest("pseudo"), project.latest("trajectory")
    by_job = {step: refresh.again(project, step, one) for step, one in (("pseudo", pseudo), ("trajectory", trajectory))}
    for job in jobs.list_jobs(project):
        job.delete()
    assert refresh.again(project, "pseudo", pseudo).settings == by_job["pseudo"].settings
    found = dynamics.DynamicsSettings.from_json(refresh.again(project, "trajectory", trajectory).settings)
    asked = dynamics.DynamicsSettings.from_json(by_job["trajectory"].settings)
    assert found.seeds == asked.seeds == (5, 6) and found.supervised() == asked.supervised()


def test_other_seeds_and_score_settings_replace_nothing(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, seeds=(0, 1))
    made = build_coreset(project, CoresetRequest(pruning_ratio=0.5))
    with_settings(project, latest_scores(project), gamma=0.5)
    assert "coreset" not in {one.artifact.kind for one in freshness.out_of_date(project)}
    assert "scores" not in {one.artifact.kind for one in freshness.out_of_date(project)}
    assert CoresetRun(made.artifact).artifact.inputs["scores"] != project.latest("scores").hash
    with pytest.raises(MissingStepError, match="Everything is up to date"):
        refresh.bring_up_to_date(project)
