"""The guard: whatever is asked for, only what lies under an allowed root is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from semiprune_core.errors import UnsafePathError
from semiprune_core.paths import PathGuard, check_can_be_allowed, is_inside, normal_relative, open_beneath, shown
from semiprune_core.project.workspace import Workspace

CLIMBS = [
    "..",
    "../",
    "../..",
    "../../..",
    "../../../../../../../../..",
    "./..",
    "a/../..",
    "a/b/../../..",
    ".//..",
    "..//",
]
TARGETS = [
    "outside/secret.png",
    "root/.bashrc",
    "var/log/x.png",
    "outside",
    "allowed-twin/secret.png",
    "etc/passwd",
    "proc/self/environ",
    ".",
]
ADDRESSES = [
    "http://example.com/a.png",
    "HTTP://EXAMPLE.COM",
    "https://user:pass@host/x",
    "ftp://host/x",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "FILE:etc/passwd",
    "file://localhost/etc/passwd",
    "data:image/png;base64,AAAA",
    "javascript:alert(1)",
    "s3://bucket/key",
    "gs://bucket/key",
    "smb://host/share",
    "nfs:host/share",
    "gopher://host:70/x",
    "ssh://host/x",
    "blob:http://host/1",
    "\\\\host\\share\\x.png",
    "\\\\?\\C:\\x.png",
    "//host/share/x.png",
    "\\/host/share",
    "/\\host/share",
    "  http://example.com",
    "\thttps://example.com",
    "\nfile:///etc/passwd",
    "169.254.169.254/latest/meta-data",
    "169.254.169.254",
    "127.0.0.1:8501/x",
    "http:\\\\host\\x",
    "http:/host",
]
ABSOLUTE = ["/", "/etc/passwd", "/etc/shadow", "/proc/self/mem", "/dev/zero", "/dev/stdin", "/root/.ssh/id_rsa", "/tmp"]
LETTERS = ["a\0b", "\0", "/etc/passwd\0.png", "../\0", "x.png\0/../../etc/passwd"]
LINKS = [
    "link",
    "link/secret.png",
    "link/../outside/secret.png",
    "chain/secret.png",
    "file-link.png",
    "deep/up/secret.png",
]
HOSTILE = [
    *[f"{climb.rstrip('/')}/{target}" for climb in CLIMBS for target in TARGETS],
    *[f"a/{climb.rstrip('/')}/../{target}" for climb in CLIMBS for target in TARGETS],
    *[f"./a/b/../../{climb.rstrip('/')}/{target}" for climb in CLIMBS for target in TARGETS[:3]],
    *ABSOLUTE,
    *ADDRESSES,
    *LETTERS,
    *LINKS,
    "~root",
    "~root/.ssh",
    "../allowed-twin",
    "../allowed-twin/secret.png",
    "../x",
    "..//outside",
    "a/./../..//outside/secret.png",
    "link/.",
    "a" * 5000 + "/../../../outside/secret.png",
    "/".join(["d"] * 2000 + [".."] * 2001 + ["outside", "secret.png"]),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """allowed/ with links out of it, and two places beside it that must stay closed."""
    tmp_path = tmp_path.resolve()
    for name in ("allowed/a/b", "allowed/deep", "outside", "allowed-twin"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("outside/secret.png", "allowed-twin/secret.png", "allowed/a/fine.png"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "allowed/link").symlink_to(tmp_path / "outside")
    (tmp_path / "allowed/chain").symlink_to(tmp_path / "allowed/link")
    (tmp_path / "allowed/file-link.png").symlink_to("../outside/secret.png")
    (tmp_path / "allowed/deep/up").symlink_to("../../outside")
    (tmp_path / "allowed/inner").symlink_to("a")
    (tmp_path / "allowed/loop").symlink_to("loop")
    return tmp_path


def test_there_are_200_hostile_paths():
    assert len(set(HOSTILE)) >= 200


@pytest.mark.parametrize("path", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_path_is_refused_or_stays_inside(path, tree):
    """Some climbs end inside again (a/../..// stays odd but harmless): then the answer must be inside."""
    root = tree / "allowed"
    try:
        real = PathGuard((root,)).resolve(path, base=root)
    except UnsafePathError as error:
        assert error.code in ("PATH_OUTSIDE_ROOT", "PATH_HIDDEN", "PATH_TOO_LONG", "URL_NOT_SUPPORTED")
        assert str(error).isprintable()
        assert len(str(error)) < 800
    else:
        assert os.path.realpath(real) == str(real)
        assert str(real).startswith(f"{root}/")
        assert "secret" not in real.name or not real.exists()


@pytest.mark.parametrize("path", [*ABSOLUTE, *LINKS, "../outside/secret.png", "../allowed-twin/secret.png"])
def test_what_lies_outside_is_named_so(path, tree):
    with pytest.raises(UnsafePathError) as caught:
        PathGuard((tree / "allowed",)).resolve(path, base=tree / "allowed")
    assert caught.value.code == "PATH_OUTSIDE_ROOT"


@pytest.mark.parametrize("path", ADDRESSES)
def test_an_address_is_named_so(path, tree):
    with pytest.raises(UnsafePathError) as caught:
        PathGuard((tree / "allowed",)).resolve(path)
    assert caught.value.code == "URL_NOT_SUPPORTED"


@pytest.mark.parametrize(
    "path", ["a/fine.png", "./a/fine.png", "a/b/../fine.png", "inner/fine.png", "link/../allowed/a/fine.png"]
)
def test_what_lies_inside_is_found(path, tree):
    assert PathGuard((tree / "allowed",)).resolve(path, base=tree / "allowed") == tree / "allowed/a/fine.png"


@pytest.mark.parametrize("name", ["loop", "loop/x", "nothing/there.png", "~nobody-of-this-name/x"])
def test_odd_names_inside_do_not_raise_anything_else(name, tree):
    assert is_inside(PathGuard((tree / "allowed",)).resolve(name, base=tree / "allowed"), tree / "allowed")


def test_an_unknown_home_is_not_an_accident(tree, monkeypatch):
    monkeypatch.chdir(tree / "outside")
    with pytest.raises(UnsafePathError):
        PathGuard((tree / "allowed",)).resolve("~nobody-of-this-name/x")


def test_a_neighbour_with_the_same_beginning_is_not_inside():
    assert not is_inside(Path("/data/pool-secret"), Path("/data/pool"))
    assert is_inside(Path("/data/pool"), Path("/data/pool")) and is_inside(Path("/data/pool/x"), Path("/"))


def test_the_roots_come_from_the_environment(tree, monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_ROOTS", f"{tree}/allowed{os.pathsep}{os.pathsep}{tree}/allowed")
    guard = Workspace(tree / "outside").guard
    assert guard.roots == (tree / "allowed", tree / "outside/.uploads", tree / "outside/weights")


def test_without_a_setting_only_what_was_allowed_is_open(tree, monkeypatch):
    monkeypatch.delenv("SEMIPRUNE_ROOTS")
    workspace = Workspace(tree / "outside")
    for path in (Path.home(), Path.home() / "pictures", tree / "allowed/a/fine.png"):
        with pytest.raises(UnsafePathError, match="none yet"):
            workspace.guard.resolve(path)
    workspace.allow_folder(tree / "allowed")
    assert Workspace(tree / "outside").guard.resolve(tree / "allowed/a/fine.png")
    workspace.forget_folder(tree / "allowed")
    with pytest.raises(UnsafePathError):
        workspace.guard.resolve(tree / "allowed/a/fine.png")


@pytest.mark.parametrize("name", [".ssh/id_rsa", "a/.env", ".aws/credentials.csv", "dot-link/x.csv"])
def test_what_is_hidden_below_a_root_is_refused(tree, name):
    (tree / "allowed/.ssh").mkdir()
    (tree / "allowed/dot-link").symlink_to(".ssh")
    with pytest.raises(UnsafePathError) as caught:
        PathGuard((tree / "allowed",)).resolve(tree / "allowed" / name)
    assert caught.value.code == "PATH_HIDDEN"
    assert PathGuard((tree / "allowed/.ssh",)).resolve(tree / "allowed/.ssh/x.png")  # a root is named on purpose


@pytest.mark.parametrize("roots", [".", "..", "../.."])
@pytest.mark.parametrize("name", ["secret", "birds/labels.sqlite", "birds/project.json", ".locks/cpu.lock"])
def test_of_the_workspace_only_uploads_are_read(tree, monkeypatch, roots, name):
    monkeypatch.setenv("SEMIPRUNE_ROOTS", str(tree / "allowed" / roots))
    workspace = Workspace(tree / "allowed")
    with pytest.raises(UnsafePathError) as caught:
        workspace.guard.resolve(tree / "allowed" / name)
    assert caught.value.code == "PATH_IN_WORKSPACE"
    assert workspace.guard.resolve(workspace.uploads_folder / "0a/files/1")


def test_a_page_allows_no_home_no_system_and_nothing_hidden(tree, monkeypatch):
    monkeypatch.setenv("HOME", str(tree))
    for folder in (Path("/"), Path("/etc"), Path("/usr/share"), tree, tree.parent, tree / "nothing"):
        with pytest.raises(UnsafePathError):
            check_can_be_allowed(folder)
    (tree / "allowed/.hidden").mkdir()
    with pytest.raises(UnsafePathError):
        check_can_be_allowed(tree / "allowed/.hidden")
    check_can_be_allowed(tree / "allowed")
    check_can_be_allowed(tree / "allowed/a/fine.png")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "./",
        "/",
        "/a",
        "..",
        "../a",
        "a/..",
        "a/../b",
        "\\a",
        "a\\..\\b",
        "C:\\a",
        "c:a",
        "a\0",
        "\\\\h\\s",
        "//h/s",
    ],
)
def test_a_relative_name_that_is_none_is_refused(text):
    with pytest.raises(UnsafePathError):
        normal_relative(text)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("cats\\a.png", "cats/a.png"),
        ("./a//b/./c.png", "a/b/c.png"),
        ("cafe\u0301.png", "caf\u00e9.png"),
        ("a..b/...png", "a..b/...png"),
        ("new\nline.png", "new\nline.png"),
        ("\u202eevil.png", "\u202eevil.png"),
        ("\U0001f600.png", "\U0001f600.png"),
        ("CON", "CON"),
        ("trailing.", "trailing."),
        ("x" * 255, "x" * 255),
    ],
)
def test_a_relative_name_has_one_spelling(text, spelled):
    assert normal_relative(text) == spelled
    assert normal_relative(spelled) == spelled


