"""The app as it really runs: who gets in, what another user of the machine sees, and that it calls nobody."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from semiprune_core.project.workspace import Workspace
from semiprune_core.server.routes import studio_routes
from tests.browser.serving import TOKEN, Server, free_port

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
def folder():
    """A folder that every user of this machine may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server(folder):
    """The app with a watch on every address it connects to or looks up."""
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
        f"Authorization: Bearer {TOKEN}",
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


OTHER = """
import encodings.idna, http.client, json, os, sys

os.setgroups([])
os.setgid(65534)
os.setuid(65534)
home, port, token, *paths = json.load(sys.stdin)
read = lambda path: len(open(path, "rb").read())
n_bytes, answers, told = 0, [], []
for folder, _, names in os.walk(home):
    for name in names:
        n_bytes += read(os.path.join(folder, name))
try:
    n_bytes += read(os.path.join(home, "secret"))
except OSError:
    pass
for path in paths:
    for extra in ({}, {"Origin": f"http://127.0.0.1:{port}", "Connection": "Upgrade", "Upgrade": "websocket",
                       "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path, headers=extra)
        answers.append(connection.getresponse().status)
for pid in filter(str.isdigit, os.listdir("/proc")) if os.path.isdir("/proc") else ():
    try:
        told += [pid] if token in open(f"/proc/{pid}/cmdline").read() else []
    except OSError:
        pass
print(json.dumps({"uid": os.getuid(), "bytes": n_bytes, "answers": sorted(set(answers)), "told": told}))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_this_machine_reads_no_byte_and_opens_no_socket(server, folder):
    project = Workspace.open(server.home).create("Private")
    (project.exports_folder / "labels.csv").write_text("a,b")
    routes = [route.path.replace("{project}", "private") for route in studio_routes(Workspace.open(server.home))]
    paths = ["/", "/label", "/_stcore/health", "/_stcore/host-config", "/_stcore/stream", "/media/x", *routes]

    def seen(home: Path) -> dict:
        asked = json.dumps([str(home), server.port, TOKEN, *paths])
        done = subprocess.run([sys.executable, "-I", "-c", OTHER], input=asked, capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert seen(server.home) == {"uid": 65534, "bytes": 0, "answers": [401, 403], "told": []}
    (folder / "open").mkdir()
    (folder / "open/secret").write_text("12345")
    assert seen(folder / "open")["bytes"] == 10, "whoever looks this way sees what is open"
