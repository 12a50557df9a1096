"""Trajectories on disk: rows come back as they went in, a crash costs one epoch, resuming leaves the same bytes."""

import json

import numpy as np
import pytest

from semiprune_core import files
from semiprune_core.errors import DiskFullError, InvalidDataError, InvalidSettingError, WorkspaceError
from semiprune_core.results.trajectory_store import BYTES_PER_CELL, TrajectoryWriter, open_trajectory
from semiprune_core.scores import SCORES, compute_scores


def epoch(number, n_images=7):
    rng = np.random.default_rng(number)
    prob = rng.random(n_images)
    return {
        "target_prob": prob,
        "margin": 2 * prob - 1,
        "correct": prob > 0.5,
        "el2n": 1 - prob,
        "entropy": rng.random(n_images),
    }


def write(folder, n_epochs, *, planned=None, start=0):
    writer = TrajectoryWriter(folder, planned or n_epochs, 7)
    for number in range(start, n_epochs):
        writer.append(**epoch(number))
    return writer


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_rows_come_back_as_they_went_in(tmp_path):
    write(tmp_path, 4)
    trajectory = open_trajectory(tmp_path)
    assert trajectory.n_epochs == 4 and trajectory.n_images == 7
    for number in range(4):
        row = epoch(number)
        for name in ("target_prob", "margin", "el2n"):
            np.testing.assert_array_equal(getattr(trajectory, name)[number], row[name].astype(np.float32))
        np.testing.assert_array_equal(trajectory.correct[number], row["correct"])
    np.testing.assert_array_equal(trajectory.last_entropy, epoch(3)["entropy"].astype(np.float32))


