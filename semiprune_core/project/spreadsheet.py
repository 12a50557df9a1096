"""Text that a spreadsheet will not run as a formula (the OWASP set of triggers), wherever it divides the line."""

from __future__ import annotations

import re

TRIGGERS = ("=", "+", "-", "@", "\t", "\r")
RISKY = r"(^|[;\t\n\r])([=+\-@\t\r])"
"""A trigger at the beginning, or after what a spreadsheet in another country takes for the end of a cell."""
MARKED = r"(^|[;\t\n\r])'(?=[=+\-@\t\r])"


def safe_cell(text: str) -> str:
    """The text, with an apostrophe in front of what a spreadsheet would read as a formula.

    >>> safe_cell("=HYPERLINK(1)"), safe_cell("cats;=HYPERLINK(1)")
    ("'=HYPERLINK(1)", "cats;'=HYPERLINK(1)")
    """
    for _ in range(2):  # a tab is a trigger and ends a cell: the second time sees what stood behind it
        text = re.sub(RISKY, r"\1'\2", text)
    return text


def plain_cell(text: str) -> str:
    """A cell of :func:`safe_cell` as it was before.

    >>> plain_cell("'=HYPERLINK(1)"), plain_cell("'tis")
    ('=HYPERLINK(1)', "'tis")
    """
    return re.sub(MARKED, r"\1", text)
