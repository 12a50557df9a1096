"""Random damage to the files of one project: it is named, and every other project stays as it was."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from semiprune_core import jobs, steps
from semiprune_core.errors import SemiPruneError
from semiprune_core.project import workspace as workspaces
from semiprune_core.project.workspace import Workspace
from tests.support.effort import FULL
from tests.support.training_projects import small_project

N_DAMAGES = 200 if FULL else 30


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """Five projects with a pool, labels and a job that is over."""
    folder = tmp_path_factory.mktemp("five")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEMIPRUNE_ROOTS", str(folder))
        workspace = Workspace.open(folder / "home")
        first = small_project(workspace, folder, n=12)
        jobs.submit(first, "import", {}).stop()
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
    """What the page of all projects reads."""
    jobs.damaged_jobs(project)
    running = [job.status() for job in jobs.list_jobs(project)]
    return len(project.pool()), [place.state for place in steps.standing(project)], running


@pytest.mark.fault
def test_damage_is_named_and_costs_no_other_project(five):
    rng, sound = np.random.default_rng(18), look(five.project("bars"))
    unnamed = []
    for _ in range(N_DAMAGES):
        folder = five.root / f"bars-{rng.integers(4)}"
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        path = files[rng.integers(len(files))]
        kept = five.root.parent / "kept"
        shutil.copytree(folder, kept)
        damage(path, rng)
        workspaces._opened.cache_clear()
        try:
            look(five.project(folder.name))
        except SemiPruneError:
            pass
        except Exception as error:  # noqa: BLE001 - counted
            unnamed.append((path.relative_to(folder).as_posix(), repr(error)))
        jobs.supervise(five)
        for name in five.names():
            if name != folder.name:
                assert look(five.project(name)) == sound
        assert folder.name in five.names()
        shutil.rmtree(folder)
        kept.rename(folder)
    assert unnamed == []
