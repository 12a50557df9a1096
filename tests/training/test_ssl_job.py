"""The training job: it learns from the labels it was started on, survives its death, and says what it found."""

import numpy as np
import pytest

from semiprune_core import files, steps, training
from semiprune_core.errors import ConflictError, InvalidDataError, InvalidSettingError, WorkspaceError
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.jobs import supervise, wait
from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import take_reference
from semiprune_core.progress import Collected
from semiprune_core.project import artifacts
from semiprune_core.results import latest_pseudo
from semiprune_core.training import TrainSettings, preflight
from tests.support.pools import NAMES
from tests.support.training_projects import draw, label, short_run, small_project, unlabeled
from tests.support.waiting import PATIENCE, wait_until


@pytest.fixture
def project(workspace, tmp_path):
    return small_project(workspace, tmp_path)


def train(project, settings=None):
    job = training.start_training(project, settings or short_run(), device="cpu", immediate=True)
    assert job.status().state == "done", (job.status().message, job.log_tail())
    return job


def test_a_run_leaves_pseudo_labels_for_the_whole_pool(project):
    job = train(project)
    run = latest_pseudo(project)
    labels, pool = run.labels(), project.pool()
    snapshot = open_store(project).snapshot()
    human, _ = snapshot.on_pool(pool.ids, pool.duplicate_of)
    assert len(labels) == 60 and labels.class_names == NAMES
    assert (labels.labels[human >= 0] == human[human >= 0]).all() and labels.human_mask.sum() == 30
    assert (labels.labels[human < 0] == run.predicted()[human < 0]).all()
    assert run.features().shape[0] == 60
    assert run.artifact.inputs == {"pool": pool.hash, "labels": snapshot.hash} == dict(job.pins)
    assert (run.artifact.settings["algorithm"], run.artifact.settings["preset"]) == ("fixmatch", "quick")
    assert run.artifact.facts["reference"]["n"] == 30
    assert run.artifact.facts["quality"]["accuracy"]["n"] == 3 == run.held_out_mask().sum()
    assert artifacts.differences(run.artifact.folder) == []
    assert [path.name for path in job.work_folder.iterdir()] == ["labels.npz"]
    assert job.result()["artifact"] == run.artifact.id


def test_the_same_run_twice_gives_the_same_artifact(project):
    train(project)
    train(project)
    first, second = project.artifacts("pseudo")
    assert first.hash == second.hash
    train(project, short_run(seed=1))
    assert project.artifacts("pseudo")[-1].hash != first.hash


def test_the_curve_is_written_as_it_goes(project):
    job = train(project)
    told = training.curves(job.progress())  # at most a few lines a second: quick epochs share one
    assert told.checks["held_out"][-1][0] == 12 and told.class_counts[-1][0] == 12
    assert told.lines["loss"] and told.lines["mask_share"] and told.lines["lr"] and told.lines["images_per_s"]
    (run,) = training.list_runs(project)
    found = training.run_curves(run)
    assert found.lines == told.lines
    assert [step for step, *_ in found.checks["held_out"]] == [4, 8, 12]
    assert all(low <= value <= high for _, value, low, high in found.checks["held_out"])
    assert all(len(counts) == 3 for _, counts in found.class_counts)
    job.delete()
    (alone,) = training.list_runs(project)
    assert training.run_curves(alone).checks == found.checks  # the artifact remembers
    assert alone.settings == run.settings and alone.status.state == "done"


def test_a_curve_leaves_out_what_an_interrupted_attempt_did_after_its_checkpoint():
    lines = [{"attempt": 1, "done": done, "loss": 1.0} for done in (10, 20, 30)]
    lines += [{"attempt": 2, "done": done, "loss": 2.0} for done in (20, 30, 40)]
    assert training.curves(lines).lines["loss"] == [(10, 1.0), (20, 2.0), (30, 2.0), (40, 2.0)]
    many = [{"attempt": 1, "done": done, "loss": 0.0} for done in range(5000)]
    thinned = training.curves(many, limit=100).lines["loss"]
    assert len(thinned) == 100 and thinned[-1][0] == 4999


