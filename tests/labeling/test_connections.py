"""Many requests over one PostgreSQL: a process opens a few connections, and keeps to them."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from semiprune_core.labeling import database as databases
from semiprune_core.labeling import open_store
from semiprune_core.labeling.database import POOL_OVERFLOW, POOL_SIZE, Database, shared_postgresql
from tests.server.test_labels import Browser, event, make_project


@pytest.fixture
def on_postgresql(monkeypatch, postgresql_url):
    monkeypatch.setenv("SEMIPRUNE_DATABASE_URL", postgresql_url)
    yield postgresql_url
    shared_postgresql(postgresql_url).close()


def connections(url):
    """How many are open, our own aside."""
    database = Database.postgresql(url)
    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'studio' AND pid <> pg_backend_pid()"
    with database.read() as connection:
        found = connection.execute(sa.text(query)).scalar_one()
    database.close()
    return found


def test_two_hundred_requests_share_a_few_connections(on_postgresql, workspace):
    make_project(workspace, "shared", n=16)
    browsers = [Browser(workspace, "shared") for _ in range(8)]
    images = browsers[0].ids

    def work(browser):
        for number in range(12):
            assert browser.post("/queue", {"n": 2}).status_code == 200
            [ack] = browser.send(event(images[number], number % 2))
            assert ack["status"] == "saved"

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, browsers))
    assert connections(on_postgresql) <= POOL_SIZE + POOL_OVERFLOW
    assert len(open_store(workspace.project("shared")).held()) == 8 * 12


def test_a_database_is_opened_and_brought_up_to_date_once(on_postgresql, workspace, monkeypatch):
    project = workspace.create("Once")
    first = open_store(project)
    looked = []
    monkeypatch.setattr(databases.Database, "read", lambda self: looked.append(self))
    assert open_store(project).database is first.database and looked == []


def test_a_child_process_has_connections_of_its_own(on_postgresql, workspace):
    project = workspace.create("Forked")
    open_store(project).classes.add(["cat"], annotator="ana")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            open_store(project).classes.add(["dog"], annotator="ana")
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert open_store(project).classes.names() == ("cat", "dog")
