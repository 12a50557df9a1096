"""Labels in PostgreSQL have no copies beside the project: the pages and commands say so, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamlit.testing.v1 import AppTest

from semiprune_core.cli import main
from semiprune_core.copies import delete_project, restore
from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling import look_after_labels, open_store, schema
from semiprune_core.labeling.database import URL_VARIABLE, shared_postgresql
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")
NO_COPIES = "Labels are stored in PostgreSQL, so the app keeps no copies of them"


@pytest.fixture
def project(monkeypatch, postgresql_url, workspace, event):
    """A project with a label in PostgreSQL."""
    monkeypatch.setenv(URL_VARIABLE, postgresql_url)
    project = workspace.create("Far away")
    open_store(project).append([event("skip", 7)])
    yield project
    delete_project(workspace, project.name)
    shared_postgresql(postgresql_url).close()


def damage(project):
    def change(connection):
        table = schema.events
        connection.execute(sa.update(table).filter_by(project=project.name).values(annotator="mallory"))

    open_store(project).database.write(change)


def test_projects_says_that_no_copies_are_kept(project, monkeypatch):
    def captions():
        return [caption.value for caption in AppTest.from_file(MAIN, default_timeout=PATIENCE).run().caption]

    assert [words for words in captions() if words.startswith(NO_COPIES)]
    with monkeypatch.context() as patched:
        patched.delenv(URL_VARIABLE)
        assert not [words for words in captions() if words.startswith(NO_COPIES)]


def test_restore_says_that_there_are_no_copies(project, workspace, capsys):
    look_after_labels(workspace)
    assert not (project.folder / "label_backups").exists()
    assert main(["restore", project.name]) == 1
    assert f"Nothing of project 'far-away' needs restoring. {NO_COPIES}" in capsys.readouterr().err
    damage(project)
    assert main(["restore", project.name, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["code"] == "NO_BACKUP"
    assert "restore that database from a backup of its own" in answer["error"]
    assert main(["verify", project.name]) == 1
    assert "restore PostgreSQL from a backup of its own" in capsys.readouterr().out


def test_what_was_restored_is_told_when_labels_cannot_be(project, workspace):
    damage(project)
    (project.folder / "project.json").write_text("{")
    with pytest.raises(WorkspaceError, match=r"project.json was restored from its backup\. The labels .* PostgreSQL"):
        restore(workspace, project.name)
    assert workspace.project(project.name).title == "Far away"


def test_a_database_that_does_not_answer_is_named(workspace, monkeypatch, tmp_path):
    project = workspace.create("Far away")
    monkeypatch.setenv(URL_VARIABLE, f"postgresql://me@/x?host={tmp_path}")
    with pytest.raises(WorkspaceError, match="cannot be reached"):
        restore(workspace, project.name)
