"""The app as it really runs: who gets in, what another user of the machine sees, and that it calls nobody."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from semiprune_core import jobs
from semiprune_core.importing import ImportSettings
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.labeling.checking import copies_of
from semiprune_core.labeling.store import store_file
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.routes import studio_routes
from tests.browser.label_support import Studio
from tests.browser.serving import LET_IN, ROOT, TOKEN, Server
from tests.server.network import Network
from tests.support.waiting import wait_until

WATCH = """
import os, sys

def note(words):
    with open(os.environ["CALLS"], "a") as file:
        file.write(words + "\\n")

def watch(event, facts):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = facts[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg") and isinstance(facts[1], tuple):
        host = facts[1][0]
    else:
        return
    if host not in (None, "", "localhost", "127.0.0.1", "::1"):
        note(f"{event} {host}")
        raise PermissionError("no calls in this test")

sys.addaudithook(watch)
note(f"begun {'worker' if 'semiprune_core.jobs.worker' in sys.orig_argv else 'other'}")
if "SEMIPRUNE_TOKEN" in os.environ and "streamlit" not in sys.orig_argv:
    note(f"token {sys.orig_argv}")
"""
PIDFD_GETFD = 438
EVIL = "http://evil.example/a.png"
FOREIGN = ("http://evil.example", "http://localhost:1", "http://127.0.0.1", "http://192.0.2.7", "null")
NAMES = (EVIL, f"![a]({EVIL})", "www.evil.example", f"<img src={EVIL}>")


@pytest.fixture(scope="module", autouse=True)
def network():
    """A network without a way out, which counts calls to the outside; None where there can be none."""
    try:
        network = Network()
    except OSError:
        yield None
        return
    with network.entered():
        yield network
    network.close()


@pytest.fixture(scope="module")
def folder():
    """A folder that every user of this machine may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def make_older(workspace: Workspace) -> None:
    """Leave a workspace as earlier versions did: open to everybody, with labels that were never copied."""
    open_store(workspace.create("Older")).classes.add(["cat"], annotator="ana")
    for path in (workspace.root, *workspace.root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture(scope="module")
def server(folder):
    """The app with a watch on every address that it or a process of its connects to or looks up."""
    (folder / "sitecustomize.py").write_text(WATCH)
    server = Studio(folder)
    make_older(server.workspace)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.fspath(folder))
        patched.setenv("CALLS", os.fspath(folder / "calls"))
        server.start()
    yield server
    server.kill()


def noted(folder: Path, kind: str) -> list[str]:
    return [line for line in (folder / "calls").read_text().splitlines() if line.startswith(kind)]


def test_the_start_closes_an_older_workspace_and_copies_its_labels(server):
    older = server.workspace.project("older")
    wait_until(lambda: copies_of(store_file(older)), "a copy of the labels")
    paths = [server.home, older.folder, *older.folder.rglob("*")]
    assert [path for path in paths if path.stat().st_mode & 0o077] == []


def sockets_of(pid: int) -> Iterator[socket.socket]:
    """The sockets that another process has open."""
    process = os.pidfd_open(pid)
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                number = ctypes.CDLL(None).syscall(PIDFD_GETFD, process, int(name), 0)
                if number < 0:
                    pytest.skip("the sockets of another process cannot be looked at here")
                with socket.socket(fileno=number) as found:
                    yield found
    os.close(process)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux lets us look at the sockets of another process")
def test_small_answers_of_the_running_app_leave_at_once(server):
    at_once = [
        found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        for found in sockets_of(server.process.pid)
        if found.family == socket.AF_INET and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    ]
    assert at_once and all(at_once)


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


def test_only_its_own_page_opens_the_websocket(server):
    assert handshake(server, f"Origin: http://localhost:{server.port}") == 101
    assert handshake(server) == 403
    for origin in FOREIGN:
        assert handshake(server, f"Origin: {origin}") == 403


def draw(server: Server, page: str, query: str) -> int:
    """Let the app draw a page as for a browser; returns how many pieces it is made of."""
    site, asked, piece, n = f"127.0.0.1:{server.port}", BackMsg(), ForwardMsg(), 0
    asked.rerun_script.page_name, asked.rerun_script.query_string = page, query
    with connect(
        f"ws://{site}/_stcore/stream",
        origin=f"http://{site}",
        additional_headers=LET_IN,
        subprotocols=["streamlit"],
        max_size=None,
    ) as line:
        line.send(asked.SerializeToString())
        while piece.WhichOneof("type") != "script_finished":
            piece.ParseFromString(line.recv())
            n += 1
    return n


def ask(server: Server, path: str, headers: dict[str, str]) -> None:
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(server.url + path, headers=LET_IN | headers), timeout=60).close()


