"""The pool: fixed order, stable ids, views."""

import numpy as np
import pytest
from PIL import Image

from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project.pool import PoolSettings, export_id, image_id, read_id, show_id
from semiprune_core.project.pool_view import PoolFilter, filter_positions, pool_summary


@pytest.fixture
def pool(class_folder, import_into):
    (class_folder / "dog" / "copy.png").write_bytes((class_folder / "cat" / "001.png").read_bytes())
    return import_into(SourceSpec("folder", str(class_folder)))[0].pool()


def test_ids_are_pinned():
    # (head -c 17 /dev/zero; printf cats/a.png) | sha256sum | cut -c1-16
    assert show_id(image_id(b"\0" * 16, "cats/a.png")) == "481678523d6ed24e"
    assert image_id(b"\0" * 16, "a") != image_id(b"\0" * 16, "b") != image_id(b"\1" * 16, "b")


@pytest.mark.parametrize(
    "text", ["", "zz", "0" * 15, "0" * 17, "ABCDEF0123456789", "i" + "0" * 15, "ii" + "0" * 16, "0x00000000000000"]
)
def test_only_shown_ids_are_read(text):
    with pytest.raises(InvalidDataError, match="16 hex digits"):
        read_id(text)


def test_ids_survive_being_shown():
    for number in (0, 1, 2**64 - 1):
        assert read_id(show_id(number)) == read_id(export_id(number)) == number


def test_positions_find_every_id_and_no_stranger(pool):
    assert pool.positions(pool.ids[::-1]).tolist() == list(range(len(pool)))[::-1]
    assert pool.positions([1, int(pool.ids[4]), 2]).tolist() == [-1, 4, -1]


def test_a_view_keeps_images_rows_and_thumbs_together(pool):
    view = pool.take(np.array([5, 0, 7]))
    assert [view.path(n) for n in range(3)] == [pool.path(n) for n in (5, 0, 7)]
    assert (view.images() == pool.images()[[5, 0, 7]]).all()
    assert view.thumb(1) == pool.thumb(0)
    assert view.positions([pool.ids[7]]).tolist() == [2]


def test_a_missing_split_is_empty(pool):
    empty = pool.split("test")
    assert len(empty) == 0 and empty.images().shape == (0, *pool.images().shape[1:])
    assert empty.reference_labels.tolist() == [] and empty.positions([3]).tolist() == [-1]


def test_the_summary_counts_what_is_there(pool):
    summary = pool_summary(pool)
    assert (summary.n_pool, summary.n_test, summary.n_duplicates) == (21, 0, 1)
    assert summary.class_counts == {"cat": 10, "dog": 11}
    assert summary.formats == [("PNG", "RGB", 21)]
    assert summary.sizes == [(32, 24, 21)]


@pytest.mark.parametrize(
    "wanted, n",
    [
        (PoolFilter(), 21),
        (PoolFilter(label="cat"), 10),
        (PoolFilter(label="no such class"), 0),
        (PoolFilter(split="test"), 0),
        (PoolFilter(only="duplicates"), 2),
        (PoolFilter(only="corrupted"), 0),
        (PoolFilter(path_contains="COPY"), 1),
        (PoolFilter(label="dog", path_contains="00"), 5),
    ],
)
def test_filters_find_what_they_say(pool, wanted, n):
    assert len(filter_positions(pool, wanted)) == n


def test_an_unknown_filter_is_refused(pool):
    with pytest.raises(InvalidSettingError, match="only must be one of"):
        filter_positions(pool, PoolFilter(only="password"))


@pytest.mark.parametrize("bad", [{"size": 33}, {"channels": 2}, {"fit": "zoom"}, {"sise": 32}])
def test_illegal_pool_settings_are_refused(bad):
    with pytest.raises(InvalidSettingError):
        PoolSettings.from_json(bad)


def test_facts_come_in_the_order_asked_for_across_segments_and_row_groups(class_folder, import_into, monkeypatch):
    monkeypatch.setattr("semiprune_core.importing.writer.ROWS_PER_GROUP", 7)
    monkeypatch.setattr("semiprune_core.importing.workers.CHUNK", 4)
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    for number in range(9):
        Image.new("RGB", (20, 20), (number * 20, 0, 0)).save(class_folder / "cat" / f"new{number}.png")
    import_into(SourceSpec("folder", str(class_folder)), project)
    pool = project.pool()
    wanted = [28, 0, 19, 20, 7, 8, 3, 3]
    assert [row["path"] for row in pool.facts(wanted)] == [pool.column("path")[n].as_py() for n in wanted]
    assert pool.facts([], ["path"]) == []
