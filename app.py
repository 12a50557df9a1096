"""SemiPrune Studio as one ASGI application: the pages, our own routes, access checks and the jobs' supervisor.

Started by ``streamlit run app.py``. The pages themselves begin in ``pages/main.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config

from semiprune_core.errors import SemiPruneError
from semiprune_core.importing.leftovers import sweep_all
from semiprune_core.jobs import supervise_forever
from semiprune_core.learning import machine
from semiprune_core.project.workspace import Workspace
from semiprune_core.server import Access, studio_routes
from semiprune_core.server.access import PASSWORD_VARIABLE, check_address, check_password, start_warnings

log = logging.getLogger("semiprune")
workspace = Workspace.open()
password = os.environ.get(PASSWORD_VARIABLE) or None
address = config.get_option("server.address")
try:
    check_address(address, password)
    check_password(password)
except SemiPruneError as error:
    raise SystemExit(str(error)) from None
for warning in start_warnings(address, password):
    log.warning(warning)


@contextlib.asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    await asyncio.to_thread(sweep_all, workspace)
    supervisor = asyncio.create_task(supervise_forever(workspace))
    threading.Thread(target=machine.look, daemon=True).start()  # known by the time somebody opens the Train page
    try:
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
    routes=studio_routes(workspace, config.get_option("server.baseUrlPath") or ""),
    on_script_error=on_script_error,
    middleware=[Middleware(Access, hosts=[address] if address else [], password=password)],
)
