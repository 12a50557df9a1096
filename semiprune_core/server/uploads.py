"""Files from the browser, streamed to the disk piece by piece, never held in memory.

``POST /studio/uploads`` gives an id; ``PUT /studio/uploads/<id>/<number>`` takes one file, its name in the header
``X-File-Name`` (percent-encoded). The folder then holds ``files/<number>`` and one line per file in ``index.jsonl``.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from pathlib import Path
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from semiprune_core import files
from semiprune_core.errors import DiskFullError, InvalidDataError, WorkspaceError
from semiprune_core.paths import normal_relative, shown
from semiprune_core.project import rights
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.access import check_write

LIMIT_VARIABLE = "SEMIPRUNE_MAX_UPLOAD_GB"
KEEP_FREE = 1 << 30
LOOK_EVERY = 1 << 20
"""Bytes between two looks at the free space."""
MAX_FILES = 200_000
OWNER = "owner"
"""The file of an upload that says which account has begun it."""
STALE_SECONDS = 24 * 3600
ID = re.compile(r"[0-9a-f]{32}")


def upload_limit() -> int:
    """How many bytes one file may have."""
    return int(float(os.environ.get(LIMIT_VARIABLE, "20")) * (1 << 30))


def begin(request: Request, workspace: Workspace) -> Response:
    """Open an upload folder; forgotten ones of yesterday are cleared away."""
    check_write(request, workspace)
    workspace.uploads_folder.mkdir(exist_ok=True)
    for folder in workspace.uploads_folder.iterdir():
        if time.time() - folder.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
    upload = secrets.token_hex(16)
    with files.named_disk_errors(workspace.uploads_folder / upload):
        (workspace.uploads_folder / upload / "files").mkdir(parents=True)
        if account := rights.account():
            files.write_text(workspace.uploads_folder / upload / OWNER, account)
    return JSONResponse({"upload": upload, "limit": upload_limit()})


def folder_of(workspace: Workspace, upload: str) -> Path:
    folder = workspace.uploads_folder / upload
    if not ID.fullmatch(upload) or not folder.is_dir() or not _is_own(folder):
        raise WorkspaceError("This upload has expired. Drop the files again.", code="NO_UPLOAD")
    return folder


def _is_own(folder: Path) -> bool:
    """Whether whoever acts has begun this upload; without accounts everybody has."""
    account, owner = rights.account(), folder / OWNER
    return account is None or (owner.is_file() and owner.read_text("utf-8") == account)


async def receive(request: Request, workspace: Workspace) -> Response:
    """Take one file. It counts only when every byte has arrived."""
    check_write(request, workspace)
    folder = folder_of(workspace, request.path_params["upload"])
    number = request.path_params["number"]
    name = normal_relative(unquote(request.headers.get("x-file-name", "")) or "unnamed")
    expected = _announced(request.headers.get("content-length") or "0", name)
    _check_size(expected, name)
    _check_room(expected, folder, name)
    if number >= MAX_FILES:
        raise InvalidDataError(f"An upload holds at most {MAX_FILES} files. Zip them first.", code="TOO_MANY_FILES")
    path = folder / "files" / str(number)
    taken = looked = 0
    try:
        with files.open_atomic(path) as file:
            async for piece in request.stream():
                taken += len(piece)
                _check_size(taken, name)
                if taken - looked >= LOOK_EVERY:  # what was announced, if anything, need not be true
                    _check_room(len(piece), folder, name)
                    looked = taken
                await run_in_threadpool(file.write, piece)
    except ClientDisconnect:
        raise InvalidDataError(
            f"The connection was lost while {name} was being sent. Send it again.", code="CUT_SHORT"
        ) from None
    line = json.dumps({"file": str(number), "name": name, "bytes": taken}, ensure_ascii=False)
    with files.named_disk_errors(folder), open(folder / "index.jsonl", "a", encoding="utf-8") as index:
        index.write(line + "\n")
    return JSONResponse({"bytes": taken})


def _announced(length: str, name: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", length):
        raise InvalidDataError(f"The length of {shown(name)} is no number. Send it again.", code="BAD_LENGTH")
    return int(length)


def _check_size(size: int, name: str) -> None:
    limit = upload_limit()
    if size > limit:
        raise InvalidDataError(
            f"{name} is larger than the upload limit of {limit / 1e9:.1f} GB. Copy it to a folder on the server "
            f"and import that, or raise {LIMIT_VARIABLE}.",
            code="UPLOAD_TOO_LARGE",
        )


def _check_room(size: int, folder: Path, name: str) -> None:
    free = shutil.disk_usage(folder).free
    if size + KEEP_FREE > free:
        raise DiskFullError(
            f"{name} does not fit: the disk has {free / 1e6:.0f} MB free, and 1 GB stays free. "
            "Free some space, or import a folder on the server."
        )


def discard(request: Request, workspace: Workspace) -> Response:
    check_write(request, workspace)
    shutil.rmtree(folder_of(workspace, request.path_params["upload"]), ignore_errors=True)
    return Response(status_code=204)