def test_labels_given_while_it_waits_do_not_reach_the_run(project):
    before = open_store(project).snapshot()
    job = training.start_training(project, short_run(), device="cpu")
    label(project, {unlabeled(project)[0]: "a"})
    assert open_store(project).snapshot().hash != before.hash
    assert wait(job, PATIENCE).state == "done", job.log_tail()
    run = latest_pseudo(project)
    assert run.artifact.inputs["labels"] == before.hash
    assert run.labels().human_mask.sum() == 30
    change = training.changes_since(project, before.hash, open_store(project).snapshot())
    assert (change.added, change.changed, change.removed) == (1, 0, 0)
    assert training.changes_since(project, before.hash, before) is None


@pytest.mark.fault
def test_killed_in_the_middle_it_goes_on_with_its_own_labels_to_the_same_end(project, template):
    settings = short_run(epochs=3, steps_per_epoch=5, checkpoint_every=5)
    train(project, settings)
    template.kill_next_at(8)
    job = training.start_training(project, settings, device="cpu")
    assert wait(job, PATIENCE).state == "lost"
    assert list(job.work_folder.glob("round-0/checkpoint-*.json"))
    label(project, {0: "b", 1: "b", 2: "b"})  # people go on labeling
    (project.folder / "snapshots" / f"{job.pins['labels']}.npz").unlink()
    job.resume()
    assert wait(job, PATIENCE).state == "done", job.log_tail()
    straight, resumed = project.artifacts("pseudo")
    assert resumed.hash == straight.hash
    steps = [step for step, _ in training.curves(job.progress()).lines["loss"]]
    assert steps == sorted(set(steps))


def test_a_stop_leaves_a_checkpoint_and_resume_goes_on(project):
    job = training.start_training(
        project, short_run(epochs=200, steps_per_epoch=10, checkpoint_every=10_000), device="cpu"
    )
    supervise(job.workspace)
    wait_until(lambda: job.status().done >= 3, seconds=PATIENCE)
    job.stop()
    status = wait(job, PATIENCE)
    assert status.state == "stopped" and 0 < status.done < 2000
    assert list(job.work_folder.glob("round-0/checkpoint-*.json"))
    assert training.list_runs(project)[0].artifact is None


@pytest.mark.parametrize(
    "damage, code",
    [
        (lambda segment: segment.path("images.npy").unlink(), "CACHE_MISSING"),
        (lambda segment: flip_a_bit(segment.path("images.npy")), "CACHE_CHANGED"),
    ],
)
def test_a_training_cache_that_is_gone_or_changed_is_refused_in_words(project, damage, code):
    job = training.start_training(project, short_run(), device="cpu")
    damage(project.artifacts("pool")[0])
    status = wait(job, PATIENCE)
    assert (status.state, status.error_code) == ("failed", code)
    assert "import the images again" in status.message
    assert project.latest("pseudo") is None


def test_pressing_train_reads_no_training_cache_and_sees_what_is_cheap_to_see(project, monkeypatch):
    hashed = []
    monkeypatch.setattr(files, "sha256_file", lambda path: hashed.append(path))
    job = training.start_training(project, short_run(), device="cpu")
    assert hashed == []
    job.stop()
    cache = project.artifacts("pool")[0].path("images.npy")
    cache.write_bytes(cache.read_bytes()[:-1])
    with pytest.raises(WorkspaceError, match="was changed since the import"):
        training.start_training(project, short_run(), device="cpu")
    cache.unlink()
    with pytest.raises(WorkspaceError, match="is missing"):
        training.start_training(project, short_run(), device="cpu")
    assert len(training.list_runs(project)) == 1


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_another_pool_than_at_the_start_is_refused(project):
    with pytest.raises(InvalidDataError, match="The pool changed since this run was started"):
        training.check_pool(project.pool(), "0" * 64)


