"""Who uses this page: the account whose session the browser's cookie names, looked up anew for every question.

Streamlit runs pages, fragments and callbacks in threads of its own, past our middleware; so what they may do is asked
here (``ask_for_rights``), and checked where something is read or written.
"""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.parts import urls
from semiprune_core.accounts import RANKS, Account, Managing, SessionRights, accounts_of, has_line, line_of
from semiprune_core.errors import ForbiddenError
from semiprune_core.project import rights
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.account_login import bearer_of

PAGE = "identity_page"
WHO = "identity_account"
"""In the session: the page that is shown with its project, and the account to which everything else there belongs."""
OVER = "You are not logged in any more. What was saved is safe, and labels that were not sent yet wait in this browser."


def current() -> SessionRights | None:
    """The rights of whoever looks at this page; None where there are no accounts."""
    if get_script_run_ctx(suppress_warning=True) is None:  # no page, but the app itself
        return None
    space = Workspace.open()
    accounts = accounts_of(space)
    return SessionRights(accounts, _bearer(space), _address()) if accounts.are_on else None


def _bearer(space: Workspace) -> str:
    return bearer_of(space, st.context.cookies)


def _address() -> str:
    return st.context.ip_address or ""


rights.ask_for_rights(current)


def person() -> Account | None:
    """The account that is logged in; None where there are no accounts."""
    acting = current()
    return None if acting is None else acting.person


def manage() -> Managing:
    """The acts of whoever is logged in; for pages that are there only with accounts."""
    acting = current()
    if acting is None:
        raise ForbiddenError("There are no accounts here. Add the first one: semiprune accounts add NAME --admin")
    return Managing(acting)


def is_over() -> bool:
    """Whether accounts are needed and nobody is logged in any more."""
    acting = current()
    try:
        return acting is not None and not acting.account
    except ForbiddenError:
        return True


def say_over() -> None:
    st.error(OVER, icon=":material/lock:")
    st.link_button("Log in", urls.home(), type="primary")


def start(page: str, project: str) -> None:
    """Remember which page is shown; what a session holds of another account is forgotten."""
    acting = current()
    account = None if acting is None else acting.account
    if st.session_state.get(WHO, account) != account:
        st.session_state.clear()
    st.session_state[WHO] = account
    st.session_state[PAGE] = page, project


def sees(page: str, project: str = "") -> bool:
    """Whether a page is among those of whoever is logged in; one without a line in the table is nobody's.

    Without a project it is enough to have the role in any: such a page says that none is open.
    """
    acting = current()
    if acting is None:
        return True
    if not has_line("page", page):
        return False
    line = line_of("page", page)
    return acting.rank("" if line.anywhere else project) >= RANKS[line.least]


def whose(page: str, project: str) -> str:
    """Who may see a page that whoever is here may not."""
    acting = current()
    if acting is None or not has_line("page", page):
        return "There is no such page."
    return acting.refusal("page", page, project)


def refusal() -> str:
    """Why the page that is shown may not be shown any more: the session has ended, or a role has changed."""
    if current() is None or PAGE not in st.session_state:
        return ""
    if is_over():
        return OVER
    page, project = st.session_state[PAGE]
    if sees(page, project):
        return ""
    return "Your role in this project has changed, and this page is no longer yours. Reload it."
