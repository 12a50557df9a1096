"""docs/library.md and its notebook against the code: signatures are those of the functions, every example runs."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

import semiprune_core as sp
from tests.support.demo_pool import clothes
from tests.support.signatures import FUNCTIONS, METHODS, all_shown

ROOT = Path(__file__).resolve().parents[2]
PAGE, NOTEBOOK = ROOT / "docs" / "library.md", ROOT / "docs" / "notebooks" / "library.ipynb"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_signatures_are_those_of_the_functions():
    assert [block.strip() for block in blocks("text")] == [*all_shown().values()]


def test_every_public_function_is_on_the_page():
    public = {name for name in sp.__all__ if callable(getattr(sp, name)) and not isinstance(getattr(sp, name), type)}
    assert {*FUNCTIONS} == public
    own = {name for name, one in vars(sp.Project).items() if callable(one) and not name.startswith("_")}
    assert {*METHODS} == own


def test_the_public_names_are_told_to_type_checkers_too():
    tree = ast.parse((ROOT / "semiprune_core" / "__init__.py").read_text())
    (named,) = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "library" in (node.module or "")
    ]
    assert {alias.name for alias in named.names} == {*sp.__all__} - {"__version__"}


def test_the_examples_run():
    images, kinds = clothes(60)
    labels = np.where(np.arange(60) % 2, kinds, "")
    names = {"images": images, "labels": labels}
    for block in blocks("python"):
        exec(compile(block, PAGE.name, "exec"), names)
    assert len(names["coreset"]) == 18 and len(next(iter(names["loader"]))[0]) == 16


def test_the_notebook_runs_cell_by_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names, shown = {}, []
    for number, cell in enumerate(cells):
        assert cell["outputs"] == [] and cell["execution_count"] is None
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert len(names["coreset"]) == 120 and "data:image/png;base64" in shown[1] and "<svg" in shown[-3]
    assert "interval" in shown[-1]


@pytest.mark.parametrize("name", ["docs/library.md", "docs/install.md"])
def test_the_readme_leads_there(name):
    assert f"({name})" in (ROOT / "README.md").read_text()