def test_damaged_or_foreign_labels_are_refused(project):
    snapshot = open_store(project).snapshot()
    path = training.keep_snapshot(project, snapshot)
    assert training.read_snapshot(path, snapshot.hash).hash == snapshot.hash
    with pytest.raises(WorkspaceError, match="other labels") as other:
        training.read_snapshot(path, "0" * 64)
    assert other.value.code == "LABELS_CHANGED"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(WorkspaceError, match="damaged"):
        training.read_snapshot(path, snapshot.hash)


def test_what_cannot_be_learned_from_is_refused_before_anything_starts(workspace, tmp_path):
    project = small_project(workspace, tmp_path, reference=False)
    assert "at least two classes" in training.training_data(project).problem
    label(project, {0: "a", 1: "a"})
    assert "at least two classes" in training.training_data(project).problem
    with pytest.raises(InvalidDataError, match="at least two classes"):
        training.start_training(project, short_run(), device="cpu")
    open_store(project).classes.add(["b", "c"], annotator="ann")
    assert "All labels are of one class, a." in training.training_data(project).problem
    label(project, {2: "b"})
    data = training.training_data(project)
    assert data.problem is None and data.missing_classes == ("c",)
    assert list(project.runs_folder.iterdir()) == []


def test_a_class_without_a_label_does_not_stop_the_line_and_no_image_gets_it(workspace, tmp_path):
    project = small_project(workspace, tmp_path, reference=False)
    reference = project.pool().reference_labels
    open_store(project).classes.add(["c", "b", "a"], annotator="ann")
    label(project, {int(place): NAMES[c] for c in (0, 1) for place in np.flatnonzero(reference == c)[:6]})
    train(project)
    run = latest_pseudo(project)
    names = np.array(run.class_names)
    assert set(names[run.labels().labels]) == {"a", "b"} and set(names[run.predicted()]) == {"a", "b"}
    facts = run.artifact.facts
    assert facts["class_counts"][run.class_names.index("c")] == 0
    assert facts["reference"]["value"] < 0.7  # images of the missing class count as wrong
    history = run.history()
    assert all(len(epoch["class_counts"]) == 3 for epoch in history if epoch.get("class_counts"))


def test_a_pool_of_twelve_images_and_fewer_labels_than_a_batch(workspace, tmp_path):
    project = small_project(workspace, tmp_path, n=12, reference=False)
    reference = project.pool().reference_labels
    label(project, {int(np.flatnonzero(reference == c)[0]): NAMES[c] for c in range(3)})
    job = train(project, short_run(batch_size=64, epochs=1, steps_per_epoch=2))
    assert job.result()["accuracy"] is None and len(latest_pseudo(project).labels()) == 12


def test_only_labels_drawn_at_random_measure_the_result(project):
    chosen, reference = unlabeled(project)[:20], project.pool().reference_labels
    label(project, {position: NAMES[reference[position]] for position in chosen})
    data = training.training_data(project)
    assert (data.n_labels, data.n_measurable) == (50, 30)
    train(project, short_run(held_out=0.5))
    held = latest_pseudo(project).held_out_mask()
    assert held.sum() == data.n_held_out(short_run(held_out=0.5).training) == 15
    assert not held[chosen].any()


def test_a_copy_of_a_held_out_picture_is_not_trained_on(workspace, tmp_path):
    images, truth = np.zeros((40, 28, 28, 1), np.uint8), np.arange(40) % 2
    images[:, :, :, 0] = np.arange(40)[:, None, None] // 2 * 5 + truth[:, None, None] * 100
    images[1::4] = images[0::4]  # every fourth picture is there twice
    truth[1::4] = truth[0::4]
    path = tmp_path / "copies.npz"
    np.savez(path, images=images, labels=np.array(["a", "b"])[truth])
    project = workspace.create("Copies")
    import_source(project, ImportSettings(source=SourceSpec("npz", str(path)).to_json(), n_workers=1), Collected())
    draw(project, 1.0)
    take_reference(open_store(project), project.pool())
    pool = project.pool()
    laid = training.labels_on_pool(open_store(project).snapshot(), pool)
    copies = pool.duplicate_of != np.arange(40)
    assert copies.sum() >= 10 and (laid.human >= 0).all()
    assert (laid.learned[copies] == -1).all() and not laid.measurable_mask[copies].any()
    train(project, short_run())
    labels = latest_pseudo(project).labels()
    assert labels.human_mask.all() and (labels.labels == labels.labels[pool.duplicate_of]).all()


