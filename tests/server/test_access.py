"""The doors: host names, password, headers, cross-site writes."""

import base64

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from semiprune_core.project.workspace import Workspace
from semiprune_core.server.access import (
    Access,
    AccessError,
    browser_token,
    check_address,
    check_password,
    check_write,
    start_warnings,
)
from semiprune_core.server.guesses import Guesses

HOST = {"host": "localhost:8501", "origin": "http://localhost:8501"}  # the test client says "testserver" to WebSockets


def client(**options):
    async def hello(request):
        return PlainTextResponse("hello")

    async def socket(websocket):
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    app = Starlette(
        routes=[Route("/", hello), WebSocketRoute("/ws", socket)], middleware=[Middleware(Access, **options)]
    )
    return TestClient(app, base_url="http://localhost:8501")


@pytest.mark.parametrize("host", ["localhost", "localhost:8501", "127.0.0.1:9", "[::1]:8501", "LOCALHOST"])
def test_loopback_names_are_answered(host):
    assert client().get("/", headers={"host": host}).text == "hello"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8501", "localhost.evil.example", "127.0.0.1.evil.example", ""]
)
def test_other_host_names_are_refused(host):
    answer = client().get("/", headers={"host": host})
    assert answer.status_code == 421
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_foreign_host_opens_no_websocket():
    with pytest.raises(WebSocketDisconnect), client().websocket_connect("/ws", headers={"host": "evil.example"}):
        pass


FOREIGN = (
    "http://evil.example",
    "http://localhost:9999",
    "http://localhost",
    "http://127.0.0.1:8501",
    "http://localhost:8501.evil.example",
    "http://user@localhost:8501",
    "http://[",
    "file://localhost:8501",
    "null",
    "",
)


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_page_of_another_site_reaches_nothing(origin):
    headers = HOST | {"origin": origin}
    assert client().get("/", headers=headers).status_code == 403
    with pytest.raises(WebSocketDisconnect), client().websocket_connect("/ws", headers=headers):
        pass


def test_a_websocket_must_name_its_origin_and_a_page_need_not():
    assert client().get("/", headers={"host": "localhost:8501"}).text == "hello"
    with (
        pytest.raises(WebSocketDisconnect),
        client().websocket_connect("/ws", headers={"host": "localhost:8501"}),
    ):
        pass


