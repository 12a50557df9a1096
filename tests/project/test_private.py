"""Nobody else on the machine reads the files of a workspace."""

import os
import stat
from pathlib import Path

import pytest

from semiprune_core.cli import main
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.project.private import close_to_others, keep_to_owner
from semiprune_core.project.workspace import Workspace


def open_to_others(folder: Path) -> set[str]:
    paths = [folder, *folder.rglob("*")]
    return {path.relative_to(folder).as_posix() for path in paths if path.lstat().st_mode & 0o077}


@pytest.fixture
def older(tmp_path):
    """A workspace as earlier versions made it."""
    workspace = Workspace.open(tmp_path / "home")
    workspace.root.chmod(0o755)
    project = workspace.create("Old")
    (project.exports_folder / "tree").mkdir()
    (project.exports_folder / "tree/a.csv").write_text("a")
    (workspace.root / "report.html").write_text("a")
    (workspace.root / ".uploads/1").mkdir(parents=True)
    return workspace


def test_an_older_workspace_is_closed_once_with_one_sentence(older):
    assert len(open_to_others(older.root)) > 8
    assert close_to_others(older) == f"Closed {older.root} to other users of this machine."
    assert open_to_others(older.root) == set()
    assert close_to_others(older) == ""
    assert stat.S_IMODE((older.root / "old/project.json").stat().st_mode) == 0o600


def test_originals_with_a_second_name_and_links_keep_their_rights(older, tmp_path):
    original = tmp_path / "original.png"
    original.write_bytes(b"x")
    os.link(original, older.root / "old/exports/linked.png")
    (older.root / "old/exports/link.png").symlink_to(original)
    close_to_others(older)
    assert stat.S_IMODE(original.stat().st_mode) == 0o644
    assert open_to_others(older.root) == {"old/exports/linked.png", "old/exports/link.png"}


def test_a_folder_that_serves_for_more_keeps_its_rights_and_projects_are_closed(older):
    (older.root / "photos").mkdir()
    assert close_to_others(older)
    assert open_to_others(older.root) == {".", "photos", "report.html"}
    (older.root / "photos").rmdir()
    older.root.chmod(0o1777)
    assert close_to_others(older) == ""
    assert stat.S_IMODE(older.root.stat().st_mode) == 0o1777


def test_what_the_command_line_finds_and_makes_is_closed(older, capsys):
    assert main(["projects", "--home", str(older.root)]) == 0
    assert f"Closed {older.root} to other users" in capsys.readouterr().err
    older.create("New")
    assert open_to_others(older.root) == set()


def test_images_and_labels_are_closed(class_folder, import_into):
    keep_to_owner()
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    open_store(project).classes.add(["cat"], annotator="ana")
    assert len(list(project.folder.rglob("*"))) > 10 and open_to_others(project.folder) == set()


def test_a_new_workspace_is_closed_even_without_the_mask(tmp_path):
    assert open_to_others(Workspace.open(tmp_path / "new").root) == set()
    keep_to_owner()
    (tmp_path / "new/a").write_text("a")
    assert open_to_others(tmp_path / "new") == set()


def test_behind_a_closed_root_there_is_nothing_to_close(tmp_path):
    workspace = Workspace.open(tmp_path / "made by a notebook")
    workspace.create("Birds").folder.chmod(0o755)
    assert close_to_others(workspace) == ""
