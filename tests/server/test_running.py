"""The app as it really runs: who gets in, and that it calls nobody."""

from __future__ import annotations

import os
import socket

import pytest

from tests.browser.serving import Server, free_port

WATCH = """
import os, sys

def note(event, facts):
    if event == "socket.getaddrinfo":
        host = facts[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(facts[1], tuple):
        host = facts[1][0]
    else:
        return
    if host not in (None, "localhost", "127.0.0.1", "::1"):
        with open(os.environ["CALLS"], "a") as file:
            file.write(f"{event} {host}\\n")

sys.addaudithook(note)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The app with a watch on every address it connects to or looks up."""
    folder = tmp_path_factory.mktemp("running")
    (folder / "sitecustomize.py").write_text(WATCH)
    (folder / "calls").touch()
    server = Server(folder / "home", folder, free_port(), folder / "log")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.fspath(folder))
        patched.setenv("CALLS", os.fspath(folder / "calls"))
        server.start()
    yield server
    server.kill()


def handshake(server: Server, *headers: str) -> int:
    """The status with which the app answers somebody who wants to open its WebSocket."""
    lines = [
        "GET /_stcore/stream HTTP/1.1",
        f"Host: localhost:{server.port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        *headers,
    ]
    with socket.create_connection(("localhost", server.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.recv(64).split()[1])


def test_only_its_own_page_opens_the_websocket_and_nobody_is_called(server):
    assert handshake(server, f"Origin: http://localhost:{server.port}") == 101
    assert handshake(server) == 403
    for origin in ("http://evil.example", "http://localhost:1", "http://127.0.0.1", "http://192.0.2.7", "null"):
        assert handshake(server, f"Origin: {origin}") == 403
    assert (server.pictures / "calls").read_text() == ""
