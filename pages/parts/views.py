"""The views of a page: a row of names, of which one is always chosen."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st


def choose(views: Mapping[str, str], *, key: str) -> str:
    """The chosen one of ``views`` (their titles by name), the first until somebody chooses; wrapped on narrow pages."""
    chosen = st.segmented_control(
        "View",
        list(views),
        format_func=views.__getitem__,
        default=next(iter(views)),
        required=True,
        key=key,
        label_visibility="collapsed",
        wrap=True,
    )
    return str(chosen)
