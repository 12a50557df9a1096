"""The examples of docs/extending.md, put where the page says and run as the page shows them."""

import doctest
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.exporting import FORMATS
from semiprune_core.importing.sources import SOURCES
from semiprune_core.learning.settings_help import algorithm_help
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.methods import METHODS
from semiprune_core.scores import SCORES
from semiprune_core.selection import SELECTORS
from semiprune_core.tracking import TRACKERS
from tests.support.scored_projects import make_scored

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "extending.md"
REGISTRIES = (SCORES, SELECTORS, METHODS, ALGORITHMS, SOURCES, FORMATS, TRACKERS)
NAMES = ("late_margin", "middle", "semi_late_middle", "rising", "textlist", "tsv", "paper_trail")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """Every example as a file of its package, imported like any other; all of it is gone afterwards."""
    kept = [(one, dict(one._things), dict(one._facts)) for one in REGISTRIES]
    imported = []
    for code in blocks("python"):
        path = Path(re.match(r"# (semiprune_core/\S+\.py)\n", code).group(1))
        package = importlib.import_module(".".join(path.parent.parts))
        folder = tmp_path / "examples" / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).write_text(code)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        name = f"{package.__name__}.{path.stem}"
        importlib.import_module(name)
        imported.append((package, path.stem, name))
    yield [name for _, _, name in imported]
    for package, stem, name in imported:
        del sys.modules[name]
        delattr(package, stem)
    for registry, things, facts in kept:
        registry._things, registry._facts = things, facts


def test_there_is_an_example_of_each_kind_and_each_registers_itself(examples):
    assert len(examples) == len(REGISTRIES)
    for registry, name in zip(REGISTRIES, NAMES):
        assert name in registry and registry.title(name) != name


def test_what_the_page_shows_is_what_happens(examples, workspace, tmp_path, class_folder):
    project = make_scored(workspace, tmp_path)
    names = {
        "workspace": workspace,
        "folder": class_folder,
        "project": project,
        "run": build_coreset(project, CoresetRequest(pruning_ratio=0.5)),
    }
    shown = blocks("pycon")
    assert len(shown) == len(REGISTRIES)
    test = doctest.DocTestParser().get_doctest("\n".join(shown), names, PAGE.name, str(PAGE), 0)
    said = []
    results = doctest.DocTestRunner().run(test, out=said.append)
    assert results.attempted > 20 and results.failed == 0, "".join(said)


def test_the_settings_of_the_example_algorithm_are_in_words(examples):
    assert all(one.about for one in algorithm_help("rising").values())


NEWCOMERS = " or ".join(NAMES)
SUITES = (
    "tests/scores/test_scores.py",
    "tests/selection/test_common.py",
    "tests/methods/test_methods.py",
    "tests/learning/test_algorithms.py",
    "tests/exporting/test_formats.py",
)


def copy_house(house, *names):
    """A copy of these parts of the tree."""
    for name in names:
        if (ROOT / name).is_dir():
            leave_out = shutil.ignore_patterns("__pycache__", "browser", "hostile_inputs")
            shutil.copytree(ROOT / name, house / name, ignore=leave_out)
        else:
            shutil.copy(ROOT / name, house / name)
    return house


def test_the_common_suites_pass_over_the_examples_in_the_tree(tmp_path):
    """A copy of the tree with each example where the page says; only the newcomers' cases are run."""
    house = copy_house(tmp_path / "house", "semiprune_core", "tests", "assets", "pyproject.toml")
    for code in blocks("python"):
        (house / re.match(r"# (semiprune_core/\S+\.py)\n", code).group(1)).write_text(code)
    words = [sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", "-k", NEWCOMERS, *SUITES]
    done = subprocess.run(
        words, cwd=house, env={**os.environ, "PYTHONPATH": str(house)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:]
    for name in set(NAMES) - {"textlist", "paper_trail"}:  # no common suite for these; the page's own example uses them
        assert f"[{name}" in done.stdout or f"-{name}" in done.stdout, name


def test_the_example_selector_keeps_the_budget_of_every_size(examples):
    from tests.selection.test_common import KINDS, make

    for kind in KINDS:
        evidence = make(kind, 23)
        for budget in range(24):
            chosen = SELECTORS["middle"](evidence, budget, rng=np.random.default_rng(0))
            assert len(set(chosen.tolist())) == budget


USE = """
import json, sys
from pathlib import Path
from semiprune_core import jobs
from semiprune_core.project.workspace import Workspace
project = Workspace.open(Path(sys.argv[1])).project(sys.argv[2])
job = jobs.submit(project, "recount", {}, immediate=True)
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("pages/main.py", default_timeout=120).run()
app.switch_page("notes.py").run()
assert not app.exception, app.exception
shown = [element.value for element in app.markdown]
print(json.dumps({"title": job.title, "device": job.device, "result": job.result(), "shown": shown}))
"""


def test_a_job_kind_and_a_page_are_one_file_each(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=60)
    house = copy_house(tmp_path / "house", "semiprune_core", "pages", "assets", "app.py")
    job_kind, page = blocks("py")
    (house / re.match(r"# (semiprune_core/\S+\.py)\n", job_kind).group(1)).write_text(job_kind)
    (house / "pages" / "notes.py").write_text(f"{page}\nimport streamlit as st\n\nst.write('Nothing noted yet.')\n")
    words = [sys.executable, "-c", USE, str(workspace.root), project.name]
    environment = {**os.environ, "PYTHONPATH": str(house), "SEMIPRUNE_HOME": str(workspace.root)}
    done = subprocess.run(words, cwd=house, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert (answer["title"], answer["device"], answer["result"]) == ("Count again", "io", {"n_images": 60})
    assert "Nothing noted yet." in answer["shown"]
