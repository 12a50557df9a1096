"""Artifacts are whole or absent, name their inputs, and prove themselves."""

import errno
import json

import numpy as np
import pytest

from semiprune_core.errors import DiskFullError, WorkspaceError
from semiprune_core.project import artifacts


def make(parent, value=1, **changes):
    wanted = {"settings": {"size": 32}, "inputs": {"pool": "abc"}, "seed": 0, **changes}
    with artifacts.draft_artifact(parent, "scores", **wanted) as draft:
        np.save(draft.path("aum.npy"), np.full(4, value))
        draft.facts["n"] = 4
    return artifacts.open_artifact(draft.folder)


def test_a_finished_artifact_names_what_it_is_made_from(tmp_path):
    made = make(tmp_path)
    assert made.id == "scores-0001"
    assert (made.settings, made.inputs, made.facts["n"]) == ({"size": 32}, {"pool": "abc"}, 4)
    assert made.manifest["versions"]["numpy"] == np.__version__
    assert set(made.manifest["files"]) == {"aum.npy"}
    assert artifacts.differences(made.folder) == []


def test_equal_work_has_equal_hashes_and_different_work_does_not(tmp_path):
    first, second = make(tmp_path), make(tmp_path)
    assert (first.id, second.id) == ("scores-0001", "scores-0002")
    assert first.hash == second.hash
    others = [
        make(tmp_path, 2),
        make(tmp_path, seed=1),
        make(tmp_path, settings={}),
        make(tmp_path, inputs={"pool": "b"}),
    ]
    assert len({first.hash, *(other.hash for other in others)}) == 5


def test_a_failure_inside_leaves_no_trace(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        artifacts.draft_artifact(tmp_path, "scores", settings={}, inputs={}) as draft,
    ):
        draft.path("aum.npy").write_bytes(b"half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_and_leaves_no_trace(tmp_path):
    with (
        pytest.raises(DiskFullError, match="disk is full"),
        artifacts.draft_artifact(tmp_path, "scores", settings={}, inputs={}),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_is_named(tmp_path):
    made = make(tmp_path)
    made.path("aum.npy").write_bytes(b"other")
    assert artifacts.differences(made.folder)[0].startswith("aum.npy was changed")


def test_a_missing_and_an_extra_file_are_named(tmp_path):
    made = make(tmp_path)
    made.path("aum.npy").rename(made.path("new.npy"))
    assert artifacts.differences(made.folder) == ["aum.npy is missing", "new.npy is not in the manifest"]


@pytest.mark.parametrize(
    "key, value", [("settings", {"size": 64}), ("seed", 7), ("inputs", {}), ("kind", "pool"), ("facts", {"n": 1})]
)
def test_a_changed_manifest_is_noticed(tmp_path, key, value):
    made = make(tmp_path)
    path = made.path("manifest.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    assert any("manifest.json was changed" in said for said in artifacts.differences(made.folder))


def test_a_manifest_of_another_schema_is_refused(tmp_path):
    made = make(tmp_path)
    path = made.path("manifest.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    with pytest.raises(WorkspaceError, match="another version"):
        artifacts.open_artifact(made.folder)


def test_unfinished_folders_are_not_listed(tmp_path):
    make(tmp_path)
    (tmp_path / ".scores.abcd.part").mkdir()
    (tmp_path / "notes").mkdir()
    assert [artifact.id for artifact in artifacts.list_artifacts(tmp_path)] == ["scores-0001"]
