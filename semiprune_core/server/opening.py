"""Opening the start link in a browser, without showing its token to everybody who lists the processes."""

from __future__ import annotations

import contextlib
import html
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from semiprune_core import files
from semiprune_core.project.workspace import Workspace

PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={link}"><title>Opening</title>'


@contextlib.contextmanager
def opened_in_browser(workspace: Workspace, link: str) -> Iterator[Path]:
    """Open ``link`` by way of a page that only its owner can read, and take the page away in the end."""
    page = workspace.root / ".open.html"
    files.write_text(page, PAGE.format(link=html.escape(link, quote=True)))
    try:
        webbrowser.open(page.as_uri())
        yield page
    finally:
        page.unlink(missing_ok=True)
