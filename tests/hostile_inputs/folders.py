"""Folders with links, pipes, twins and odd names; folders that may not be read."""

from __future__ import annotations

import os
from pathlib import Path

from semiprune_core.importing.sources.base import SourceSpec
from tests.hostile_inputs.cases import GOOD, Case, adding_to, outside

CASES: list[Case] = []
case = adding_to(CASES)


def _good_folder(folder: Path) -> SourceSpec:
    (folder / "good.png").write_bytes(GOOD)
    return SourceSpec("folder", str(folder))


@case("NOT_AN_IMAGE", "listed")
def folder_with_other_files(folder: Path) -> SourceSpec:
    (folder / "model.pkl").write_bytes(b"\x80\x04.")
    return _good_folder(folder)


@case("PATH_OUTSIDE_ROOT", "listed")
def folder_with_link_to_a_file_outside(folder: Path) -> SourceSpec:
    (folder / "link.png").symlink_to(outside(folder))
    return _good_folder(folder)


@case("PATH_OUTSIDE_ROOT", "listed")
def folder_with_link_to_a_folder_outside(folder: Path) -> SourceSpec:
    (folder / "cats").symlink_to(outside(folder).parent)
    return _good_folder(folder)


@case("PATH_OUTSIDE_ROOT", "listed")
def folder_with_relative_link_outside(folder: Path) -> SourceSpec:
    outside(folder)
    (folder / "link.png").symlink_to("../../outside/secret.png")
    return _good_folder(folder)


@case("LINKED_FOLDER", "listed")
def folder_that_links_to_itself(folder: Path) -> SourceSpec:
    (folder / "again").symlink_to(folder)
    return _good_folder(folder)


@case("FILE_MISSING", "listed")
def folder_with_link_to_nowhere(folder: Path) -> SourceSpec:
    (folder / "link.png").symlink_to(folder / "gone.png")
    return _good_folder(folder)


@case("FILE_MISSING", "listed")
def folder_with_links_in_a_circle(folder: Path) -> SourceSpec:
    (folder / "a.png").symlink_to(folder / "b.png")
    (folder / "b.png").symlink_to(folder / "a.png")
    return _good_folder(folder)


@case("NOT_A_FILE", "listed")
def folder_with_pipe(folder: Path) -> SourceSpec:
    os.mkfifo(folder / "pipe.png")
    return _good_folder(folder)


@case("NAME_TWIN", "listed")
def folder_with_unicode_twins(folder: Path) -> SourceSpec:
    (folder / "caf\u00e9.png").write_bytes(GOOD)
    (folder / "cafe\u0301.png").write_bytes(GOOD)
    return _good_folder(folder)


@case("NAME_TWIN", "listed")
def folder_with_case_twins(folder: Path) -> SourceSpec:
    (folder / "a.png").write_bytes(GOOD)
    (folder / "A.PNG").write_bytes(GOOD)
    return _good_folder(folder)


@case("NAME_NOT_UTF8", "listed")
def folder_with_name_in_latin_1(folder: Path) -> SourceSpec:
    with open(os.fsencode(folder) + b"/caf\xe9.png", "wb") as file:
        file.write(GOOD)
    return _good_folder(folder)


@case("NAME_UNUSABLE", "listed")
def folder_with_backslash_name(folder: Path) -> SourceSpec:
    (folder / "a\\..\\x.png").write_bytes(GOOD)
    return _good_folder(folder)


@case("FILE_TOO_LARGE", "listed")
def folder_with_file_of_a_terabyte(folder: Path) -> SourceSpec:
    with open(folder / "huge.png", "wb") as file:
        file.truncate(10**12)
    return _good_folder(folder)


@case("FOLDER_MISSING", "stop")
def folder_that_is_not_there(folder: Path) -> SourceSpec:
    return SourceSpec("folder", str(folder / "nothing"))


@case("FOLDER_MISSING", "stop")
def folder_that_is_a_file(folder: Path) -> SourceSpec:
    _good_folder(folder)
    return SourceSpec("folder", str(folder / "good.png"))


@case("PATH_OUTSIDE_ROOT", "stop")
def folder_outside(folder: Path) -> SourceSpec:
    return SourceSpec("folder", str(outside(folder).parent))


@case("PATH_OUTSIDE_ROOT", "stop")
def folder_climbing_outside(folder: Path) -> SourceSpec:
    outside(folder)
    return SourceSpec("folder", str(folder / ".." / ".." / "outside"))


@case("PATH_OUTSIDE_ROOT", "stop")
def folder_behind_a_link(folder: Path) -> SourceSpec:
    (folder / "link").symlink_to(outside(folder).parent)
    return SourceSpec("folder", str(folder / "link"))


@case("PATH_OUTSIDE_ROOT", "stop")
def folder_with_nul(folder: Path) -> SourceSpec:
    return SourceSpec("folder", f"{folder}\0/etc")


@case("URL_NOT_SUPPORTED", "stop")
def folder_as_address(folder: Path) -> SourceSpec:
    return SourceSpec("folder", "http://169.254.169.254/latest/meta-data")


@case("URL_NOT_SUPPORTED", "stop")
def folder_on_a_windows_share(folder: Path) -> SourceSpec:
    return SourceSpec("folder", "\\\\host\\share")
