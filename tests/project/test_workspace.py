"""Projects are folders with a name that cannot hurt."""

import errno
import json
import stat
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from semiprune_core import files, jobs
from semiprune_core.copies import has_backup, restore_project
from semiprune_core.errors import DiskFullError, MissingStepError, WorkspaceError
from semiprune_core.importing import ImportSettings, begin_project
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project import migrations
from semiprune_core.project.workspace import Workspace, slug_of


@pytest.fixture
def workspace(tmp_path):
    return Workspace.open(tmp_path / "home")


def test_a_project_is_made_and_found_again(workspace):
    made = workspace.create("My Clothing Photos!")
    assert made.name == "my-clothing-photos"
    assert workspace.project(made.name).title == "My Clothing Photos!"
    assert [project.name for project in workspace] == ["my-clothing-photos"]


def test_the_same_title_twice_gives_two_projects(workspace):
    assert [workspace.create("Photos").name for _ in range(3)] == ["photos", "photos-2", "photos-3"]


def test_a_taken_name_is_refused_when_asked_for(workspace):
    workspace.create("Photos", name="photos")
    with pytest.raises(WorkspaceError, match="already"):
        workspace.create("Photos", name="photos")


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "con", "-a", "a" * 65, ".hidden", "secret", "a\n", "ä"])
def test_names_that_could_hurt_are_refused(workspace, name):
    with pytest.raises(WorkspaceError, match="project's name"):
        workspace.create("Photos", name=name)
    assert name not in workspace


@pytest.mark.parametrize("title", ["日本", "!!!", "CON", "..", "a" * 300, "\u202egnp", "=cmd()"])
def test_any_title_gets_a_safe_folder(workspace, title):
    project = workspace.create(title)
    assert project.folder.parent == workspace.root
    assert project.title == title


def test_an_empty_title_is_refused(workspace):
    with pytest.raises(WorkspaceError, match="needs a name"):
        workspace.create(" \n ")


def test_an_unknown_project_is_named_with_the_known_ones(workspace):
    workspace.create("Photos")
    with pytest.raises(WorkspaceError, match="no project '../etc'. Known: photos"):
        workspace.project("../etc")


def test_the_secret_is_random_and_private(tmp_path):
    first, second = Workspace.open(tmp_path / "a"), Workspace.open(tmp_path / "b")
    assert first.secret == first.secret != second.secret
    assert stat.S_IMODE((first.root / "secret").stat().st_mode) == 0o600


def test_a_project_without_images_says_so(workspace):
    with pytest.raises(MissingStepError, match="no images yet"):
        workspace.create("Photos").pool()


def test_a_newer_schema_is_refused_untouched(workspace):
    project = workspace.create("Photos")
    path = project.folder / "project.json"
    text = json.dumps({**json.loads(path.read_text()), "schema": 99})
    path.write_text(text)
    with pytest.raises(WorkspaceError, match="newer SemiPrune Studio"):
        workspace.project("photos")
    assert path.read_text() == text


def test_migrations_run_in_order_and_are_recorded(workspace, monkeypatch):
    project = workspace.create("Photos")
    ran = []
    monkeypatch.setattr(migrations, "STEPS", {2: lambda folder: ran.append(2), 3: lambda folder: ran.append(3)})
    assert workspace.project("photos").config["schema"] == 3
    workspace.project("photos")
    assert ran == [2, 3]
    assert project.name == "photos"


def test_an_interrupted_migration_goes_on_where_it_stopped(workspace, monkeypatch):
    workspace.create("Photos")
    ran = []

    def third(folder):
        ran.append(3)
        if len(ran) == 2:
            raise OSError("power cut")

    monkeypatch.setattr(migrations, "STEPS", {2: lambda folder: ran.append(2), 3: third})
    with pytest.raises(OSError, match="power cut"):
        workspace.project("photos")
    assert workspace.project("photos").config["schema"] == 3
    assert ran == [2, 3, 3]


def test_slugs_are_short_and_plain():
    assert slug_of("A" * 200) == "a" * 64
    assert slug_of("x--y  z") == "x-y-z"


@pytest.mark.parametrize("text", ["[]", "{}", '{"schema": 1}', '{"schema": "1", "name": "a"}', "null"])
def test_a_project_file_of_the_wrong_shape_is_named(workspace, text):
    project = workspace.create("Photos")
    (project.folder / "project.json").write_text(text)
    with pytest.raises(WorkspaceError, match="damaged"):
        workspace.project("photos")


def test_a_project_file_that_is_missing_is_named_and_restored(workspace):
    project = workspace.create("Photos")
    (project.folder / "project.json").unlink()
    assert workspace.names() == ["photos"] and has_backup(workspace, "photos")
    with pytest.raises(WorkspaceError, match="is missing"):
        workspace.project("photos")
    assert restore_project(workspace, "photos").title == "Photos"
    assert not has_backup(workspace, "photos")


def test_a_full_disk_when_the_import_is_queued_leaves_no_ghost(workspace, monkeypatch):
    def full(*_, **__):
        raise DiskFullError("The disk is full.")

    settings = ImportSettings(source=SourceSpec("demo").to_json())
    with monkeypatch.context() as patched, pytest.raises(DiskFullError):
        patched.setattr(jobs, "submit", full)
        begin_project(workspace, "Photos", settings, name="photos")
    assert workspace.names() == [] and begin_project(workspace, "Photos", settings, name="photos").name == "photos"


@pytest.mark.parametrize("title", ["\ud800", "a\udfffb", "x\x00y", "a" * 501])
def test_a_title_that_cannot_be_kept_is_refused(workspace, title):
    with pytest.raises(WorkspaceError, match="cannot be a project's name"):
        workspace.create(title)
    assert workspace.names() == []


def test_a_full_disk_leaves_no_ghost_that_blocks_the_name(workspace, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(DiskFullError):
        patched.setattr(files, "write_json", full)
        workspace.create("Photos", name="photos")
    assert not list(workspace.root.iterdir())
    workspace.create("Photos", name="photos")


def test_all_who_come_first_get_the_same_secret(tmp_path):
    for number in range(20):
        workspace, gate = Workspace.open(tmp_path / str(number)), Barrier(8)

        def first(_, workspace=workspace, gate=gate):
            gate.wait()
            return workspace.secret

        with ThreadPoolExecutor(8) as threads:
            found = set(threads.map(first, range(8)))
        assert len(found) == 1 and len(found.pop()) >= 32
        assert [path.name for path in workspace.root.iterdir()].count("secret") == 1
        assert not list(workspace.root.glob(".secret*"))
        assert (workspace.root / "secret").stat().st_mode & 0o777 == 0o600
