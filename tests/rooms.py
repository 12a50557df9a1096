"""The import graph of ``semiprune_core``, and what must hold of it. ``python -m tests.rooms`` prints the order.

Everything is read from the source, nothing is imported: an import inside a function counts like any other.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = "semiprune_core"
ORDER = ROOT / "docs" / "rooms.toml"
HEAVY = frozenset({"torch", "torchvision", "umap", "sklearn", "timm", "openvino"})
"""Libraries that take seconds to import: a function may import one of our modules late for the sake of these."""
STARTS_LIGHT = frozenset({f"{CORE}.cli"})
"""``semiprune --version`` answers before anything else is loaded."""


@dataclass(frozen=True)
class Import:
    """One import of one of our modules. ``late``: inside a function; ``typing``: under TYPE_CHECKING."""

    importer: str
    module: str
    line: int
    late: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.module}"


@dataclass(frozen=True)
class House:
    """All modules, what each imports of ours, and which heavy libraries it imports when it is loaded."""

    imports: Mapping[str, tuple[Import, ...]]
    heavy: Mapping[str, frozenset[str]]

    def loaded_by(self, module: str) -> set[str]:
        """The modules that importing ``module`` loads."""
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self.imports:
                continue
            seen.add(name)
            waiting += [one.module for one in self.imports[name] if not one.late and not one.typing]
        return seen

    def is_heavy(self, module: str) -> bool:
        return any(self.heavy[name] for name in self.loaded_by(module))


def read_order(path: Path = ORDER) -> dict[str, dict[str, str]]:
    """Floor -> room -> what it is for, in order."""
    return tomllib.loads(path.read_text("utf-8"))


def rooms(order: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [room for floor in order.values() for room in floor]


def read_house(root: Path = ROOT) -> House:
    paths = {_module(path, root): path for path in (root / CORE).rglob("*.py") if path.name != "__main__.py"}
    imports, heavy = {}, {}
    for name, path in paths.items():
        found, libraries = [], set()
        for node, late, typing in imports_in(path.read_text("utf-8")):
            for module in _named(node, paths):
                if module.partition(".")[0] == CORE and module != name:
                    found.append(Import(name, module, node.lineno, late, typing))
                elif not late and not typing:
                    libraries |= {module.partition(".")[0]} & HEAVY
        imports[name], heavy[name] = tuple(found), frozenset(libraries)
    return House(imports, heavy)


def _module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports_in(source: str) -> tuple[tuple[ast.Import | ast.ImportFrom, bool, bool], ...]:
    """Every import, whether it is inside a function, and whether it is under TYPE_CHECKING."""
    tree = ast.parse(source)
    late, typing = _inside(tree)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return tuple((node, id(node) in late, id(node) in typing) for node in nodes)


def _named(node: ast.Import | ast.ImportFrom, paths: Mapping[str, Path]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level or not node.module:
        return []
    full = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name if name in paths else node.module for name in full]


def _inside(tree: ast.Module) -> tuple[set[int], set[int]]:
    """The nodes inside functions, and those under TYPE_CHECKING."""
    late, typing = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            late |= {id(inner) for inner in ast.walk(node)}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing |= {id(inner) for part in node.body for inner in ast.walk(part)}
    return late, typing


def room_of(module: str) -> str:
    """The package (or the module at the root) a module lives in; "" for the core itself."""
    return module.split(".")[1] if "." in module else ""


def against_the_order(house: House, order: Iterable[str]) -> list[str]:
    """Imports from a room that stands later in the order, and rooms that are not in it at all."""
    place = {room: number for number, room in enumerate(order)}
    unknown = sorted({room_of(name) for name in house.imports} - {"", *place})
    found = [f"{room} has no place in {ORDER.name}" for room in unknown]
    for imports in house.imports.values():
        for one in imports:
            here, there = room_of(one.importer), room_of(one.module)
            if here and there and here != there and place.get(there, 0) > place.get(here, len(place)):
                found.append(f"{one}: {there} stands after {here}")
    return found


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The knots of a graph: groups of names that all reach one another (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    knots: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            knot = [stack.pop()]
            while knot[-1] != name:
                knot.append(stack.pop())
            if len(knot) > 1:
                knots.append(sorted(knot))

    for name in graph:
        if name not in index:
            visit(name)
    return knots


def module_cycles(house: House) -> list[list[str]]:
    """Knots of modules, imports inside functions counted; names for annotations alone (TYPE_CHECKING) are not."""
    return cycles({name: [one.module for one in found if not one.typing] for name, found in house.imports.items()})


def room_cycles(house: House) -> list[list[str]]:
    """Knots of rooms, every import counted."""
    graph: dict[str, set[str]] = {}
    for name, found in house.imports.items():
        graph.setdefault(room_of(name), set()).update(room_of(one.module) for one in found)
    return cycles({room: others - {room, ""} for room, others in graph.items() if room})


def hidden_imports(house: House) -> list[str]:
    """Imports of our own inside functions that spare nobody a heavy library: they can only dodge the order."""
    return [
        str(one)
        for name, found in house.imports.items()
        for one in found
        if one.late and name not in STARTS_LIGHT and not house.is_heavy(one.module)
    ]


def as_text(order: Mapping[str, Mapping[str, str]]) -> str:
    """The order as docs/architecture.md prints it."""
    lines = []
    for floor, entries in order.items():
        for number, (room, purpose) in enumerate(entries.items()):
            lines.append(f"    {floor if not number else '':<12} {room:<11} {purpose}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(as_text(read_order()) + "\n")
