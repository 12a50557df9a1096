"""SemiPrune Studio as one ASGI application: the pages, our own routes, access checks and the jobs' supervisor.

Started by ``streamlit run app.py``, which prints the link to open. The pages themselves begin in ``pages/main.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config

from semiprune_core.accounts import accounts_of
from semiprune_core.errors import SemiPruneError
from semiprune_core.importing.leftovers import sweep_all
from semiprune_core.jobs import supervise_forever
from semiprune_core.labeling import look_after_labels
from semiprune_core.learning import machine
from semiprune_core.project.private import close_to_others, keep_to_owner
from semiprune_core.project.workspace import Workspace
from semiprune_core.server import Access, studio_routes
from semiprune_core.server.access import check_address, start_warnings
from semiprune_core.server.account_login import AccountLogin
from semiprune_core.server.listening import is_listening, send_at_once
from semiprune_core.server.login import start_link, take_login
from semiprune_core.server.opening import opened_in_browser

log = logging.getLogger("semiprune")
keep_to_owner()
address = config.get_option("server.address")
base = config.get_option("server.baseUrlPath") or ""
try:
    workspace = Workspace.open()
    login = AccountLogin(workspace, accounts_of(workspace), take_login(workspace))
    check_address(address, login)
except SemiPruneError as error:
    raise SystemExit(str(error)) from None
for warning in filter(None, (*start_warnings(address, login), close_to_others(workspace))):
    log.warning(warning)


@contextlib.contextmanager
def shown_link() -> Iterator[None]:
    """Print the link that leads in, and open it where a browser is wanted."""
    tls = bool(config.get_option("server.sslCertFile"))
    port = config.get_option("server.port")
    link = start_link(address, port, base, login, tls=tls)
    note = "" if is_listening(port) else "    (with the address and the port of the server that you have started)\n"
    sys.stdout.write(f"\n  SemiPrune Studio is ready. Open it with this link:\n\n    {link}\n{note}\n")
    sys.stdout.flush()
    with contextlib.nullcontext() if config.get_option("server.headless") else opened_in_browser(workspace, link):
        yield


@contextlib.asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    send_at_once()
    await asyncio.to_thread(sweep_all, workspace)
    supervisor = asyncio.create_task(supervise_forever(workspace))
    threading.Thread(target=look_after_labels, args=(workspace,), daemon=True).start()
    threading.Thread(target=machine.look, daemon=True).start()  # known by the time somebody opens the Train page
    try:
        with shown_link():
            yield
    finally:
        supervisor.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await supervisor


def on_script_error(error: Exception) -> bool:
    """A defect of ours: the details go to the log under a number, the page gets a sentence."""
    number = secrets.token_hex(3)
    log.error("Page error %s", number, exc_info=error)
    st.error(
        f"Something went wrong on this page (error {number}). Nothing that was saved is lost. "
        "Reload the page; if it comes back, look up the number in the app's log.",
        icon=":material/error:",
    )
    return True


app = st.App(
    Path(__file__).parent / "pages" / "main.py",
    lifespan=lifespan,
    routes=studio_routes(workspace, base),
    on_script_error=on_script_error,
    middleware=[Middleware(Access, hosts=[address] if address else [], login=login)],
)
