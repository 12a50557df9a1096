"""The app as a process of its own, over a workspace of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "token-of-the-tests"  # noqa: S105
LET_IN = {"Authorization": f"Bearer {TOKEN}"}


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
        environment["SEMIPRUNE_TOKEN"] = TOKEN
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The app did not start:\n{self.log.read_text()}")

    def _answers(self) -> bool:
        address = urllib.request.Request(f"{self.url}/_stcore/health", headers=LET_IN)
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
