"""The whole import over the table of hostile inputs: refused by name or listed by name, and nothing left behind."""

import os

import pytest

from semiprune_core.errors import SemiPruneError
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Workspace
from tests.hostile_inputs import CASES
from tests.importing.sources.test_hostile import snapshot
from tests.support.effort import FULL

STOPPED = [case for case in CASES if case.ending == "stop"]
LISTED = [case for case in CASES if case.ending == "listed"][:: 1 if FULL else 6]  # each one starts decoder processes


def outside(project, found):
    return {path: content for path, content in found.items() if not path.startswith(str(project.folder))}


@pytest.fixture
def run(tmp_path, monkeypatch):
    def run(case):
        monkeypatch.setenv("SEMIPRUNE_ROOTS", str(tmp_path / "allowed"))
        folder = tmp_path / "allowed" / case.name[:60]
        folder.mkdir(parents=True)
        workspace = Workspace.open(tmp_path / "home")
        project = workspace.create("Test")
        settings = ImportSettings(source=case.build(folder).to_json(), n_workers=1)
        before = snapshot(tmp_path)
        try:
            return project, import_source(project, settings, Collected()), None
        except SemiPruneError as error:
            return project, None, error
        finally:
            assert outside(project, snapshot(tmp_path)) == outside(project, before)

    return run


@pytest.mark.parametrize("case", STOPPED, ids=lambda case: case.name)
def test_an_unsafe_source_is_refused_and_leaves_nothing(run, case):
    project, artifact, error = run(case)
    assert artifact is None and error is not None
    assert error.code in (case.code, "SOURCE_EMPTY") and str(error).endswith(".")
    assert set(os.listdir(project.folder)) == {".project.json.backup", "project.json", "artifacts", "exports", "runs"}
    assert os.listdir(project.artifacts_folder) == []


@pytest.mark.parametrize("case", LISTED, ids=lambda case: case.name)
def test_a_bad_file_is_listed_and_the_good_one_arrives(run, case):
    project, artifact, error = run(case)
    assert error is None and artifact is not None
    problems = project.everything().segments[0].problems()
    assert case.code in {problem.code for problem in problems}
    assert artifact.facts["n_problems"] == len(problems)
    assert set(os.listdir(project.folder)) == {".project.json.backup", "project.json", "artifacts", "exports", "runs"}
