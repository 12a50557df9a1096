"""The dynamics run on pretrained features: the same columns as from scratch, the same bits after a kill."""

import numpy as np
import pytest

from semiprune_core import jobs
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.dynamics import finetuned, start_of, submit_dynamics
from semiprune_core.dynamics import frozen as frozen_dynamics
from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.jobs.context import JobContext
from semiprune_core.learning.head_run import COLUMNS, HeadSettings, train_head
from semiprune_core.learning.supervised_run import MemoryRecorder, columns
from semiprune_core.progress import Collected
from semiprune_core.project.artifacts import differences
from semiprune_core.results import TrajectoryRun, latest_pseudo, latest_scores
from tests.support.encoders import tiny_encoder
from tests.support.features import add_features
from tests.support.job_runs import done
from tests.support.scored_projects import add_pseudo, make_pool
from tests.support.waiting import PATIENCE

FROZEN = {"device": "cpu", "start": "frozen", "epochs": 4, "batch_size": 16}


@pytest.fixture
def project(pseudo_labeled):
    project = pseudo_labeled(n_test=12)
    add_features(project)
    return project


def test_it_leaves_the_same_columns_and_scores_and_says_what_it_was_made_with(project):
    result = done(submit_dynamics(project, immediate=True, seeds=(3, 4), **FROZEN))
    run = TrajectoryRun(project.artifact(result["trajectories"][0]))
    assert run.start == "frozen" and run.trajectory().target_prob.shape == (4, 48)
    assert run.trajectory().last_entropy.shape == (48,)
    assert run.artifact.settings["encoder"] == "efficientnet_lite0"
    assert run.artifact.settings["training"] == HeadSettings(epochs=4, batch_size=16).to_json()
    features = project.latest("features")
    pseudo = project.latest("pseudo").hash
    assert run.artifact.inputs == {"pool": project.pool().hash, "pseudo": pseudo, "features": features.hash}
    assert run.artifact.facts["test_accuracy"]["n"] == 12 and run.history()[-1]["epoch"] == 4
    assert np.allclose(run.features(), np.load(features.path("features.npy")), atol=1e-3)
    scores = latest_scores(project)
    assert {"aum", "dual", "el2n", "forgetting", "mean_prob", "entropy"} <= set(scores.names)
    assert scores.artifact.facts["seeds"] == [3, 4]
    assert differences(run.artifact.folder) == []
    assert len(build_coreset(project, CoresetRequest(pruning_ratio=0.5)).coreset().indices) == 24


def test_the_bars_are_learned_and_wrong_labels_stay_behind(project):
    done(submit_dynamics(project, immediate=True, **FROZEN | {"epochs": 20}))
    aum = latest_scores(project).table()["aum"]
    wrong = np.asarray(latest_pseudo(project).labels().labels) != project.pool().reference_labels
    assert wrong.any() and aum[~wrong].mean() > aum[wrong].mean() + 0.3


def test_the_same_seed_gives_the_same_bits_also_after_a_stop(project, monkeypatch):
    done(submit_dynamics(project, immediate=True, **FROZEN))
    asked = []

    def stop_once(self):
        asked.append(1)
        return len(asked) == 6

    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "should_stop", stop_once)
        job = submit_dynamics(project, immediate=True, **FROZEN)
    assert job.status().state == jobs.STOPPED and len(project.artifacts("trajectory")) == 1
    job.resume()
    assert jobs.wait(job, timeout=120).state == jobs.DONE, job.log_tail()
    first, second = project.artifacts("trajectory")
    assert first.hash == second.hash


@pytest.mark.fault
def test_a_killed_process_is_run_again_to_the_same_bits(project, template):
    long = FROZEN | {"epochs": 20}
    done(submit_dynamics(project, immediate=True, **long))
    template.kill_next_at(5)
    job = submit_dynamics(project, **long)
    assert jobs.wait(job, PATIENCE).state == jobs.LOST
    job.resume()
    assert jobs.wait(job, PATIENCE).state == jobs.DONE, job.log_tail()
    first, second = project.artifacts("trajectory")
    assert first.hash == second.hash


def test_it_begins_where_the_pseudo_labels_did(project):
    assert start_of(latest_pseudo(project)) == "scratch"
    add_pseudo(project, settings={"start": "frozen", "encoder": "efficientnet_lite0"})
    assert start_of(latest_pseudo(project)) == "frozen"
    job = submit_dynamics(project, device="cpu", immediate=True, epochs=2)
    done(job)
    assert job.settings["start"] == "frozen" and job.pins["features"] == project.latest("features").hash


