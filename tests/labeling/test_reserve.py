"""Labels are saved on a full disk, because a little space is set aside for them."""

from __future__ import annotations

import pytest
from sqlalchemy import event as sa_event

from semiprune_core.errors import DiskFullError
from semiprune_core.labeling import LabelStore, reserve
from semiprune_core.labeling.checking import damage_of
from tests.support.small_disk import mounted


def label(store, event, images):
    return [store.append([event("label", image, 0, expected_version="")])[0].status for image in images]


def opened(path):
    store = LabelStore.sqlite(path, "p")
    store.classes.add(["cat"], annotator="ana")
    return store


@pytest.fixture
def small_disk(tmp_path):
    with mounted(tmp_path / "disk", megabytes=8) as folder:
        yield folder


def fill(folder):
    with open(folder / "others", "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


def test_on_a_full_disk_labels_are_saved_until_the_space_is_used_up(small_disk, event, monkeypatch):
    monkeypatch.setattr(reserve, "LEAVE_FREE", 1 << 20)
    monkeypatch.setattr(reserve, "SET_ASIDE", 64 << 10)
    store = opened(small_disk / "labels.sqlite")
    reserve.set_space_aside(store.database)
    fill(small_disk)
    assert label(store, event, range(100)) == ["saved"] * 100
    with pytest.raises(DiskFullError, match="Free some space"):
        label(store, event, range(100, 2000))
    n_saved = len(store.events())
    assert damage_of(small_disk / "labels.sqlite", "p") is None
    (small_disk / "others").unlink()
    assert label(store, event, range(5000, 5003)) == ["saved"] * 3 and len(store.events()) == n_saved + 3


def test_a_store_whose_file_cannot_grow_takes_labels_into_what_was_set_aside(tmp_path, event):
    store = opened(tmp_path / "labels.sqlite")

    def full(connection, _):  # SQLite itself says that the disk is full
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    with_room = opened(tmp_path / "other.sqlite")
    reserve.set_space_aside(with_room.database)
    for one in (store, with_room):
        sa_event.listen(one.database.engine, "connect", full)
    with pytest.raises(DiskFullError):
        label(store, event, range(300))
    assert label(with_room, event, range(300)) == ["saved"] * 300


def test_space_is_set_aside_once_and_again_when_half_of_it_is_used(tmp_path, event, monkeypatch):
    monkeypatch.setattr(reserve, "SET_ASIDE", 64 << 10)
    store = opened(tmp_path / "labels.sqlite")
    reserve.set_space_aside(store.database)
    size = (tmp_path / "labels.sqlite").stat().st_size
    reserve.set_space_aside(store.database)
    assert (tmp_path / "labels.sqlite").stat().st_size == size and reserve.n_free(store.database) >= 64 << 10
    while reserve.n_free(store.database) >= 32 << 10:
        store.append([event("label", image, 0) for image in range(20)])
    assert (tmp_path / "labels.sqlite").stat().st_size == size
    reserve.set_space_aside(store.database)
    assert reserve.n_free(store.database) >= 64 << 10


def test_a_nearly_full_disk_is_left_alone(tmp_path, monkeypatch):
    store = opened(tmp_path / "labels.sqlite")
    monkeypatch.setattr(reserve, "LEAVE_FREE", 1 << 60)
    reserve.set_space_aside(store.database)
    assert reserve.n_free(store.database) == 0
