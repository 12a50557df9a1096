"""The dynamics job: a trajectory and scores at its end, the same ones after a stop and after a kill."""

import numpy as np
import pytest

from semiprune_core import jobs, streams
from semiprune_core.dynamics import job as dynamics_job
from semiprune_core.dynamics import submit_dynamics, why_out_of_date
from semiprune_core.embeddings.features import available_features
from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.jobs.context import JobContext
from semiprune_core.jobs.job import Job
from semiprune_core.learning import supervised_run
from semiprune_core.maps.embedding_map import MapSettings, make_maps
from semiprune_core.progress import Collected
from semiprune_core.project.artifacts import differences
from semiprune_core.results import TrajectoryRun, latest_scores
from tests.support.job_runs import done
from tests.support.scored_projects import add_pseudo, add_trajectory, make_pool
from tests.support.waiting import PATIENCE

QUICK = {"device": "cpu", "epochs": 3, "batch_size": 16, "precision": "fp32", "checkpoint_every": 2}


@pytest.fixture
def project(pseudo_labeled):
    return pseudo_labeled()


def columns(project):
    run = TrajectoryRun(project.latest("trajectory"))
    found = run.trajectory()
    names = ("target_prob", "margin", "correct", "el2n", "last_entropy")
    return [*(np.asarray(getattr(found, name)) for name in names), run.features()]


def test_it_leaves_a_trajectory_of_every_image_and_all_scores(project):
    job = submit_dynamics(project, immediate=True, **QUICK)
    result = done(job)
    run = TrajectoryRun(project.artifact(result["trajectories"][0]))
    assert run.trajectory().target_prob.shape == (3, 48)
    assert len(run.history()) == 3
    assert run.artifact.inputs == {"pool": project.pool().hash, "pseudo": project.latest("pseudo").hash}
    scores = latest_scores(project)
    assert {"aum", "dual", "el2n", "forgetting", "mean_prob", "variability", "entropy"} <= set(scores.names)
    assert scores.artifact.inputs["trajectory"] == run.artifact.hash
    assert scores.artifact.inputs["pseudo"] == project.latest("pseudo").hash
    assert differences(run.artifact.folder) == [] and differences(scores.artifact.folder) == []
    assert not any(job.work_folder.rglob("*.npy"))
    facts = [line for line in job.progress() if "train_accuracy" in line]
    assert facts and facts[-1]["epoch"] == 3


def test_it_keeps_the_features_of_its_model_and_the_map_takes_them(project, monkeypatch):
    from semiprune_core.learning import predict

    monkeypatch.setattr(predict, "BATCH", 7)  # several batches and several blocks, the last ones shorter
    monkeypatch.setattr(predict, "FEATURES_AT_ONCE", 2)
    whole = []
    keep = supervised_run.write_features

    def also_at_once(path, net, images, **known):
        keep(path, net, images, **known)
        whole.append(np.empty((48, net.n_features), np.float16))
        predict.predict(net, images, features_out=whole[0])

    monkeypatch.setattr(supervised_run, "write_features", also_at_once)
    done(submit_dynamics(project, immediate=True, **QUICK))
    features = TrajectoryRun(project.latest("trajectory")).features()
    assert features.dtype == np.float16 and np.array_equal(features, whole[0]) and np.ptp(features, axis=0).any()
    assert available_features(project)["dynamics"] == ""
    made = make_maps(project, MapSettings(features="dynamics", method="pca"), Collected())[0]
    assert made.artifact.inputs == {"trajectory": project.latest("trajectory").hash}
    assert np.isfinite(made.points()).all() and made.artifact.facts["n_dimensions"] == features.shape[1]


def test_a_stop_while_the_features_are_written_is_honoured_and_resumed(project, monkeypatch):
    done(submit_dynamics(project, immediate=True, **QUICK))
    whole, n_steps = columns(project), 9
    asked = []

    def stop_at_the_end(self):
        asked.append(1)
        return len(asked) == n_steps + 2  # once as the job begins, once before each step, then for the features

    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "should_stop", stop_at_the_end)
        job = submit_dynamics(project, immediate=True, **QUICK)
    assert job.status().state == jobs.STOPPED and len(asked) == n_steps + 2
    assert not any(job.work_folder.rglob("*features*"))
    job.resume()
    assert jobs.wait(job, timeout=120).state == jobs.DONE, job.log_tail()
    for before, after in zip(whole, columns(project), strict=True):
        assert np.array_equal(before, after)


