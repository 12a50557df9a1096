"""Checkpoints appear whole, two are kept, and a damaged one is passed over and named."""

import pytest
import torch

from semiprune_core import files
from semiprune_core.errors import DiskFullError, WorkspaceError
from semiprune_core.learning.checkpoints import Checkpoints, with_prefix, without_prefix


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path / "run", "this run")


def save(checkpoints, *steps):
    for step in steps:
        checkpoints.save(step, {"net.weight": torch.full((2, 3), float(step))}, {"history": [step]})


def test_the_newest_comes_back_and_two_are_kept(checkpoints):
    save(checkpoints, 5, 10, 15)
    assert checkpoints.steps() == [10, 15]
    assert sorted(path.suffix for path in checkpoints.folder.iterdir()) == [".json", ".json"] + [".safetensors"] * 2
    found = checkpoints.load()
    assert found.step == 15 and found.facts == {"history": [15]}
    assert torch.equal(found.tensors["net.weight"], torch.full((2, 3), 15.0))


def test_an_empty_folder_has_none(checkpoints):
    assert checkpoints.load() is None and checkpoints.notes == []


@pytest.mark.parametrize("damage", ["cut", "flip", "gone", "json", "empty json", "not a mapping"])
def test_a_damaged_checkpoint_is_passed_over_and_named(checkpoints, damage):
    save(checkpoints, 10, 20)
    tensors = checkpoints.folder / "checkpoint-00000020.safetensors"
    data = bytearray(tensors.read_bytes())
    if damage == "cut":
        tensors.write_bytes(data[:-4])
    elif damage == "flip":
        data[-1] ^= 1
        tensors.write_bytes(data)
    elif damage == "gone":
        tensors.unlink()
    else:
        text = {"json": '{"step"', "empty json": "", "not a mapping": "[]"}[damage]
        (checkpoints.folder / "checkpoint-00000020.json").write_text(text)
    assert checkpoints.load().step == 10
    assert "Checkpoint 20 is damaged" in checkpoints.notes[0]


def test_two_damaged_ones_mean_a_fresh_start(checkpoints):
    save(checkpoints, 1, 2)
    for path in checkpoints.folder.glob("*.safetensors"):
        path.write_bytes(b"")
    assert checkpoints.load() is None and len(checkpoints.notes) == 2


def test_checkpoints_of_another_run_are_refused(checkpoints):
    save(checkpoints, 1)
    with pytest.raises(WorkspaceError, match="another run"):
        Checkpoints(checkpoints.folder, "that run").load()


def test_leftovers_of_an_interrupted_write_are_removed(checkpoints):
    save(checkpoints, 1)
    (checkpoints.folder / ".checkpoint-00000002.safetensors.1234abcd.part").write_bytes(b"half")
    (checkpoints.folder / "checkpoint-00000002.safetensors").write_bytes(b"tensors without their JSON")
    assert checkpoints.load().step == 1
    save(checkpoints, 3)
    assert sorted(path.name[11:19] for path in checkpoints.folder.iterdir()) == ["00000001"] * 2 + ["00000003"] * 2


@pytest.mark.fault
def test_a_full_disk_fails_with_its_cause_and_leaves_the_old_checkpoint(checkpoints, monkeypatch):
    save(checkpoints, 1)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(DiskFullError, match="disk is full"):
        save(checkpoints, 2)
    monkeypatch.undo()
    assert checkpoints.load().step == 1
    assert not list(checkpoints.folder.glob(".*"))


def test_prefixes_come_off_as_they_went_on():
    tensors = {"a.b": torch.zeros(1)}
    assert (
        without_prefix("net", {**with_prefix("net", tensors), **with_prefix("network", tensors)}).keys()
        == tensors.keys()
    )
