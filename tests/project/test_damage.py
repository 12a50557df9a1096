"""Random damage to the files of one project: it is named, and every other project stays as it was."""

from __future__ import annotations

import shutil
import uuid

import numpy as np
import pytest

from semiprune_core import jobs, steps
from semiprune_core.errors import SemiPruneError
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.labeling import Event, checking, look_after_labels, open_store
from semiprune_core.progress import Collected
from semiprune_core.project import workspace as workspaces
from semiprune_core.project.workspace import Workspace
from tests.support.effort import FULL
from tests.support.training_projects import small_project

N_DAMAGES = 200 if FULL else 30
HOLD_NOTHING = {"lease", "stop", ".lock", "labels.sqlite-journal", ".labels.checked.json", "labels.sqlite"}
"""Locks and marks, a hash that is taken anew, and a store, of which some bytes mean nothing: its labels are asked."""


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """Five projects with a pool, labels and a job that is over."""
    folder = tmp_path_factory.mktemp("five")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEMIPRUNE_ROOTS", str(folder))
        workspace = Workspace.open(folder / "home")
        first = small_project(workspace, folder, n=12)
        jobs.submit(first, "import", {}).stop()
        look_after_labels(workspace)
    for number in range(4):
        shutil.copytree(first.folder, workspace.root / f"bars-{number}")
    return workspace


def damage(path, rng):
    """One of six ways in which a file goes bad."""
    data = bytearray(path.read_bytes())
    way = rng.integers(6)
    if way == 0:
        path.unlink()
    elif way == 1:
        path.write_bytes(data[: len(data) // 2])
    elif way == 2:
        path.write_bytes(b"")
    elif way == 3:
        path.write_bytes(rng.choice([b"{}", b"[]", b"null", b"[" * 5000]))
    else:
        for place in rng.integers(0, max(1, len(data)), 1 if way == 4 else 20):
            if data:
                data[place] ^= 1 << rng.integers(8)
        path.write_bytes(data)


def look(project):
    """What the page of all projects reads, and the labels."""
    jobs.damaged_jobs(project)
    running = [job.status() for job in jobs.list_jobs(project)]
    states = [place.state for place in steps.standing(project)]
    return len(project.pool()), states, running, open_store(project).snapshot().hash


def save(project):
    """A person labels an image as it is labeled already."""
    store = open_store(project)
    image = int(store.labels().ids[0])
    event = Event(event_id=uuid.uuid4().hex, annotator="ann", action="flag", image_id=image)
    return store.append([event])[0].status


def named(workspace, name):
    """What is said of a project's damage: when it is opened, or by ``verify``."""
    try:
        project = workspace.project(name)
        look(project)
        return first_difference(verify(project.folder, Collected(), images=False))
    except SemiPruneError as error:
        return str(error)


@pytest.mark.fault
def test_damage_is_named_and_costs_no_other_project(five):
    rng, sound = np.random.default_rng(18), look(five.project("bars"))
    unnamed, n_named = [], 0
    for _ in range(N_DAMAGES):
        folder = five.root / f"bars-{rng.integers(4)}"
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        path = files[rng.integers(len(files))]
        place, content = path.relative_to(folder).as_posix(), path.read_bytes()
        kept = five.root.parent / "kept"
        shutil.copytree(folder, kept)
        damage(path, rng)
        workspaces._opened.cache_clear()
        checking.forget(folder / "labels.sqlite")
        try:
            reason = named(five, folder.name)
        except Exception as error:  # noqa: BLE001 - counted
            unnamed.append((place, repr(error)))
            reason = ""
        n_named += bool(reason)
        if reason is None:  # then nothing that anybody reads is another
            assert look(five.project(folder.name))[3] == sound[3], f"labels changed in silence: {place}"
            if path.exists() and path.read_bytes() != content and path.name not in HOLD_NOTHING:
                unnamed.append((place, "not named"))
        jobs.supervise(five)
        for name in five.names():
            if name != folder.name:
                assert look(five.project(name)) == sound and save(five.project(name)) == "saved"
        assert folder.name in five.names()
        shutil.rmtree(folder)
        kept.rename(folder)
        checking.forget(folder / "labels.sqlite")
    assert unnamed == [] and n_named > N_DAMAGES / 2