def test_a_run_from_before_features_were_kept_still_serves(project, tmp_path):
    add_trajectory(project, tmp_path)
    assert TrajectoryRun(project.latest("trajectory")).features() is None
    assert "has no features" in available_features(project)["dynamics"]
    with pytest.raises(MissingStepError, match="repeat the dynamics run"):
        make_maps(project, MapSettings(features="dynamics", method="pca"), Collected())


def test_several_seeds_are_averaged_and_their_agreement_is_kept(project):
    result = done(submit_dynamics(project, immediate=True, seeds=(3, 4), **QUICK))
    assert len(result["trajectories"]) == 2
    scores = latest_scores(project)
    each = [TrajectoryRun(project.artifact(name)).trajectory() for name in result["trajectories"]]
    assert np.allclose(scores.table()["aum"], np.mean([one.margin.mean(axis=0) for one in each], axis=0), atol=1e-6)
    assert -1 <= scores.artifact.facts["stability"]["aum"] <= 1
    assert scores.artifact.facts["seeds"] == [3, 4]


def test_a_stop_and_a_resume_leave_the_same_bytes(project, monkeypatch):
    done(submit_dynamics(project, immediate=True, **QUICK))
    whole = columns(project)
    asked = []

    def stop_once(self):
        asked.append(1)
        return len(asked) == 6

    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "should_stop", stop_once)
        job = submit_dynamics(project, immediate=True, **QUICK)
    assert job.status().state == jobs.STOPPED
    assert len(project.artifacts("trajectory")) == 1
    job.resume()
    assert jobs.wait(job, timeout=120).state == jobs.DONE, job.log_tail()
    for before, after in zip(whole, columns(project), strict=True):
        assert np.array_equal(before, after)
    assert [one.hash for one in project.artifacts("trajectory")][0] == project.latest("trajectory").hash


def test_what_was_drawn_by_another_rule_is_not_gone_on_from(project, monkeypatch):
    done(submit_dynamics(project, immediate=True, **QUICK))
    whole, asked = columns(project), []

    def stop_once(self):
        asked.append(1)
        return len(asked) == 6

    with monkeypatch.context() as patch:
        patch.setattr(streams, "RULE", streams.RULE - 1)
        patch.setattr(JobContext, "should_stop", stop_once)
        job = submit_dynamics(project, immediate=True, **QUICK)
    assert job.status().state == jobs.STOPPED and any(job.work_folder.rglob("*.safetensors"))
    dynamics_job.run(JobContext(Job.open(job.folder)))
    for before, after in zip(whole, columns(project), strict=True):
        assert np.array_equal(before, after)


@pytest.mark.fault
def test_a_killed_process_goes_on_and_leaves_the_same_bytes(project, template):
    done(submit_dynamics(project, immediate=True, **{**QUICK, "epochs": 8}))
    whole = columns(project)
    template.kill_next_at(5)
    job = submit_dynamics(project, **{**QUICK, "epochs": 8})
    assert jobs.wait(job, PATIENCE).state == jobs.LOST
    assert any(job.work_folder.rglob("*.safetensors"))
    job.resume()
    assert jobs.wait(job, PATIENCE).state == jobs.DONE, job.log_tail()
    for before, after in zip(whole, columns(project), strict=True):
        assert np.array_equal(before, after)


def test_what_an_earlier_attempt_completed_is_not_trained_again(project, monkeypatch):
    job = submit_dynamics(project, immediate=True, **QUICK)
    done(job)
    monkeypatch.setattr(dynamics_job, "train_supervised", lambda *_, **__: pytest.fail("it trained again"))
    again = dynamics_job.run(JobContext(Job.open(job.folder)))
    assert again == job.result()
    assert len(project.artifacts("trajectory")) == len(project.artifacts("scores")) == 1


def test_newer_pseudo_labels_after_the_queueing_do_not_slip_in(project):
    first = project.latest("pseudo")
    job = submit_dynamics(project, **QUICK)
    add_pseudo(project, seed=5)
    assert jobs.wait(job, timeout=120).state == jobs.DONE, job.log_tail()
    assert project.latest("trajectory").inputs["pseudo"] == first.hash
    assert why_out_of_date(project, latest_scores(project).artifact) == ["there are newer pseudo-labels"]


def test_one_epoch_and_equal_seeds_are_refused(project):
    with pytest.raises(InvalidSettingError, match="epochs must be at least 2"):
        submit_dynamics(project, epochs=1, device="cpu")
    with pytest.raises(InvalidSettingError, match="each once"):
        submit_dynamics(project, seeds=(1, 1), device="cpu")


def test_without_pseudo_labels_it_says_what_is_missing(workspace, tmp_path):
    with pytest.raises(MissingStepError, match="no pseudo-labels"):
        submit_dynamics(make_pool(workspace, tmp_path, n=8, name="Bare"))
