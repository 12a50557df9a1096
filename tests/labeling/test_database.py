"""What differs between databases, and which sentence a person gets when one of them fails."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import sqlalchemy as sa

from semiprune_core.errors import ConflictError, WorkspaceError
from semiprune_core.labeling import LabelStore, migrations, open_store, schema
from semiprune_core.labeling.database import Database, filesystem_of, shared_sqlite
from semiprune_core.project.workspace import Workspace

MOUNTS = """/dev/vda / ext4 rw 0 0
server:/x /mnt/team nfs4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
/dev/vdb /mnt/team/local ext4 rw 0 0
"""


@pytest.mark.parametrize(
    "path, kind",
    [
        ("/home/a", "ext4"),
        ("/mnt/team/p", "nfs4"),
        ("/mnt/teamwork", "ext4"),
        ("/mnt/my share/p", "cifs"),
        ("/mnt/team/local/p", "ext4"),
    ],
)
def test_the_filesystem_is_that_of_the_deepest_mount(path, kind):
    assert filesystem_of(Path(path), MOUNTS) == kind


def test_a_network_filesystem_is_refused_by_name(tmp_path):
    mounts = f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n"
    with pytest.raises(WorkspaceError, match="network filesystem .nfs4.*SEMIPRUNE_DATABASE_URL") as error:
        Database.sqlite(tmp_path / "labels.sqlite", mounts=mounts)
    assert error.value.code == "NETWORK_FILESYSTEM" and not list(tmp_path.iterdir())


def test_the_store_opens_where_the_project_is(tmp_path, monkeypatch):
    monkeypatch.delenv("SEMIPRUNE_DATABASE_URL", raising=False)
    project = Workspace.open(tmp_path).create("Birds")
    open_store(project).classes.add(["owl"], annotator="ana")
    assert (project.folder / "labels.sqlite").is_file() and open_store(project).classes.names() == ("owl",)


def test_the_url_chooses_postgresql(tmp_path, monkeypatch, postgresql_url):
    monkeypatch.setenv("SEMIPRUNE_DATABASE_URL", postgresql_url)
    project = Workspace.open(tmp_path).create("Owls by URL")
    store = open_store(project)
    store.classes.add(["owl"], annotator="ana")
    assert not store.database.is_sqlite and not (project.folder / "labels.sqlite").exists()
    store.database.close()


@pytest.mark.parametrize("url", ["mysql://a:hidden@b/c", "not a url", "sqlite:///x"])
def test_another_url_is_refused_without_showing_it(url):
    with pytest.raises(WorkspaceError) as error:
        Database.postgresql(url)
    assert error.value.code == "DATABASE_URL" and "hidden" not in str(error.value)


def test_an_unreachable_database_is_named_without_its_password(tmp_path):
    database = Database.postgresql(f"postgresql://me:hidden@/x?host={tmp_path}")
    with pytest.raises(WorkspaceError, match="cannot be reached") as error:
        LabelStore(database, "p")
    assert error.value.code == "STORE_UNREACHABLE" and "hidden" not in str(error.value)


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "labels.sqlite").write_bytes(b"this is not a database, but long enough to look at" * 40)
    with pytest.raises(WorkspaceError, match="damaged") as error:
        LabelStore.sqlite(tmp_path / "labels.sqlite", "p")
    assert error.value.code == "STORE_DAMAGED"


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(WorkspaceError) as error:
        LabelStore.sqlite(tmp_path / "gone" / "labels.sqlite", "p")
    assert error.value.code == "NOT_WRITABLE"


def test_sqlite_is_set_for_safety(tmp_path):
    store = LabelStore.sqlite(tmp_path / "labels.sqlite", "p")
    with store.database.read() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
        }
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() >= 10_000
    assert pragma == {"journal_mode": "persist", "synchronous": 2}


def test_a_write_takes_the_lock_before_it_reads(tmp_path):
    """BEGIN IMMEDIATE: inside a write that has only read so far, nobody else can begin to write."""
    store = LabelStore.sqlite(tmp_path / "labels.sqlite", "p")

    def work(connection):
        connection.execute(sa.select(schema.projects)).all()
        other = sqlite3.connect(tmp_path / "labels.sqlite", timeout=0)
        try:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        finally:
            other.close()

    store.database.write(work)


def test_a_store_that_stays_busy_is_a_named_conflict_and_saves_nothing(tmp_path, event):
    path = tmp_path / "labels.sqlite"
    LabelStore.sqlite(path, "p").classes.add(["cat"], annotator="ana")
    hasty = LabelStore(Database.sqlite(path, give_up_s=0.1, busy_timeout_s=0.01), "p")
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(ConflictError, match="busy") as error:
            hasty.append([event("label", 1, 0)])
        assert error.value.code == "STORE_BUSY" and "locked" not in str(error.value)
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()
    assert hasty.append([event("label", 1, 0)])[0].status == "saved" and len(hasty.events()) == 1


def test_a_busy_store_is_tried_again_until_it_is_free(tmp_path, event):
    path = tmp_path / "labels.sqlite"
    LabelStore.sqlite(path, "p").classes.add(["cat"], annotator="ana")
    patient = LabelStore(Database.sqlite(path, busy_timeout_s=0.01), "p")
    blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, lambda: blocker.execute("ROLLBACK"))
    timer.start()
    assert patient.append([event("label", 1, 0)])[0].status == "saved"
    timer.join()
    blocker.close()


def test_a_failed_write_leaves_nothing(store, event):
    before = store.last_seq

    def work(connection):
        schema.lock_project(connection, store.project)
        schema.set_head(connection, store.project, schema.Head(999, ""))
        raise ConflictError("no")

    with pytest.raises(ConflictError, match="no"):
        store.database.write(work)
    assert store.last_seq == before


def test_a_newer_schema_is_refused_and_not_touched(tmp_path):
    LabelStore.sqlite(tmp_path / "labels.sqlite", "p").database.write(
        lambda connection: connection.execute(schema.schema_steps.insert().values(step=999, name="later"))
    )
    with pytest.raises(WorkspaceError, match="newer") as error:
        LabelStore.sqlite(tmp_path / "labels.sqlite", "p")
    assert error.value.code == "NEWER_SCHEMA"


def test_a_newer_schema_is_seen_by_a_store_that_was_open_before(tmp_path, monkeypatch):
    store = LabelStore(shared_sqlite(tmp_path / "labels.sqlite"), "p")
    assert shared_sqlite(tmp_path / "labels.sqlite") is store.database
    newer = len(migrations.STEPS) + 1
    monkeypatch.setitem(migrations.STEPS, newer, lambda connection: None)  # it changes data alone, no table

    LabelStore.sqlite(tmp_path / "labels.sqlite", "p")
    monkeypatch.delitem(migrations.STEPS, newer)
    for _ in range(2):
        with pytest.raises(WorkspaceError, match="newer"):
            store.last_seq  # noqa: B018 - asks the database


def test_a_file_that_was_replaced_is_brought_up_to_date(tmp_path, event):
    path = tmp_path / "labels.sqlite"
    store = LabelStore(shared_sqlite(path), "p")
    path.unlink()
    path.touch()
    store.classes.add(["cat"], annotator="ana")
    assert store.classes.names() == ("cat",)


def test_an_interrupted_step_leaves_no_record_and_runs_again(tmp_path, monkeypatch):
    database = Database.sqlite(tmp_path / "labels.sqlite")
    whole = migrations.STEPS[1]

    def torn(connection):
        whole(connection)
        raise WorkspaceError("torn")

    monkeypatch.setitem(migrations.STEPS, 1, torn)
    with pytest.raises(WorkspaceError, match="torn"):
        LabelStore(database, "p")
    monkeypatch.setitem(migrations.STEPS, 1, whole)
    assert LabelStore(database, "p").last_seq == 0


def test_steps_run_in_order_and_are_recorded(database, monkeypatch):
    LabelStore(database, "steps")
    with database.read() as connection:
        query = sa.select(schema.schema_steps.c.step).order_by(schema.schema_steps.c.step)
        assert connection.execute(query).scalars().all() == list(migrations.STEPS)
    with pytest.raises(ValueError, match="out of order"):
        migrations.migration(len(migrations.STEPS) + 2)(lambda connection: None)


def test_the_store_survives_a_fork(store, event):
    store.append([event("label", 1, 0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if store.append([event("label", 2, 0, event_id="from-child")])[0].status == "saved" else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    store.append([event("label", 3, 0)])
    assert store.labels().ids.tolist() == [1, 2, 3]


def test_labeling_imports_neither_torch_nor_streamlit():
    modules = [
        "store",
        "classes",
        "drawing",
        "leases",
        "agreement",
        "progress_report",
        "import_labels",
        "export_labels",
    ]
    imports = "; ".join(f"import semiprune_core.labeling.{name}" for name in modules)
    check = f"{imports}; import sys; assert not {{'torch', 'streamlit', 'sklearn', 'scipy.stats'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