def test_missing_features_are_computed_first(workspace, tmp_path, monkeypatch):
    project = make_pool(workspace, tmp_path, n=24, name="Bare")
    add_pseudo(project)
    asked = []

    def embed(project, settings, progress, *, folder):
        asked.append(settings.encoder)
        return add_features(project)

    monkeypatch.setattr("semiprune_core.features.embed.embed", embed)
    done(submit_dynamics(project, immediate=True, **FROZEN))
    assert asked == ["efficientnet_lite0"]


def test_features_that_are_gone_are_not_replaced_by_others(project):
    job = submit_dynamics(project, **FROZEN)
    assert job.pins["features"] == project.latest("features").hash
    context = type("Context", (), {"pins": {"features": "0" * 64}, "project": project})
    with pytest.raises(frozen_dynamics.ConflictError, match="are gone"):
        frozen_dynamics.features_for(context, None)


def test_illegal_settings_are_refused(project):
    with pytest.raises(InvalidSettingError, match="epochs must be at least 2"):
        submit_dynamics(project, **FROZEN | {"epochs": 1})
    with pytest.raises(InvalidSettingError, match="start must be"):
        submit_dynamics(project, **FROZEN | {"start": "frosen"})
    with pytest.raises(InvalidSettingError, match="Unknown setting 'net'"):
        submit_dynamics(project, **FROZEN, net="compact")


def recorded(labels, rows, seed=0, **settings):
    recorder = MemoryRecorder()
    result = train_head(
        rows,
        labels,
        n_classes=3,
        settings=HeadSettings(**settings),
        seed=seed,
        progress=Collected(),
        record=recorder,
    )
    return recorder.trajectory(), result


def test_the_first_epoch_of_one_batch_is_that_of_the_net_and_the_step_is_plain_descent():
    import torch

    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(20, 5)).astype(np.float32), rng.integers(0, 3, 20)
    seen, result = recorded(labels, rows, epochs=2, batch_size=20, weight_decay=0.1)
    weights = torch.zeros(5, 3, requires_grad=True)
    bias = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([{"params": [weights], "weight_decay": 0.1}, {"params": [bias]}], lr=1.0, momentum=0.9)
    x, y = torch.from_numpy(rows), torch.from_numpy(labels)
    for epoch, lr in enumerate((1.0, 0.5)):  # the cosine at 0 and a half
        for group in optimizer.param_groups:
            group["lr"] = lr
        logits = x @ weights + bias
        theirs = columns(logits.detach(), y)
        for name in COLUMNS[:-1]:
            assert np.allclose(getattr(seen, name)[epoch], theirs[name].numpy(), atol=1e-5), name
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, y).backward()
        optimizer.step()
    assert np.allclose(seen.last_entropy, theirs["entropy"].numpy(), atol=1e-5)
    assert np.allclose(result.head.weights, weights.detach().numpy(), atol=1e-5)


def test_another_seed_takes_the_images_in_another_order():
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(50, 4)).astype(np.float32), rng.integers(0, 3, 50)
    (a, _), (b, _), (c, _) = (recorded(labels, rows, seed, epochs=3, batch_size=8) for seed in (0, 0, 1))
    assert np.array_equal(a.target_prob, b.target_prob) and not np.array_equal(a.target_prob, c.target_prob)


def test_an_image_without_a_label_is_refused():
    with pytest.raises(InvalidDataError, match="1 have none"):
        recorded(np.array([0, 1, -1]), np.zeros((3, 2), np.float32))


def test_a_fine_tuned_net_begins_with_the_encoders_weights_and_says_so(project, monkeypatch):
    monkeypatch.setattr(finetuned, "open_pretrained", lambda *_, **__: tiny_encoder())
    job = submit_dynamics(project, start="finetuned", device="cpu", immediate=True, epochs=2, batch_size=16)
    run = TrajectoryRun(project.artifact(done(job)["trajectories"][0]))
    assert run.start == "finetuned" and run.artifact.settings["encoder"] == "efficientnet_lite0"
    assert run.artifact.settings["training"]["lr"] == 0.003 and run.trajectory().target_prob.shape == (2, 48)
    assert latest_scores(project).start == "finetuned"