def test_columns_are_memory_mapped_and_read_only(tmp_path):
    write(tmp_path, 2)
    trajectory = open_trajectory(tmp_path)
    for column in (trajectory.target_prob, trajectory.margin, trajectory.correct, trajectory.el2n):
        assert isinstance(column, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            column[0, 0] = 1


def test_planned_epochs_are_not_shown_before_they_are_done(tmp_path):
    write(tmp_path, 2, planned=5)
    assert open_trajectory(tmp_path).n_epochs == 2
    with pytest.raises(InvalidSettingError, match="n_epochs must be at least 1 and at most 2, got 3"):
        open_trajectory(tmp_path, 3)


def test_the_first_epochs_can_be_opened_alone_and_have_no_entropy(tmp_path):
    write(tmp_path, 4)
    trajectory = open_trajectory(tmp_path, 3)
    assert trajectory.n_epochs == 3 and trajectory.last_entropy is None


def test_the_disk_holds_thirteen_bytes_per_image_and_epoch(tmp_path):
    n_epochs, n_images, n_classes = 20, 1000, 100
    TrajectoryWriter(tmp_path, n_epochs, n_images)
    assert BYTES_PER_CELL == 13
    assert files.tree_bytes(tmp_path) * 20 <= n_epochs * n_images * n_classes * 4


@pytest.mark.parametrize("stop, back_to", [(3, 3), (3, 2), (5, 0), (1, 1)])
def test_a_resumed_run_leaves_the_same_bytes(tmp_path, stop, back_to):
    write(tmp_path / "straight", 5)
    write(tmp_path / "resumed", stop, planned=5)
    writer = TrajectoryWriter(tmp_path / "resumed", 5, 7)
    assert writer.epochs_done == stop
    writer.truncate(back_to)
    write(tmp_path / "resumed", 5, start=back_to)
    assert contents(tmp_path / "resumed") == contents(tmp_path / "straight")


@pytest.mark.fault
@pytest.mark.parametrize("step", [1, 2])
def test_a_crash_before_the_epoch_is_recorded_loses_that_epoch_only(tmp_path, monkeypatch, step):
    """Rows and entropy of epoch 3 are on the disk, the record is not."""
    write(tmp_path / "straight", 4)
    writer = write(tmp_path / "crashed", 2, planned=4)
    broken = {1: "open_atomic", 2: "write_json"}[step]
    with monkeypatch.context() as patch:
        patch.setattr(files, broken, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            writer.append(**epoch(2))
    seen = open_trajectory(tmp_path / "crashed")
    assert seen.n_epochs == 2
    np.testing.assert_array_equal(seen.last_entropy, epoch(1)["entropy"].astype(np.float32))
    write(tmp_path / "crashed", 4, start=2)
    assert contents(tmp_path / "crashed") == contents(tmp_path / "straight")


def test_a_trajectory_of_another_size_is_not_continued(tmp_path):
    write(tmp_path, 1, planned=3)
    for n_epochs, n_images in ((3, 8), (4, 7)):
        with pytest.raises(WorkspaceError, match="of 3 epochs and 7 images, not of"):
            TrajectoryWriter(tmp_path, n_epochs, n_images)


def test_a_complete_trajectory_takes_no_more(tmp_path):
    writer = write(tmp_path, 2)
    with pytest.raises(InvalidDataError, match="complete"):
        writer.append(**epoch(2))


@pytest.mark.parametrize("name", ["target_prob", "margin", "el2n", "entropy"])
def test_a_diverged_epoch_is_refused_and_nothing_is_recorded(tmp_path, name):
    writer = write(tmp_path, 1, planned=3)
    row = epoch(1)
    row[name][2] = np.nan
    with pytest.raises(InvalidDataError, match=f"{name} of epoch 2 is not finite for 1 images.*learning rate"):
        writer.append(**row)
    assert TrajectoryWriter(tmp_path, 3, 7).epochs_done == 1


def test_a_row_of_the_wrong_length_is_refused(tmp_path):
    writer = write(tmp_path, 1, planned=3)
    with pytest.raises(InvalidDataError, match=r"shape \(8,\), expected \(7,\)"):
        writer.append(**epoch(1, n_images=8))


def test_too_little_space_is_said_before_training_starts(tmp_path, monkeypatch):
    class Little:
        free = 100

    monkeypatch.setattr("shutil.disk_usage", lambda _: Little)
    with pytest.raises(DiskFullError, match="200 epochs and 50000 images needs 130 MB"):
        TrajectoryWriter(tmp_path / "new", 200, 50_000)
    assert list((tmp_path / "new").iterdir()) == []


def test_missing_empty_damaged_and_newer_trajectories_are_named(tmp_path):
    with pytest.raises(WorkspaceError, match="no trajectory"):
        open_trajectory(tmp_path)
    TrajectoryWriter(tmp_path, 2, 7)
    with pytest.raises(WorkspaceError, match="no finished epoch"):
        open_trajectory(tmp_path)
    write(tmp_path, 2)
    whole = (tmp_path / "margin.npy").read_bytes()
    (tmp_path / "margin.npy").write_bytes(whole[:-4])
    with pytest.raises(WorkspaceError, match=r"margin.npy is missing or damaged"):
        open_trajectory(tmp_path)
    np.save(tmp_path / "margin.npy", np.zeros((2, 7)))
    with pytest.raises(WorkspaceError, match=r"margin.npy holds float64 \(2, 7\), expected float32"):
        open_trajectory(tmp_path)
    facts = json.loads((tmp_path / "trajectory.json").read_text())
    (tmp_path / "trajectory.json").write_text(json.dumps({**facts, "schema": 99}))
    with pytest.raises(WorkspaceError, match="another version"):
        open_trajectory(tmp_path)


def test_scores_from_the_disk_equal_those_from_memory_up_to_float32(tmp_path):
    write(tmp_path, 12)
    stored = compute_scores(open_trajectory(tmp_path), block=3)
    rows = [epoch(number) for number in range(12)]
    exact = np.stack([row["margin"] for row in rows]).mean(0)
    assert set(stored.columns) == set(SCORES)
    assert np.abs(stored["aum"] - exact).max() <= 3.0e-8
