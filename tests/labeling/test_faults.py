"""Writers that are killed, and many writers at once: nothing acknowledged is lost, doubled or overwritten.

Reduced by default; SEMIPRUNE_FULL=1 runs the full counts (50 kills; 8 x 250 labels beside a 50,000-row import).
Killing a process does not show what a power cut does: that rests on SQLite's ``synchronous=FULL``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import uuid
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling.database import URL_VARIABLE
from semiprune_core.project.pool import show_id
from semiprune_core.server import browser_token
from tests.support.effort import FULL
from tests.support.waiting import PATIENCE

WRITER = Path(__file__).with_name("writer.py")
ROOT = Path(__file__).parents[2]
DEADLINE_S = 600 if FULL else 120
EIGHT = ",".join(f"a-{number}" for number in range(8))


@pytest.fixture
def start():
    """Start a writer; whatever happens, none is left behind."""
    started: list[subprocess.Popen] = []

    def one(*arguments: object) -> subprocess.Popen:
        started.append(_start(*arguments))
        return started[-1]

    yield one
    for writer in started:
        writer.kill()
        writer.communicate()


def _start(mode: str, store: LabelStore, annotator: str, count: int) -> subprocess.Popen:
    where = store.database.url
    url = str(where.database) if store.database.is_sqlite else where.render_as_string(hide_password=False)
    return _writer(mode, url, store.project, annotator, count)


def _writer(mode: str, url: str, project: str, annotator: str, count: int, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, WRITER, mode, url, project, annotator, str(count)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.fault
def test_nothing_acknowledged_is_missing_after_kill_9(store, start):
    rng = random.Random(0)
    acknowledged: list[str] = []
    for _ in range(50 if FULL else 3):
        writer = start("forever", store, "ana", 0)
        first = writer.stdout.readline()
        assert first, writer.stderr.read()
        timer = threading.Timer(rng.uniform(0, 0.25), writer.kill)
        timer.start()
        rest, _ = writer.communicate(timeout=PATIENCE)
        timer.join()
        whole_lines = (first + rest).rsplit("\n", 1)[0]
        acknowledged += whole_lines.split()
        assert store.database.integrity_problems() == []
        kept = {row["event_id"] for row in store.events()}
        assert set(acknowledged) <= kept
    assert len(acknowledged) == len(set(acknowledged)) > 3
    before, after = _held_before_and_after_a_rebuild(store)
    assert after == before


def _held_before_and_after_a_rebuild(store: LabelStore) -> tuple[list, list]:
    """Of the same events: the last label of a killed writer may still be on its way through PostgreSQL's server."""
    while True:
        events, before = store.events(), sorted(store.held(), key=repr)
        store.rebuild()
        after = sorted(store.held(), key=repr)
        if store.events() == events:
            return before, after


@pytest.mark.fault
def test_eight_annotators_and_an_import_lose_double_and_overwrite_nothing(database, start):
    n_labels, n_rows = (250, 50_000) if FULL else (15, 500)
    store = LabelStore(database, f"many-{uuid.uuid4().hex[:8]}")
    store.classes.add([f"c{number}" for number in range(8)], annotator="ana")
    ids = np.arange(8 * n_labels + 20, dtype=np.uint64)
    store.drawings.draw(pool_hash="h", ids=ids, duplicate_of=np.arange(len(ids)), fraction=1.0, annotator="ana")
    outputs = _run_all([start("leased", store, EIGHT, n_labels), start("import", store, "importer", n_rows)])
    said = [line.split() for text in outputs for line in text.splitlines()]
    events = _nothing_lost_doubled_or_overwritten(store, said, 8 * n_labels, range(10))
    assert ["imported", str(n_rows), "0"] in said
    assert len([row for row in events if row["annotator"] == "importer"]) == n_rows


def _run_all(writers: list[subprocess.Popen], go: str = "go") -> list[str]:
    """Let them begin at once, and wait for what they say."""
    for writer in writers:
        assert writer.stdout.readline() == "ready\n", writer.stderr.read()
    for writer in writers:
        writer.stdin.write(f"{go}\n")
        writer.stdin.flush()
    outputs = [writer.communicate(timeout=DEADLINE_S) for writer in writers]
    assert [error for _, error in outputs if error] == []  # "database is locked" would be here
    assert [writer.returncode for writer in writers] == [0] * len(writers)
    return [text for text, _ in outputs]


def _nothing_lost_doubled_or_overwritten(store, said, n_labels, disputed):
    labels = [words for words in said if words[0] == "label"]
    assert len(labels) == n_labels and {status for _, _, status, _ in labels} == {"saved"}
    assert max(Counter(image for _, image, _, _ in labels).values()) == 1  # no image went to two people
    events = store.events()
    kept = Counter(row["event_id"] for row in events)
    assert set(kept.values()) == {1} and {event_id for _, _, _, event_id in labels} <= set(kept)
    settled = [words for words in said if words[0] == "settle"]
    winners = {int(image): int(mine) for _, image, status, mine in settled if status == "saved"}
    assert Counter(status for _, _, status, _ in settled) == {"saved": 10, "conflict": 70}
    assert {held.image_id: held.class_id for held in store.held(disputed) if held.round == "settle"} == winners
    assert store.database.integrity_problems() == []
    return events


@pytest.fixture(params=["sqlite", "postgresql"])
def studio(request, tmp_path, monkeypatch):
    """The app itself, running over either database."""
    from tests.browser.label_support import Studio

    monkeypatch.delenv(URL_VARIABLE, raising=False)
    if request.param == "postgresql":
        monkeypatch.setenv(URL_VARIABLE, request.getfixturevalue("postgresql_url"))
    (tmp_path / "home").mkdir()
    studio = Studio(tmp_path / "home")
    yield studio
    if studio.process is not None:
        studio.kill()


@pytest.mark.fault
def test_eight_annotators_over_the_running_app_lose_double_and_overwrite_nothing(studio):
    n_labels = 250 if FULL else 5
    name = f"posted-{uuid.uuid4().hex[:8]}"
    project = studio.project(name, n=8 * n_labels + 20, classes=[f"c{number}" for number in range(8)])
    studio.start()
    token, disputed = browser_token(studio.workspace), project.pool().ids[:10]
    writers = _writer("posted", studio.url, name, EIGHT, n_labels, WRITER_TOKEN=token)
    try:
        [output] = _run_all([writers], " ".join(["go", *map(show_id, disputed.tolist())]))
    finally:
        writers.kill()
        writers.communicate()
    said = [line.split() for line in output.splitlines()]
    _nothing_lost_doubled_or_overwritten(open_store(project), said, 8 * n_labels, disputed.tolist())
    assert "Traceback" not in studio.log.read_text()
