"""Cells that no spreadsheet runs, however it divides a line."""

import itertools
import re

import pyarrow as pa
import pytest

from semiprune_core.exporting import safe_texts
from semiprune_core.project.spreadsheet import plain_cell, safe_cell

TRIGGERS = "=+-@\t\r"
PARTS = ["cmd", "", "'", ";", "\t", "\n", " ", *TRIGGERS]
TEXTS = ["".join(some) for some in itertools.product(PARTS, repeat=4)]


def formulas(text):
    return [cell for cell in re.split("[;\t\n\r]", text) if cell.startswith(tuple("=+-@"))]


def test_no_cell_is_a_formula_whether_comma_semicolon_or_tab_divides():
    assert [text for text in TEXTS if formulas(safe_cell(text)) or safe_cell(text).startswith(tuple(TRIGGERS))] == []
    assert safe_cell("cats;=cmd|' /C calc'!A0;x") == "cats;'=cmd|' /C calc'!A0;x"


def test_a_column_is_made_safe_like_its_cells():
    assert safe_texts(pa.array(TEXTS)).to_pylist() == [safe_cell(text) for text in TEXTS]


def test_harmless_texts_stay_as_they_are_and_others_come_back():
    assert all(safe_cell(text) == text for text in ("a-b.png", "cat's; dog", "x;y=1", "'tis", "ä=b"))
    assert all(plain_cell(safe_cell(text)) == text for text in TEXTS if "'" not in text)


@pytest.mark.parametrize("text", ["", "a", "a;b"])
def test_a_safe_column_is_not_copied(text):
    column = pa.array([text])
    assert safe_texts(column) is column
