"""The doors: host names, headers, cross-site requests and writes, addresses."""

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
    browser_token,
    check_address,
    check_write,
    lets_others_in,
    start_warnings,
)
from semiprune_core.server.login import AccessError, Cookie, NoLogin, PasswordLogin, TokenLogin

HOST = {"host": "localhost:8501", "origin": "http://localhost:8501"}  # the test client says "testserver" to WebSockets


COOKIE = Cookie("semiprune_test", "c00c1e")
PASSWORD = PasswordLogin("correct horse", COOKIE)
TOKEN = TokenLogin("token", COOKIE, chosen=False)


def client(*, at="http://localhost:8501", login=None):
    async def hello(request):
        return PlainTextResponse("hello")

    async def socket(websocket):
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    app = Starlette(
        routes=[Route("/", hello), WebSocketRoute("/ws", socket)],
        middleware=[Middleware(Access, login=login or NoLogin())],
    )
    return TestClient(app, base_url=at)


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


def test_a_tab_that_closes_while_it_is_answered_is_no_error(monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_ALLOWED_HOSTS", "studio.example.com")
    headers = {"host": "studio.example.com", "origin": "https://studio.example.com"}

    async def answers_too_late(websocket):
        await websocket.accept()
        await websocket.close()
        await websocket.send_text("too late")

    access = Middleware(Access, login=NoLogin())
    app = Starlette(routes=[WebSocketRoute("/ws", answers_too_late)], middleware=[access])
    with TestClient(app).websocket_connect("/ws", headers=headers) as socket, pytest.raises(WebSocketDisconnect):
        socket.receive_text()


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
    assert "connect-src 'self' ws://localhost:8501 wss://localhost:8501;" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "SAMEORIGIN"


@pytest.mark.parametrize("path", ["/_stcore/upload_file/session/file", "/base/_stcore/upload_file/session/file"])
def test_no_file_goes_to_memory_by_the_upload_route_of_streamlit(path):
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert client().request(method, path, content=b"x").text == "Not found."


def test_the_metrics_of_streamlit_are_closed():
    assert client().get("/_stcore/metrics").status_code == 404
    assert client().get("/base/_stcore/metrics").text == "Not found."


def test_the_door_is_described_to_whoever_starts_the_app():
    assert "every user and every program of this machine" in start_warnings("127.0.0.1", NoLogin())[0]
    assert "everybody who reaches this port" in start_warnings("0.0.0.0", NoLogin())[0]
    for login in (PASSWORD, TOKEN):
        assert "in the clear" in start_warnings("0.0.0.0", login)[0]
        assert start_warnings("127.0.0.1", login) == []


@pytest.mark.parametrize("address", ["0.0.0.0", "", None, "192.0.2.7", "studio.example.com"])
def test_serving_beyond_this_machine_needs_a_login_or_a_proxy_that_was_named(address, monkeypatch):
    with pytest.raises(AccessError, match="without a login"):
        check_address(address, NoLogin())
    check_address(address, PASSWORD)
    check_address(address, TOKEN)
    monkeypatch.setenv("SEMIPRUNE_ALLOWED_HOSTS", "studio.example.com")
    check_address(address, NoLogin())


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_none(address):
    check_address(address, NoLogin())


def test_a_server_that_bound_to_another_address_by_itself_is_refused_too():
    beyond = client(at="http://192.0.2.7:8501")
    answer = beyond.get("/", headers={"host": "localhost:8501"})
    assert answer.status_code == 403 and "without a login" in answer.text
    with pytest.raises(WebSocketDisconnect), beyond.websocket_connect("/ws", headers=HOST):
        pass


@pytest.mark.parametrize("variable", ["SEMIPRUNE_PASSWORD", "SEMIPRUNE_ALLOWED_HOSTS", "SEMIPRUNE_LOGIN"])
def test_where_others_come_in_is_known_by_the_settings(variable, monkeypatch):
    assert not lets_others_in()
    monkeypatch.setenv(variable, "off")
    assert lets_others_in()


@pytest.mark.parametrize(
    "origin, token, allowed",
    [
        ("http://localhost:8501", "right", True),
        (None, "right", True),
        ("http://evil.example", "right", False),
        ("http://localhost:9999", "right", False),
        ("null", "right", False),
        ("http://localhost:8501", "wrong", False),
        ("http://localhost:8501", "schlüssel".encode(), False),
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
