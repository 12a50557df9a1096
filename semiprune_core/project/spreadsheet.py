"""Text that a spreadsheet will not run as a formula (the OWASP set of triggers)."""

from __future__ import annotations

TRIGGERS = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(text: str) -> str:
    """The text, with an apostrophe in front where a spreadsheet would read a formula.

    >>> safe_cell("=HYPERLINK(1)")
    "'=HYPERLINK(1)"
    """
    return f"'{text}" if text.startswith(TRIGGERS) else text


def plain_cell(text: str) -> str:
    """A cell of :func:`safe_cell` as it was before.

    >>> plain_cell("'=HYPERLINK(1)"), plain_cell("'tis")
    ('=HYPERLINK(1)', "'tis")
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(TRIGGERS) else text
