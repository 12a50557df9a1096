"""Small real pictures and fresh workspaces for every test."""

from __future__ import annotations

import functools
import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from semiprune_core.importing import ImportSettings, import_source, workers
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.jobs import launch
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Workspace
from tests.support.effort import FULL
from tests.support.warm_workers import Template

os.environ["SEMIPRUNE_FEATURES"] = "off"  # imports are followed by nothing, except where a test asks for it
os.environ["SEMIPRUNE_ENCODER"] = "efficientnet_lite0"  # the smallest one, except where a test names others
os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: results are equal to the bit, and workers share the cores
os.environ["NUMBA_NUM_THREADS"] = "1"  # or UMAP's threads become those of torch for the rest of the process
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])  # for processes that tests start, from any folder
if not FULL:
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiling UMAP takes longer than mapping a few points without
MEMORY = Path("/dev/shm")
ROOM = 2 << 30  # bytes; a whole run leaves much less

# decoders are forked from a server that has everything loaded; some tests in tests/importing start them as the app does
workers.START_METHOD = "forkserver"
multiprocessing.set_forkserver_preload([workers.__name__])


def pytest_configure():
    """Temporary files in memory where there is room: half of a fast test was waiting for the disk to sync."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_modifyitems(items):
    """What takes milliseconds comes before what kills processes and waits for them."""
    items.sort(key=lambda item: item.get_closest_marker("fault") is not None)


def pytest_collection_finish():
    """What is installed is looked through once for Streamlit's components, not for every run of every page."""
    if "streamlit" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


@pytest.fixture(autouse=True)
def keep_process():
    """The interrupt handler and the mask of new files are a command's while it runs, and the test run's afterwards."""
    handler, mask = signal.getsignal(signal.SIGINT), os.umask(0o022)
    yield
    signal.signal(signal.SIGINT, handler)
    os.umask(mask)


@pytest.fixture(autouse=True)
def keep_main_module():
    """AppTest leaves the page as ``__main__``, and every process that multiprocessing starts would run it again."""
    module = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = module


@pytest.fixture(autouse=True)
def roots(tmp_path, monkeypatch):
    """Tests may read what they made themselves, and nothing else."""
    monkeypatch.setenv("SEMIPRUNE_ROOTS", str(tmp_path))
    monkeypatch.setenv("SEMIPRUNE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session")
def template():
    template = Template()
    yield template
    template.close()


@pytest.fixture(autouse=True)
def worker_start(monkeypatch, template):
    """Jobs start warm, except in tests/jobs, where their start is what is tested."""
    monkeypatch.setattr(launch, "start", template.start)


@pytest.fixture
def workspace(tmp_path):
    return Workspace.open(tmp_path / "home")


@pytest.fixture(scope="session")
def embedded(tmp_path_factory):
    """A small project without labels that has its features, by the real encoder; made once for all tests."""
    from semiprune_core.features import submit_features
    from tests.support.training_projects import small_project

    folder = tmp_path_factory.mktemp("embedded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMIPRUNE_ROOTS", str(folder))
        project = small_project(Workspace.open(folder / "home"), folder, reference=False)
        job = submit_features(project, immediate=True)
    assert job.status().state == "done", job.log_tail()
    job.delete()
    return project


@pytest.fixture
def with_features(workspace, embedded):
    """A copy of the small project with features, for one test."""
    shutil.copytree(embedded.folder, workspace.root / embedded.name)
    return workspace.project(embedded.name)


@pytest.fixture
def import_into(workspace):
    """Import a source into a new or a given project, in this process."""

    def run(spec: SourceSpec, project=None, progress=None, **settings):
        project = project or workspace.create("Test")
        wanted = ImportSettings(source=spec.to_json(), n_workers=1, **settings)
        return project, import_source(project, wanted, progress or Collected())

    return run


@pytest.fixture
def class_folder(tmp_path):
    """20 PNG pictures, 32 x 24, in the class folders cat and dog."""
    return make_class_folder(tmp_path / "pictures")


def make_class_folder(root, n=20, size=(32, 24), seed=0):
    rng = np.random.default_rng(seed)
    for number in range(n):
        folder = root / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:03d}.png")
    return root
