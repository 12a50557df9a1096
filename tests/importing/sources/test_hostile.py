"""Every bad input gives its named error or a listed problem; nothing outside is read or written."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest

from semiprune_core.errors import SemiPruneError
from semiprune_core.importing.images import Decoded
from semiprune_core.importing.sources import open_source
from semiprune_core.importing.sources.reading import read_entry
from semiprune_core.paths import PathGuard
from tests.hostile_inputs import CASES
from tests.hostile_inputs.cases import Case, picture

SECRET = picture(99).tobytes()


def snapshot(root: Path) -> dict[str, str]:
    """Every path below ``root`` with its content's hash."""
    found = {}
    for folder, folders, names in os.walk(root):
        for name in folders + names:
            path = os.path.join(folder, name)
            plain = os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) < 10**9
            found[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest() if plain else "-"
    return found


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def walk(spec, guard, scratch) -> tuple[list[tuple[str, Decoded]], list[str]]:
    """Everything that could be read, and the codes of everything that could not."""
    source = open_source(spec, guard=guard, scratch=scratch)
    assert source.count() >= 0
    read, codes = [], []
    for entry in source.entries():
        try:
            read.append((entry.path, read_entry(entry)[0]))
        except SemiPruneError as error:
            codes.append(error.code)
            assert str(error).endswith(".")
    for problem in source.problems:
        assert problem.message.endswith(".")
        assert problem.message.isprintable()
        problem.path.encode()
    return read, codes + [problem.code for problem in source.problems]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bad_input_is_named_and_touches_nothing(case: Case, tmp_path, no_network):
    folder, scratch = tmp_path / "allowed" / case.name[:60], tmp_path / "scratch"
    folder.mkdir(parents=True)
    scratch.mkdir()
    spec = case.build(folder)
    before = snapshot(tmp_path)
    guard = PathGuard(((tmp_path / "allowed").resolve(),))

    if case.ending == "stop":
        with pytest.raises(SemiPruneError) as caught:
            walk(spec, guard, scratch)
        assert caught.value.code == case.code, str(caught.value)
        assert case.name[:4] != "npz_" or "a.npz" in str(caught.value), str(caught.value)
        assert str(caught.value).isprintable()
    else:
        read, codes = walk(spec, guard, scratch)
        assert case.code in codes, codes
        if not case.name.endswith("tiny_images"):
            assert "good.png" in [path for path, _ in read]
        assert not any(decoded.pixels.tobytes() == SECRET for _, decoded in read)

    after = {path: content for path, content in snapshot(tmp_path).items() if not path.startswith(f"{scratch}/")}
    assert after == before


def test_the_table_is_long_and_its_names_are_distinct():
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
