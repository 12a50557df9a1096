"""What a browser may send: bodies, paths, headers and files, past the doors, to every route of ours."""

from __future__ import annotations

import base64
import json
import uuid
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from semiprune_core.project.pool import show_id
from semiprune_core.project.workspace import Workspace
from semiprune_core.server import browser_token, studio_routes
from semiprune_core.server.access import Access
from semiprune_core.server.login import Cookie, PasswordLogin, TokenLogin
from tests.fuzz.labels import PROJECT
from tests.fuzz.mutations import hostile_name, hostile_number, mutated, mutated_json
from tests.fuzz.running import Said, TryOne

HOST = "http://localhost:8501"
COOKIE = Cookie("semiprune_test", "c00c1e")


def _posts(ids: list[str]) -> dict[str, Any]:
    event = {"image_id": ids[0], "action": "label", "class_id": 0, "expected_version": "", "lead_time_ms": 900}
    return {
        "": {"annotator": "ada", "events": [event, {**event, "image_id": ids[1], "action": "skip", "class_id": None}]},
        "/queue": {"annotator": "ada", "queue": "drawn", "n": 3, "latest": True},
        "/leases": {"annotator": "ada", "renew": ids[:2]},
        "/classes": {"annotator": "ada", "name": "bird"},
        "/similar": {"image_id": ids[0], "ids": ids[1:4]},
        "/live": {"annotator": "ada"},
    }


GETS = (
    "projects/{}/images/{}/{}",
    "projects/one/images/{}/thumb",
    "projects/one/exports/{}",
    "projects/{}/problems.csv",
    "projects/one/maps/{}/points",
    "projects/one/columns/{}",
    "projects/one/facts/{}",
    "projects/{}/labels/classes",
    "projects/one/labels/progress?annotator={}",
    "projects/one/labels/export/{}",
    "uploads/{}/{}",
)


def requests(base: Path) -> TryOne:
    workspace = Workspace.open(base / "home")
    ids = [show_id(one) for one in workspace.project(PROJECT).pool().ids]
    posts = _posts(ids)
    bodies = [json.dumps(body).encode() for body in posts.values()]
    logins = (PasswordLogin("correct horse", COOKIE), TokenLogin("token", COOKIE, chosen=False))
    clients = []
    for login in logins:
        app = Starlette(routes=studio_routes(workspace), middleware=[Middleware(Access, login=login)])
        clients.append(TestClient(app, base_url=HOST, raise_server_exceptions=True, follow_redirects=False).__enter__())
    headers = {
        b"cookie": f"{COOKIE.name}={COOKIE.value}".encode(),
        b"x-semiprune-token": browser_token(workspace).encode(),
        b"origin": HOST.encode(),
        b"authorization": b"Basic " + base64.b64encode(b"x:correct horse"),
    }

    def hostile_bytes(rng: Random) -> bytes:
        return rng.choice((hostile_name(rng), hostile_number(rng))).encode("utf-8", "surrogatepass")

    def header_value(rng: Random) -> bytes:
        words = hostile_bytes(rng).translate(None, b"\r\n\0")  # which no server lets through
        return rng.choice((words, b"Basic " + words, b"Bearer " + words, b"a=" + words, HOST.encode() + words))

    def body(rng: Random, values: Any) -> bytes:
        if rng.random() < 0.6:
            values = mutated_json(rng, values)
        for event in (
            values.get("events", ()) if isinstance(values, dict) and isinstance(values.get("events"), list) else ()
        ):
            if isinstance(event, dict):
                event.setdefault("event_id", uuid.UUID(int=rng.getrandbits(128)).hex)
        raw = json.dumps(values, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        return mutated(rng, raw, bodies) if rng.random() < 0.3 else raw

    def asked(rng: Random) -> tuple[str, str, dict[bytes, bytes], bytes]:
        """Method, path, further headers, body."""
        what = rng.random()
        if what < 0.6:
            route, values = rng.choice(list(posts.items()))
            return "POST", f"projects/one/labels{route}", {}, body(rng, values)
        if what < 0.8:
            path = rng.choice(GETS)
            parts = [rng.choice((hostile_bytes(rng), PROJECT.encode(), ids[0].encode())) for _ in range(3)]
            method = rng.choice(("GET", "GET", "HEAD", "POST", "DELETE", "PUT"))
            return method, path.format(*(quote(part, safe="") for part in parts)), {}, b""
        answer = clients[0].post("/studio/uploads", headers=headers)
        assert answer.status_code == 200, answer.text
        upload = answer.json()["upload"]
        named = {b"x-file-name": quote(hostile_bytes(rng)).encode() if rng.random() < 0.7 else header_value(rng)}
        if rng.random() < 0.2:
            named[b"content-length"] = header_value(rng)
        number = rng.choice(("0", "1", quote(hostile_bytes(rng), safe="")))
        return "PUT", f"uploads/{upload}/{number}", named, mutated(rng, bodies[0], bodies)

    def try_one(rng: Random) -> list[Said]:
        method, path, more, data = asked(rng)
        sent = {**headers, **more}
        if rng.random() < 0.2:
            name = rng.choice((*headers, b"host", b"content-type", b"range", b"if-none-match", b"x-forwarded-for"))
            sent[name] = header_value(rng)
        if rng.random() < 0.1:
            del sent[rng.choice((b"cookie", b"authorization"))]
        answer = rng.choice(clients).request(method, f"/studio/{path}", headers=sent, content=data)
        assert answer.status_code < 500, f"{answer.status_code} {answer.text[:500]}"
        if answer.status_code in (404, 405) and "json" not in answer.headers.get("content-type", ""):
            return []  # no route of ours
        assert "Traceback" not in answer.text[:5000]
        if answer.status_code >= 400 and answer.content and "json" in answer.headers.get("content-type", ""):
            return [(answer.json()["code"], answer.json()["error"])]
        if path == "projects/one/labels" and answer.status_code == 200:
            return [("REFUSED", ack["reason"]) for ack in answer.json()["acks"] if ack["status"] == "refused"]
        return []

    return try_one
