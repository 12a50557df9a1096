"""A file that somebody drops on a page: it goes to the server's disk by our own route, never through memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from pages.parts import components, urls
from pages.parts import project as projects
from semiprune_core.errors import InvalidDataError, WorkspaceError
from semiprune_core.server import browser_token
from semiprune_core.server.uploads import folder_of


@dataclass(frozen=True)
class Dropped:
    """The file and the name it came by."""

    name: str
    path: Path

    def read(self, limit_mb: int) -> bytes:
        """Its content, where it is not larger than what its reader can take."""
        if self.path.stat().st_size > limit_mb << 20:
            raise InvalidDataError(f"The file is larger than {limit_mb} MB. Split it.", code="FILE_TOO_LARGE")
        return self.path.read_bytes()


def one_file(key: str) -> Dropped | None:
    """A place to drop one file; returns the latest one, until it is forgotten or cleared away."""
    space = projects.workspace()
    arrived = components.uploader(
        urls.base(), browser_token(space), key=f"{key}_upload", words="Drop the file here"
    ) or st.session_state.get(f"{key}_arrived")
    if not arrived:
        return None
    st.session_state[f"{key}_arrived"] = arrived
    try:
        path = folder_of(space, str(arrived["upload"])) / "files" / "0"
    except WorkspaceError:
        return None
    return Dropped(str(arrived["name"]), path) if path.is_file() else None


def forget(key: str) -> None:
    """The file has been used."""
    st.session_state.pop(f"{key}_arrived", None)
