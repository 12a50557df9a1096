"""SemiPrune Studio as one ASGI application: the pages, our own routes, access checks and the jobs' supervisor.

Started by ``streamlit run app.py``. The pages themselves begin in ``pages/main.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config

from semiprune_core.jobs import supervise_forever
from semiprune_core.server import Access, studio_routes
from semiprune_core.server.access import PASSWORD_VARIABLE, check_address
from semiprune_core.workspace import Workspace

workspace = Workspace.open()
password = os.environ.get(PASSWORD_VARIABLE) or None
address = config.get_option("server.address")
check_address(address, password)


@contextlib.asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    supervisor = asyncio.create_task(supervise_forever(workspace))
    try:
        yield
    finally:
        supervisor.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await supervisor


app = st.App(
    Path(__file__).parent / "pages" / "main.py",
    lifespan=lifespan,
    routes=studio_routes(workspace),
    middleware=[Middleware(Access, hosts=[address] if address else [], password=password)],
)