def test_our_own_page_behind_tls_is_let_in(monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_ALLOWED_HOSTS", "studio.example.com")
    headers = {"host": "studio.example.com", "origin": "https://studio.example.com"}
    with client().websocket_connect("/ws", headers=headers) as socket:
        assert socket.receive_text() == "hello"


def test_named_hosts_are_answered(monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_ALLOWED_HOSTS", "studio.example.com, other.example")
    assert client().get("/", headers={"host": "studio.example.com"}).text == "hello"


def test_every_answer_carries_the_security_headers():
    headers = client().get("/").headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "object-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "SAMEORIGIN"


def test_the_metrics_of_streamlit_are_closed():
    assert client().get("/_stcore/metrics").status_code == 404
    assert client().get("/base/_stcore/metrics").text == "Not found."


def basic(password):
    return {"authorization": "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()}


def test_the_password_stands_before_pages_and_websockets():
    guarded = client(password="s3cret:ä")
    assert guarded.get("/").status_code == 401
    assert guarded.get("/", headers=basic("wrong")).status_code == 401
    assert guarded.get("/", headers={"authorization": "Basic !!!"}).status_code == 401
    assert guarded.get("/", headers=basic("s3cret:ä")).text == "hello"
    with pytest.raises(WebSocketDisconnect), guarded.websocket_connect("/ws", headers=HOST):
        pass
    with guarded.websocket_connect("/ws", headers=HOST | basic("s3cret:ä")) as socket:
        assert socket.receive_text() == "hello"


def test_wrong_passwords_are_slowed_down_and_a_browser_that_was_let_in_never_waits():
    guarded = client(password="s3cret:ä")
    assert guarded.get("/", headers=basic("s3cret:ä")).text == "hello"
    stranger = TestClient(guarded.app, base_url="http://localhost:8501")
    assert [stranger.get("/", headers=basic(f"guess {n}")).status_code for n in range(7)] == [401] * 5 + [429] * 2
    assert stranger.get("/", headers=basic("s3cret:ä")).status_code == 429, "the wait is over before any is looked at"
    assert "Try again in" in stranger.get("/", headers=basic("x")).text
    assert stranger.get("/").status_code == 401, "whoever gives none makes no guess"
    assert guarded.get("/", headers=basic("s3cret:ä")).text == "hello"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def guesses_in_an_hour(addresses):
    clock, n = Clock(), 0
    guesses = Guesses(clock)
    while clock.now < 3600:
        for address in addresses:
            if guesses.wait(address) == 0:
                guesses.wrong(address)
                n += 1
        clock.now += 1
    return n


def test_one_address_has_70_guesses_in_an_hour_and_all_together_1800():
    assert guesses_in_an_hour(["192.0.2.7"]) <= 70
    assert guesses_in_an_hour([f"2001:db8::{n:x}" for n in range(8)]) <= 70
    assert guesses_in_an_hour([f"192.0.2.{n}" for n in range(40)]) <= 1800


def test_the_right_password_makes_an_address_good_again_and_many_addresses_fill_no_memory():
    guesses = Guesses(Clock())
    for _ in range(5):
        guesses.wrong("192.0.2.7")
    guesses.right("192.0.2.7")
    assert not guesses._wrong
    for number in range(20_000):
        guesses.wrong(f"10.0.{number // 250}.{number % 250}")
    assert len(guesses._wrong) == 10_000


@pytest.mark.parametrize("password", ["x", " ", "", "1234567", "aaaaaaaaaaaa", "       x "])
def test_a_weak_password_is_refused(password):
    with pytest.raises(AccessError, match="at least 8 characters"):
        check_password(password)


def test_a_fair_password_or_none_is_taken_and_the_door_is_described():
    check_password("correct horse")
    check_password(None)
    assert "every user of this machine" in start_warnings("127.0.0.1", None)[0]
    assert "in the clear" in start_warnings("0.0.0.0", "correct horse")[0]
    assert start_warnings("127.0.0.1", "correct horse") == []


@pytest.mark.parametrize("address", ["0.0.0.0", "", None, "192.0.2.7", "studio.example.com"])
def test_serving_beyond_this_machine_needs_a_password(address):
    with pytest.raises(AccessError, match="without a login"):
        check_address(address, None)
    check_address(address, "s3cret")


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_none(address):
    check_address(address, None)


@pytest.mark.parametrize(
    "origin, token, allowed",
    [
        ("http://localhost:8501", "right", True),
        (None, "right", True),
        ("http://evil.example", "right", False),
        ("http://localhost:9999", "right", False),
        ("null", "right", False),
        ("http://localhost:8501", "wrong", False),
        ("http://localhost:8501", "", False),
    ],
)
def test_a_write_needs_our_origin_and_our_token(tmp_path, origin, token, allowed):
    workspace = Workspace.open(tmp_path)

    def write(request):
        try:
            check_write(request, workspace)
        except AccessError as error:
            return PlainTextResponse(str(error), status_code=403)
        return PlainTextResponse("written")

    headers = {"x-semiprune-token": browser_token(workspace) if token == "right" else token}
    headers |= {"origin": origin} if origin else {}
    app = TestClient(Starlette(routes=[Route("/", write, methods=["POST"])]), base_url="http://localhost:8501")
    assert (app.post("/", headers=headers).status_code == 200) is allowed


def test_two_installations_have_different_tokens(tmp_path):
    assert browser_token(Workspace.open(tmp_path / "a")) != browser_token(Workspace.open(tmp_path / "b"))
