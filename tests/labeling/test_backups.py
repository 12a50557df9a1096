"""Copies of the label store, and what a damaged one is restored from."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3

import numpy as np
import pytest

from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling import LabelStore, backups, checking, look_after_labels, open_store
from semiprune_core.labeling.checking import copies_of, damage_of
from semiprune_core.labeling.store import store_file
from tests.support.effort import FULL

IDS = np.arange(60, dtype=np.uint64)


def label(store, event, images, annotator="ana"):
    store.append([event("label", image, image % 3, annotator=annotator) for image in images])


def state(store):
    return store.snapshot().hash, store.classes.names(), store.events(), sorted(map(repr, store.held()))


def change(path, statement):
    """Change a store behind its back, as a bad disk does: nothing that SQLite checks notices."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()
    checking.forget(path)


@pytest.fixture
def project(workspace, event):
    """30 labels, a copy, 20 labels more; classes and a drawing before them."""
    project = workspace.create("Pets")
    store = open_store(project)
    store.classes.add(["cat", "dog", "owl"], annotator="ana")
    store.drawings.draw(pool_hash="h", ids=IDS, duplicate_of=np.arange(60), fraction=1.0, annotator="ana")
    label(store, event, range(30))
    assert backups.make_backup(store_file(project), "pets")
    label(store, event, range(30, 50), "ben")
    checking.forget(store_file(project))
    return project


def refused(project):
    with pytest.raises(WorkspaceError, match="damaged") as error:
        open_store(project)
    assert error.value.code == "STORE_DAMAGED" and "semiprune restore pets" in str(error.value)
    return str(error.value)


def test_a_damaged_store_is_refused_until_it_is_restored_and_nothing_is_lost(project):
    path = store_file(project)
    before = state(open_store(project))
    change(path, "UPDATE label_events SET class_id = 2 WHERE seq = 7")
    assert "event 7 (label by ana" in refused(project)
    restored = backups.restore_store(path, "pets")
    assert state(open_store(project)) == before
    assert (restored.n_entries, restored.n_lost) == (52, 0) and restored.copied
    assert restored.aside.exists()  # the damaged one, as it was
    assert damage_of(path, "pets", thorough=True) is None


def test_after_the_copy_what_precedes_the_first_bad_event_is_kept(project):
    path = store_file(project)
    change(path, "UPDATE label_events SET class_id = 1 - class_id WHERE seq = 45")
    refused(project)
    restored = backups.restore_store(path, "pets")
    assert (restored.n_entries, restored.n_lost) == (44, 8)
    assert len(open_store(project).labels().ids) == 42


def test_a_copy_that_is_damaged_too_is_passed_over(project):
    path = store_file(project)
    change(backups.make_backup(path, "pets"), "UPDATE label_events SET class_id = 2 WHERE seq = 7")
    change(path, "UPDATE label_events SET class_id = 1 - class_id WHERE seq = 45")
    restored = backups.restore_store(path, "pets")
    assert (restored.n_entries, restored.n_lost) == (44, 8)


def test_an_index_that_has_lost_a_row_is_noticed(project):
    path = store_file(project)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'label_events_by_annotator'"
        (page,), (size,) = connection.execute(query).fetchone(), connection.execute("PRAGMA page_size").fetchone()
    data = path.read_bytes()
    index = data[(page - 1) * size : page * size].replace(b"petsana", b"petsanb", 1)
    path.write_bytes(data[: (page - 1) * size] + index + data[page * size :])
    assert "SQLite finds: row" in refused(project)


def test_without_a_copy_what_precedes_the_first_bad_event_is_kept(project):
    path = store_file(project)
    shutil.rmtree(path.with_name(checking.COPIES))
    change(path, "UPDATE label_events SET class_id = 2 WHERE seq = 22")
    restored = backups.restore_store(path, "pets")
    assert (restored.n_entries, restored.copied, restored.n_lost) == (21, None, 31)


