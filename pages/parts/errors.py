"""Core errors on a page: said kindly where they arose, inside a fragment or a dialog too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from pages.parts import identity
from pages.parts.text import literal
from semiprune_core.errors import SemiPruneError

LIMIT = 1000  # characters of a message


def show(error: SemiPruneError) -> None:
    st.error(literal(str(error), LIMIT), icon=":material/error:")


@contextmanager
def shown() -> Iterator[None]:
    """Show a core error instead of raising it: ``with shown():``, or ``@shown()`` over a function.

    A fragment or dialog must be a ``@shown()`` function: what it raises never reaches the page around it.
    What it shows must still be its viewer's: a session may have ended, a role may have changed meanwhile.
    """
    if refusal := identity.refusal():
        st.error(refusal, icon=":material/lock:")
        st.stop()
    try:
        yield
    except SemiPruneError as error:
        show(error)


def attempt(act: Callable[[], object]) -> None:
    """Do it and draw the page anew, or say why not."""
    with shown():
        act()
        st.rerun()