@pytest.mark.parametrize("text", ["a\nb", "a\u202eb", "a\0b", "\ud800", "\u200b", "tab\t", "\x1b[31m", "x" * 1000])
def test_shown_names_are_printable_and_short(text):
    assert shown(text).isprintable() and len(shown(text)) <= 121


@pytest.mark.parametrize(
    "text, code",
    [
        ("a" * 256, "PATH_TOO_LONG"),
        ("é" * 128 + "/x.png", "PATH_TOO_LONG"),
        ("a/" * 2048, "PATH_TOO_LONG"),
        ("\ud800.png", "PATH_OUTSIDE_ROOT"),
        ("a/\udfff/b", "PATH_OUTSIDE_ROOT"),
    ],
)
def test_what_no_disk_can_hold_is_refused_in_words(tmp_path, text, code):
    with pytest.raises(UnsafePathError) as error:
        PathGuard((tmp_path,)).resolve(text, base=tmp_path)
    assert error.value.code == code


def test_names_in_another_encoding_are_paths_all_the_same(tmp_path):
    name = os.fsdecode(b"caf\xe9.png")
    assert PathGuard((tmp_path.resolve(),)).resolve(name, base=tmp_path).name == name


@pytest.fixture
def beneath(tmp_path):
    """A root with a file in a folder, and another of the same name elsewhere."""
    for folder in ("root/a/b", "elsewhere/root/a/b"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.png").write_text(folder)
    return tmp_path.resolve()


def read_beneath(root, path):
    with open(open_beneath(str(root), str(path))) as file:
        return file.read()


def test_links_that_stay_beneath_are_followed_and_others_refused(beneath):
    root = beneath / "root"
    (root / "inner").symlink_to(root / "a")
    (root / "outer").symlink_to(beneath / "elsewhere")
    assert read_beneath(root, root / "a/b/x.png") == read_beneath(root, root / "inner/b/x.png") == "root/a/b"
    with pytest.raises(UnsafePathError, match="leads outside"):
        open_beneath(str(root), str(root / "outer/b/x.png"))


@pytest.mark.parametrize("swapped", ["root", "root/a", "root/a/b", "root/a/b/x.png"])
def test_a_folder_that_is_swapped_for_a_link_after_the_look_is_not_followed(beneath, monkeypatch, swapped):
    root, look = beneath / "root", os.path.realpath

    def look_and_swap(path):
        real = look(path)
        (beneath / swapped).rename(beneath / "aside")
        (beneath / swapped).symlink_to(beneath / "elsewhere" / swapped)
        return real

    monkeypatch.setattr(os.path, "realpath", look_and_swap)
    with pytest.raises(OSError):
        open_beneath(str(root), str(root / "a/b/x.png"))


def test_nothing_stays_open_when_a_file_is_missing(beneath):
    n_open = len(os.listdir("/proc/self/fd"))
    for name in ("a/b/y.png", "a/c/x.png", "z"):
        with pytest.raises(FileNotFoundError):
            open_beneath(str(beneath / "root"), str(beneath / "root" / name))
    assert len(os.listdir("/proc/self/fd")) == n_open
