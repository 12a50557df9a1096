"""The house's direction: pages over the core, the core without Streamlit, the ground floor without torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "semiprune_core"
HEAVY = ("learning", "embeddings", "baselines")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in CORE.rglob("*.py")
    if path.name != "__main__.py"
)


def imported_after(modules):
    """The names in sys.modules of a fresh interpreter that imported ``modules``."""
    code = f"import importlib, sys\nfor m in {modules!r}: importlib.import_module(m)\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_core_never_imports_streamlit():
    assert "streamlit" not in imported_after(MODULES)


def test_the_light_floors_never_import_torch():
    heavy = [name for name in MODULES if name.split(".")[1:2] and name.split(".")[1] in HEAVY]
    assert "torch" not in imported_after([name for name in MODULES if name not in heavy])


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_core_never_imports_pages(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name == "pages" or name.startswith("pages.") for name in names)
