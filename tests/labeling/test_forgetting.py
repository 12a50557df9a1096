"""A deleted project leaves no labels behind, wherever they were."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa

from semiprune_core.copies import archive_project, delete_project
from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling import open_store, schema
from semiprune_core.project.workspace import Project


@pytest.fixture(params=["sqlite", "postgresql"])
def anywhere(request, monkeypatch):
    monkeypatch.delenv("SEMIPRUNE_DATABASE_URL", raising=False)
    if request.param == "postgresql":
        monkeypatch.setenv("SEMIPRUNE_DATABASE_URL", request.getfixturevalue("postgresql_url"))


def _label(project, event):
    store = open_store(project)
    store.classes.add(["cat"], annotator="ana")
    store.drawings.draw(
        pool_hash="h", ids=np.arange(5, dtype=np.uint64), duplicate_of=np.arange(5), count=3, annotator="ana"
    )
    store.leases.lease("ana", 2)
    store.append([event("label", 1, 0), event("undo"), event("flag", 2)])
    return store


def test_a_new_project_of_the_same_name_finds_nothing(anywhere, workspace, event):
    kept = _label(workspace.create("Kept for ever"), event)
    before = len(kept.events())
    _label(workspace.create("Owls"), event)
    delete_project(workspace, "owls")
    store = open_store(workspace.create("Owls"))
    assert store.events() == [] and store.held() == [] and store.last_seq == 0
    assert store.classes.names() == () and store.classes.history() == [] and store.drawings.all() == []
    with store.database.read() as connection:
        for table in schema.metadata.sorted_tables:
            rows = sa.select(sa.func.count()).where(table.c.project == store.project)
            assert connection.execute(rows).scalar_one() == 0, table.name
    assert len(kept.events()) == before > 0


def test_labels_that_cannot_be_reached_keep_the_project(workspace, monkeypatch, tmp_path):
    project = workspace.create("Owls")
    monkeypatch.setenv("SEMIPRUNE_DATABASE_URL", f"postgresql://me@/x?host={tmp_path}")
    with pytest.raises(WorkspaceError, match="cannot be reached"):
        delete_project(workspace, project.name)
    assert project.folder.is_dir()


def test_an_archived_project_takes_its_labels_along(anywhere, workspace, event, monkeypatch):
    before = _label(workspace.create("Owls"), event).events()
    archived = archive_project(workspace, "owls")
    assert open_store(workspace.create("Owls")).events() == []
    monkeypatch.delenv("SEMIPRUNE_DATABASE_URL", raising=False)
    assert open_store(Project(archived, {"name": "owls"})).events() == before
