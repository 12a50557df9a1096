"""A team with accounts: two small projects, a person in each role, and a browser for each of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient

from semiprune_core.accounts import accounts_of, add_account, begin_session, set_role
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.progress import Collected
from semiprune_core.project.pool import PoolSettings, show_id
from semiprune_core.project.workspace import Workspace
from semiprune_core.server import Access, browser_token, studio_routes
from semiprune_core.server.account_login import AccountLogin, session_cookie
from semiprune_core.server.login import login_of
from tests.support.people import WORDS

HOST = "http://localhost:8501"
MINE, OTHER = "one", "two"
ROLES = {"lea": "labeler", "eve": "engineer", "olga": "owner", "root": "admin", "otto": "labeler of another project"}
TEAM = ("nobody", *ROLES)


def make_project(workspace: Workspace, name: str, *, n: int = 12, seed: int = 0):
    """A project of small pictures, all drawn, with the classes cat and dog."""
    folder = workspace.root.with_name(f"{workspace.root.name}-pictures") / name
    rng = np.random.default_rng(seed)
    for number in range(n):
        path = folder / ("cat", "dog")[number % 2] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)
    project = workspace.create(name, pool=PoolSettings(size=28))
    settings = ImportSettings(source=SourceSpec("folder", str(folder)).to_json(), n_workers=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEMIPRUNE_ROOTS", str(folder))
        import_source(project, settings, Collected())
    store, pool = open_store(project), project.pool()
    store.classes.add(["cat", "dog"], annotator="olga")
    store.drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, fraction=1.0, annotator="olga"
    )
    return project


def make_team(workspace: Workspace) -> None:
    """An account in each role of the first project; otto labels in the second."""
    accounts = accounts_of(workspace)
    add_account(accounts, "root", admin=True, password=WORDS)
    for name, role in ROLES.items():
        if role == "admin":
            continue
        add_account(accounts, name, password=WORDS)
        set_role(accounts, *((OTHER, name, "labeler") if name == "otto" else (MINE, name, role)))
    set_role(accounts, OTHER, "root", "owner")


@dataclass
class Person:
    """Somebody's browser, logged in unless it is nobody's."""

    workspace: Workspace
    name: str
    client: TestClient = field(init=False)
    cookie: str = ""

    def __post_init__(self) -> None:
        self.client = TestClient(app_of(self.workspace), base_url=HOST, follow_redirects=False)
        if self.name != "nobody":
            self.take(begin_session(accounts_of(self.workspace), self.name))

    def take(self, cookie: str) -> None:
        self.cookie = cookie
        self.client.cookies.set(session_cookie(self.workspace, "").name, cookie)

    @property
    def ours(self) -> dict[str, str]:
        """What our own page sends along."""
        return {"x-semiprune-token": browser_token(self.workspace), "origin": HOST}

    def ask(self, method: str, path: str, **more):
        headers = {**self.ours, **more.pop("headers", {})}
        return self.client.request(method, f"/studio{path}", headers=headers, **more)

    def post(self, path: str, body: dict, *, project: str = MINE):
        return self.ask("POST", f"/projects/{project}/labels{path}", json={"annotator": self.name, **body})

    def label(self, *events: dict, project: str = MINE):
        return self.post("", {"events": list(events)}, project=project)


def event(image_id: str, class_id: int = 0, **more):
    return {
        "event_id": uuid.uuid4().hex,
        "image_id": image_id,
        "action": "label",
        "class_id": class_id,
        "expected_version": "",
    } | more


def image_ids(workspace: Workspace, project: str = MINE) -> list[str]:
    return [show_id(image_id) for image_id in workspace.project(project).pool().ids]


def app_of(workspace: Workspace, **environment: str) -> Starlette:
    """Our routes and middleware as in ``app.py``; in the place of Streamlit's pages and socket something smaller."""

    async def page(request):
        return PlainTextResponse(f"page {request.url.query}".strip())

    async def socket(websocket):
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    login = AccountLogin(workspace, accounts_of(workspace), login_of(workspace, environment))
    routes = [
        *studio_routes(workspace),
        Route("/{page:path}", page, methods=["GET", "POST"]),
        WebSocketRoute("/_stcore/stream", socket),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Access, login=login)])
