"""The house's direction: pages over the core, each room over those before it, no cycles, nothing hidden."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import rooms

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "semiprune_core"
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in CORE.rglob("*.py")
    if path.name != "__main__.py"
)
MOST_AT_THE_ROOT, MOST_IN_A_ROOM = 12, 25


@pytest.fixture(scope="module")
def house():
    return rooms.read_house()


@pytest.fixture(scope="module")
def order():
    return rooms.rooms(rooms.read_order())


def test_rooms_import_only_from_rooms_before_them(house, order):
    assert rooms.against_the_order(house, order) == []


def test_every_room_of_the_order_is_there(order):
    assert [room for room in order if not (CORE / room).is_dir() and not (CORE / f"{room}.py").is_file()] == []


def test_no_cycle_between_rooms(house):
    assert rooms.room_cycles(house) == []


def test_no_cycle_between_modules(house):
    assert rooms.module_cycles(house) == []


def test_no_import_hides_in_a_function(house):
    assert rooms.hidden_imports(house) == []


def test_the_map_prints_the_order():
    assert rooms.as_text(rooms.read_order()) in (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_rooms_are_small_enough_to_walk_through():
    loose = [path for path in CORE.glob("*.py") if not path.name.startswith("__")]
    assert len(loose) <= MOST_AT_THE_ROOT
    for folder in [CORE, *(path for path in CORE.rglob("*") if path.is_dir() and path.name != "__pycache__")]:
        assert len(list(folder.glob("*.py"))) <= MOST_IN_A_ROOM, folder


def test_every_room_says_what_it_is_for():
    for path in CORE.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), path


# --- the test of the test: a copy of the house with one thing wrong in it ------------------------------------------


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(CORE, tmp_path / "semiprune_core", ignore=shutil.ignore_patterns("__pycache__"))

    def put(module, code):
        path = tmp_path / Path(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text((path.read_text("utf-8") if path.is_file() else "") + code)
        return rooms.read_house(tmp_path)

    return put


def test_an_import_from_a_later_room_is_seen(copy, order):
    house = copy("semiprune_core.scores.aum", "\nfrom semiprune_core.methods import METHODS\n")
    (problem,) = rooms.against_the_order(house, order)
    assert problem.endswith("imports semiprune_core.methods: methods stands after scores")
    assert ["methods", "scores", "selection"] in rooms.room_cycles(house)


def test_a_new_room_without_a_place_is_seen(copy, order):
    house = copy("semiprune_core.attic.chest", "from semiprune_core import files\n")
    assert rooms.against_the_order(house, order) == ["attic has no place in rooms.toml"]


def test_a_module_that_moved_to_another_room_is_seen(copy, order):
    house = copy("semiprune_core.files_view", "from semiprune_core.project import Pool\n")
    assert rooms.against_the_order(house, order) == ["files_view has no place in rooms.toml"]


def test_a_cycle_within_a_room_is_seen_also_through_a_function(copy):
    house = copy(
        "semiprune_core.scores.base", "\ndef late():\n    from semiprune_core.scores.aum import aum\n    return aum\n"
    )
    assert rooms.module_cycles(house) == [["semiprune_core.scores.aum", "semiprune_core.scores.base"]]


def test_an_import_in_a_function_is_seen_unless_it_spares_a_heavy_library(copy):
    late = "\ndef late():\n    from semiprune_core.{} import {}\n    return {}\n"
    house = copy("semiprune_core.trust.check", late.format("labeling", "open_store", "open_store"))
    (problem,) = rooms.hidden_imports(house)
    assert "trust.check" in problem and "semiprune_core.labeling" in problem
    house = copy("semiprune_core.trust.review", late.format("learning.nets", "NETS", "NETS"))
    assert rooms.hidden_imports(house) == [problem]


# --- what is loaded ------------------------------------------------------------------------------------------------


def imported_after(modules):
    """The names in sys.modules of a fresh interpreter that imported ``modules``."""
    code = f"import importlib, sys\nfor m in {modules!r}: importlib.import_module(m)\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_core_never_imports_streamlit():
    assert "streamlit" not in imported_after(MODULES)


def test_what_the_app_opens_with_never_imports_torch(house):
    """The pages load these; the work with torch is in modules that only a worker imports."""
    light = [name for name in MODULES if not house.is_heavy(name)]
    assert {"semiprune_core.server", "semiprune_core.commands", "semiprune_core.baselines.providers"} <= set(light)
    assert not {"torch", "umap", "sklearn"} & imported_after(light)


def test_the_command_line_starts_without_what_takes_long_to_load():
    assert not {"torch", "umap", "sklearn", "scipy.stats"} & imported_after(["semiprune_core.commands"])


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_core_never_imports_pages(path):
    for node, _, _ in rooms.imports_in(path.read_text("utf-8")):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name == "pages" or name.startswith("pages.") for name in names)
