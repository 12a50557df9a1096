"""Projects that are renamed, put aside and brought back: nothing else about them changes."""

import pytest

from semiprune_core.copies import archive_project, archived_projects, bring_back
from semiprune_core.errors import WorkspaceError
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import Event, open_store


@pytest.fixture
def project(class_folder, import_into):
    """A small pool with one label."""
    project = import_into(SourceSpec("folder", str(class_folder)))[0]
    store = open_store(project)
    store.classes.add(["cat", "dog"], annotator="ana")
    image = int(project.pool().ids[0])
    store.append([Event(event_id="one", annotator="ana", action="label", image_id=image, class_id=1)])
    return project


def test_another_title_changes_no_hash_and_no_folder(project):
    renamed = project.rename("  Pets   of 2026 ")
    assert (renamed.title, renamed.folder) == ("Pets of 2026", project.folder)
    assert project.workspace.project(project.name).pool().hash == project.pool().hash


@pytest.mark.parametrize("title", ["", "   ", "a\x00b", "x" * 501])
def test_a_title_that_cannot_be_is_refused(project, title):
    with pytest.raises(WorkspaceError):
        project.rename(title)
    assert project.workspace.project(project.name).title == project.title


def test_an_archived_project_comes_back_as_it_was(project):
    space, pool = project.workspace, project.pool().hash
    archive_project(space, project.name)
    assert space.names() == []
    (archived,) = archived_projects(space)
    assert (archived.name, archived.title) == (project.name, project.title)
    back = bring_back(space, archived.folder)
    assert back.pool().hash == pool and open_store(back).labels().class_ids.tolist() == [1]
    assert archived_projects(space) == [] and space.names() == [project.name]


def test_it_stays_archived_where_its_name_is_taken(project):
    space = project.workspace
    archive_project(space, project.name)
    space.create("Other", name=project.name)
    (archived,) = archived_projects(space)
    with pytest.raises(WorkspaceError, match="by now"):
        bring_back(space, archived.folder)
    with pytest.raises(WorkspaceError, match="no archived project"):
        bring_back(space, "../" + project.name)
    assert len(archived_projects(space)) == 1
