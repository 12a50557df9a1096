"""docs/accounts.md prints the table that drives the checks."""

from pathlib import Path

from semiprune_core.accounts.table import as_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accounts.md"


def test_the_docs_print_the_table():
    assert as_text() in PAGE.read_text("utf-8"), "python -m semiprune_core.accounts.table"