@pytest.fixture(scope="module")
def walked(server):
    """All pages and routes with hostile origins and names, and an import of a table full of addresses."""
    project = server.project("evil", n=6, classes=NAMES, names=[f"{number}www.evil.example.png" for number in range(6)])
    project.update(title=NAMES[1])
    table = server.pictures / "table.csv"
    table.write_text("path,label\n" + "".join(f'"{name}",{EVIL}\n' for name in (*NAMES, "//evil.example/x.png")))
    with open(table, "a") as file:
        file.writelines(f"{path},{EVIL}\n" for path in (server.pictures / "evil-first").iterdir())
    settings = ImportSettings(source=SourceSpec("manifest", str(table)).to_json(), n_workers=1)
    job = jobs.submit(server.workspace.create(NAMES[0], name="from-table"), "import", settings.to_json())
    for page in ("", "new", "pool", "label", "train", "pseudo", "map", "scores", "select", "evaluate", "export"):
        assert draw(server, page, f"project=evil&image={EVIL}&url={EVIL}") > 5
    assert draw(server, "label", f"project={EVIL}") > 5
    for route in studio_routes(server.workspace):
        path = re.sub("{.*?}", "evil", route.path)
        for headers in ({"Origin": "http://evil.example"}, {"Referer": EVIL, "X-Forwarded-For": "192.0.2.7"}):
            ask(server, path, headers | {"X-Forwarded-Host": "evil.example", "X-File-Name": EVIL})
    for origin in FOREIGN:
        handshake(server, f"Origin: {origin}")
    wait_until(lambda: job.status().state not in (jobs.QUEUED, jobs.RUNNING), "the import")
    assert job.status().state == jobs.DONE, job.log_tail()


def test_a_walk_with_hostile_origins_and_names_calls_nobody(walked, folder):
    assert noted(folder, "socket") == []
    assert noted(folder, "begun worker"), "jobs are watched too"
    assert noted(folder, "token") == [], "nobody but the app is told the token"


def test_no_packet_of_the_walk_goes_to_the_outside(walked, server, network):
    if network is None:
        pytest.skip("only root, on Linux, can make a network of its own")
    assert network.holds(server.process.pid)
    assert network.calls() == []


def connect_by_c(address: str, port: int) -> None:
    """A call that no hook in Python sees."""
    with socket.socket(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as line:
        place = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)
        ctypes.CDLL(None).connect(line.fileno(), place, len(place))


def test_the_network_sees_calls_and_lets_none_out(network):
    if network is None:
        pytest.skip("only root, on Linux, can make a network of its own")
    with contextlib.closing(Network()) as another, another.entered():
        with socket.create_server(("127.0.0.1", 0)) as own, socket.create_connection(own.getsockname()):
            assert another.calls() == []
        for address in ("192.0.2.7", "2001:db8::7"):
            with pytest.raises(OSError) as refused:
                socket.create_connection((address, 80))
            is_seen = f"{address}:80" in another.calls()
            assert is_seen == isinstance(refused.value, ConnectionRefusedError), "or there is no way by IPv6"
            assert is_seen or ":" in address
        connect_by_c("192.0.2.7", 443)
        assert "192.0.2.7:443" in another.calls()
        with pytest.raises(socket.gaierror):
            socket.getaddrinfo("evil.example", 80)
        assert any(call.endswith(":53") for call in another.calls())


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


def test_streamlit_is_not_told_to_look_for_the_address_of_this_machine():
    settings = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    assert settings["logger"]["hideWelcomeMessage"], "its welcome names the machine as an outside service sees it"
    assert settings["browser"]["gatherUsageStats"] is False
