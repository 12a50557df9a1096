"""The real Label Studio on this machine alone: its own virtual environment, SQLite, loopback.

python -m tests.tools FOLDER label_studio     (1 GB, some minutes) installs it and runs its tests, or, once it is there:
SEMIPRUNE_LABEL_STUDIO=FOLDER/label_studio SEMIPRUNE_FULL=1 python -m pytest tests/exporting/test_label_studio.py
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

VERSION = "1.23.2"
ENVIRONMENT = "SEMIPRUNE_LABEL_STUDIO"
FORMS = {"JSON": ".json", "JSON_MIN": ".min.json", "CSV": ".csv"}
STARTS_WITHIN = 600  # seconds; its first start makes all of its tables


def installed() -> Path | None:
    """The program, where the environment says there is one."""
    program = Path(os.environ.get(ENVIRONMENT, "/nonexistent")) / "bin" / "label-studio"
    return program if program.is_file() else None


class Studio:
    """A running Label Studio, asked through its API."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self._token = address, token

    def ask(self, path: str, body: Any = None, *, method: str | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Token {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read()

    def value(self, path: str, body: Any = None, *, method: str | None = None) -> Any:
        return json.loads(self.ask(path, body, method=method))

    def status(self, path: str) -> int:
        """The HTTP status of a GET."""
        try:
            self.ask(path)
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    def new_project(self, title: str, config: str, tasks: list[dict[str, Any]]) -> int:
        """A project with these tasks, imported with their annotations and predictions."""
        number = int(self.value("/api/projects", {"title": title, "label_config": config})["id"])
        self.value(f"/api/projects/{number}/import", tasks)
        return number

    def add_storage(self, project: int, folder: Path) -> None:
        """Serve the pictures of a local folder to a project."""
        body = {"project": project, "path": str(folder), "title": "pictures", "use_blob_urls": True}
        self.value("/api/storages/localfiles", body)

    def tasks(self, project: int) -> dict[str, dict[str, Any]]:
        """The tasks with annotations and predictions, by our id."""
        listed = self.value(f"/api/tasks?project={project}&fields=all&page_size=10000")["tasks"]
        return {task["data"]["image_id"]: task for task in listed}

    def annotate(self, task: dict[str, Any], name: str) -> None:
        """Submit a new answer."""
        self.value(f"/api/tasks/{task['id']}/annotations/", {"result": [_choice(name)], "lead_time": 2.5})

    def correct(self, task: dict[str, Any], name: str) -> None:
        """Update the first answer of a task."""
        number = task["annotations"][0]["id"]
        self.value(f"/api/annotations/{number}/", {"result": [_choice(name)]}, method="PATCH")

    def export(self, project: int, form: str) -> bytes:
        return self.ask(f"/api/projects/{project}/export?exportType={form}")


def _choice(name: str) -> dict[str, Any]:
    value = {"choices": [name]}
    return {"id": "new1", "from_name": "choice", "to_name": "image", "type": "choices", "value": value}


@contextlib.contextmanager
def running(program: Path, home: Path, document_root: Path) -> Iterator[Studio]:
    """Label Studio with its data below ``home``, serving local files below ``document_root``; ended afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home.mkdir(parents=True, exist_ok=True)
    key = home / "key"  # its user keeps the key of the first start
    if not key.exists():
        key.write_text(secrets.token_hex(20))
    token = key.read_text()
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "LABEL_STUDIO_BASE_DATA_DIR": str(home),
        "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(document_root),
        "COLLECT_ANALYTICS": "0",
        "LATEST_VERSION_CHECK": "0",
    }
    words = [str(program), "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    words += ["--username", "tests@example.org", "--password", secrets.token_hex(12), "--user-token", token]
    words += ["--enable-legacy-api-token"]
    studio = Studio(f"http://127.0.0.1:{port}", token)
    with open(home / "server.log", "wb") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: process.poll() is not None or _answers(studio), "Label Studio answers", STARTS_WITHIN)
        if process.poll() is not None:
            raise RuntimeError(f"Label Studio ended at once; see {home / 'server.log'}.")
        yield studio
    finally:
        process.terminate()
        process.wait(60)


def _answers(studio: Studio) -> bool:
    try:
        return studio.status("/api/version") == 200
    except OSError:
        return False
