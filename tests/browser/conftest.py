"""The real app in a real browser: one server per test module, one Chromium for all."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE_MS = 60_000


@dataclass
class Server:
    """A running app and its own home."""

    home: Path
    pictures: Path
    port: int
    log: Path
    process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        environment = {**os.environ, "SEMIPRUNE_HOME": str(self.home), "SEMIPRUNE_ROOTS": str(self.pictures)}
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 90
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The app did not start:\n{self.log.read_text()}")

    def _answers(self) -> bool:
        address = f"{self.url}/_stcore/health"
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
            urllib.request.urlopen(address, timeout=2) as answer,
        ):
            return answer.status == 200
        with contextlib.suppress(subprocess.TimeoutExpired):
            assert self.process is not None
            self.process.wait(0.2)
        return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    (folder / "pictures").mkdir()
    running = Server(folder / "home", folder / "pictures", free_port(), folder / "app.log")
    running.start()
    yield running
    running.kill()
    assert "Traceback" not in running.log.read_text(), running.log.read_text()


@pytest.fixture(scope="session")
def chromium():
    named = os.environ.get("SEMIPRUNE_BROWSER")
    path = named or next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail("No Chromium for the browser tests. Run `make tools`, or set SEMIPRUNE_BROWSER to its path.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, server):
    """A fresh page at the app's front door; a script error on it fails the test."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(server.url)
    yield tab
    context.close()
    assert errors == []