def test_an_end_between_artifact_and_status_is_not_done_twice(project):
    job = train(project)
    files.write_json(job.folder / "status.json", job.status().ended("lost", "", "LOST").to_json())
    job.resume()
    assert wait(job, PATIENCE).state == "done"
    assert len(project.artifacts("pseudo")) == 1 and job.result()["artifact"] == "pseudo-0001"


def test_settings_that_cannot_be_are_refused(project):
    with pytest.raises(InvalidSettingError, match="Did you mean 'lr'"):
        TrainSettings(ssl={"lrr": 1})
    with pytest.raises(InvalidSettingError, match="seed"):
        TrainSettings(seed=-1)
    with pytest.raises(InvalidDataError, match="multiple of 3"):
        training.start_training(project, short_run(), device="cpu", nproc=3)


def test_deleting_a_run_removes_its_folder_and_artifact_unless_something_was_made_from_it(project):
    train(project)
    (run,) = training.list_runs(project)
    with project.draft("scores", settings={}, inputs={"pseudo": run.artifact.hash}) as draft:
        pass
    with pytest.raises(ConflictError, match="scores-0001 was made from it"):
        training.delete_run(project, run)
    assert training.list_runs(project)
    draft.folder.joinpath("manifest.json").unlink()
    draft.folder.rmdir()
    training.delete_run(project, run)
    assert training.list_runs(project) == [] and list(project.runs_folder.iterdir()) == []
    assert project.latest("pseudo") is None


def test_settings_stand_side_by_side(project):
    train(project)
    train(project, short_run(algorithm="supervised", lr=0.01))
    rows = training.side_by_side(training.list_runs(project))
    assert rows["lr"] == [0.01, 0.03] and rows["algorithm"] == ["supervised", "fixmatch"]
    assert rows["options.threshold"] == ["", 0.95] and rows["epochs"] == [3, 3]


def test_a_few_timed_steps_say_how_long_a_run_takes(project):
    data = training.training_data(project)
    job = preflight.start_trial(project, short_run(), data, device="cpu", immediate=True)
    assert job.status().state == "done", job.log_tail()
    trial = preflight.trial_of(job)
    assert trial.seconds_per_step > 0 and trial.checkpoint_bytes > 4 * trial.n_weights and trial.ram_bytes > 1e7
    assert trial.images_per_step == 8 * 3
    found = preflight.estimate(trial, short_run().training, data)
    longer = preflight.estimate(trial, short_run(epochs=30).training, data)
    assert found.n_steps == 12 and longer.n_steps == 120
    assert longer.seconds - found.seconds >= 108 * trial.seconds_per_step
    crossed = preflight.estimate(trial, short_run(cross_fit=3).training, data)
    assert crossed.n_rounds == 3 and crossed.n_steps == 36 and crossed.seconds > found.seconds
    assert preflight.start_trial(project, short_run(lr=0.5), data, device="cpu") == job  # a step costs the same
    other = preflight.start_trial(project, short_run(batch_size=16), data, device="cpu")
    assert other != job
    assert other.stop().state == "stopped"
    assert project.latest("pseudo") is None


def test_training_may_begin_before_the_subset_is_complete(workspace, tmp_path):
    project = small_project(workspace, tmp_path, reference=False)

    def state(key):
        return next(place.state for place in steps.standing(project) if place.step.key == key)

    assert state("train") == "waiting"
    label(project, {0: "a"})
    assert state("train") == "waiting"
    label(project, {1: "b"})
    assert (state("label"), state("train"), state("pseudo")) == ("next", "next", "waiting")


@pytest.mark.slow
def test_two_processes_share_a_run(project):
    job = training.start_training(project, short_run(epochs=1), device="cpu", nproc=2)
    assert wait(job, PATIENCE).state == "done", job.log_tail()
    assert len(latest_pseudo(project).labels()) == 60