@pytest.mark.parametrize("way", ["delete", "empty", "overwrite", "cut"])
def test_a_store_that_is_gone_is_no_empty_store(project, way):
    path = store_file(project)
    if way == "delete":
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes({"empty": b"", "overwrite": b"{}", "cut": data[: len(data) // 2]}[way])
    refused(project)
    restored = backups.restore_store(path, "pets")
    assert restored.n_entries >= 32 and len(open_store(project).labels().ids) >= 30


def test_a_store_that_is_emptied_while_it_is_in_use_is_noticed(project):
    open_store(project)
    store_file(project).write_bytes(b"")
    refused(project)


def test_a_store_that_was_replaced_by_an_older_one_is_noticed(project):
    path = store_file(project)
    open_store(project)
    shutil.copyfile(copies_of(path)[0], path.with_name("other"))
    os.replace(path.with_name("other"), path)
    assert "events 33 to 52 are missing" in refused(project)


def test_a_whole_store_is_not_restored_and_one_without_anything_sound_neither(project):
    path = store_file(project)
    with pytest.raises(WorkspaceError, match="whole"):
        backups.restore_store(path, "pets")
    open_store(project)
    shutil.rmtree(path.with_name(checking.COPIES))
    path.write_bytes(b"{}")
    with pytest.raises(WorkspaceError, match="no good copy"):
        backups.restore_store(path, "pets")
    assert path.read_bytes() == b"{}"


def test_an_unchanged_store_is_known_by_its_hash(project, monkeypatch):
    path = store_file(project)
    open_store(project)
    checking.forget(path)
    monkeypatch.setattr(checking, "check", lambda *_: pytest.fail("the chain was walked again"))
    open_store(project)


def test_the_newest_24_copies_are_kept_and_an_unchanged_store_is_not_copied(project, event):
    path = store_file(project)
    store = open_store(project)
    for number in range(25):
        label(store, event, [number])
        assert backups.make_backup(path, "pets")
    assert backups.make_backup(path, "pets") is None
    kept = [checking.last_of(copy) for copy in copies_of(path)]
    assert kept == list(range(77, 53, -1))
    names = {entry.name for entry in path.with_name(checking.COPIES).iterdir()} - {".lock"}
    assert len(names) == 24  # and nothing half made


def test_a_damaged_store_is_not_copied_and_is_then_refused(project):
    path = store_file(project)
    open_store(project)
    change(path, "UPDATE label_events SET class_id = 2 WHERE seq = 7")
    with pytest.raises(WorkspaceError, match="not copied"):
        backups.make_backup(path, "pets")
    assert [checking.last_of(copy) for copy in copies_of(path)] == [32]
    refused(project)


def test_a_copy_beside_the_app_tells_it_of_damage(project, caplog):
    path = store_file(project)
    open_store(project)
    assert backups.copy_here(path, "pets") == 0
    assert [checking.last_of(copy) for copy in copies_of(path)] == [52, 32]
    change(path, "UPDATE label_events SET class_id = 2 WHERE seq = 7")
    checking._sound[path] = checking._Mark(path.stat().st_ino, 0)  # as if it had been sound when it was opened
    backups._quietly(path, "pets")
    assert "not copied" in caplog.text
    refused(project)


def test_a_copy_that_is_always_begun_anew_is_made_in_one_go(project, monkeypatch):
    path = store_file(project)
    monkeypatch.setattr(backups.itertools, "count", lambda: iter([10**6] * 10**3))
    copy = backups.make_backup(path, "pets")
    assert LabelStore.sqlite(copy, "pets").last_seq == 52


def test_saving_starts_a_copy_once_an_hour_and_does_not_wait_for_it(project, event, monkeypatch):
    path, now, started = store_file(project), [1000.0], []

    class Thread:
        def __init__(self, *, target, args, **_):
            self.work = target, args

        def start(self):
            started.append(self.work)

    monkeypatch.setattr(backups.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(backups.threading, "Thread", Thread)
    monkeypatch.setattr(backups, "_due", {})
    shutil.rmtree(path.with_name(checking.COPIES))
    store = open_store(project)
    for seconds in (0, 200, 200, 1000, 2500, 200, 200):  # the first after five minutes
        now[0] += seconds
        label(store, event, [1])
    assert started == [(backups._quietly, (path, "pets"))] * 2
    assert not copies_of(path)


def test_the_start_of_the_app_checks_and_copies_every_project(workspace, project, caplog):
    broken = workspace.create("Broken")
    store = open_store(broken)
    store.classes.add(["cat"], annotator="ana")
    checking.damage_of(store_file(broken), "broken")
    change(store_file(broken), "UPDATE label_classes SET name = 'cut'")
    look_after_labels(workspace)
    assert "broken" in caplog.text and "the classes are not as event 1 left them" in caplog.text
    assert [checking.last_of(copy) for copy in copies_of(store_file(project))] == [52, 32]


@pytest.mark.fault
def test_no_flipped_bit_changes_a_label_in_silence(project):
    path, rng = store_file(project), np.random.default_rng(18)
    sound, data = state(open_store(project)), path.read_bytes()
    silent = n_named = 0
    for _ in range(150 if FULL else 15):
        bad = bytearray(data)
        for place in rng.integers(0, len(bad), rng.choice([1, 1, 3, 20])):
            bad[place] ^= 1 << rng.integers(8)
        shutil.rmtree(path.with_name(checking.COPIES), ignore_errors=True)
        path.write_bytes(bad)
        checking.forget(path)
        if damage_of(path, "pets") is not None:
            n_named += 1
        else:  # bytes that nothing is read from
            silent += state(LabelStore.sqlite(path, "pets")) != sound
    assert silent == 0 and n_named
