"""Labels from and to other tools: nothing swallowed, nothing overwritten silently, nothing taken for a formula."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

from semiprune_core.errors import InvalidDataError, MissingStepError
from semiprune_core.labeling import migrations, schema
from semiprune_core.labeling.events import Event
from semiprune_core.labeling.exchange.csv_files import csv_columns, guess_columns
from semiprune_core.labeling.export_labels import export_csv, export_label_studio, label_studio_config
from semiprune_core.labeling.import_labels import import_csv, import_label_studio, preview_csv, take_reference
from semiprune_core.progress import Collected, Stopped
from semiprune_core.project.pool import export_id, show_id
from semiprune_core.project.spreadsheet import plain_cell, safe_cell

PATHS = ["a/1.png", "a/2.png", "ü b/3 #100%.png", "=cmd.png", "twice.png", "twice.png", "'=odd.png"]


def make_pool(paths=PATHS, labels=(0, 1, -1, 0, 1, 1, 0), class_names=("ant", "bee")):
    ids = np.random.default_rng(1).integers(0, 2**64, len(paths), dtype=np.uint64)
    place = {int(image): position for position, image in enumerate(ids)}
    return SimpleNamespace(
        ids=ids,
        column={"path": pa.array(paths)}.__getitem__,
        class_names=class_names,
        reference_labels=np.array(labels),
        duplicate_of=np.arange(len(paths)),
        positions=lambda wanted: np.array([place.get(int(image), -1) for image in wanted], dtype=np.int64),
    )


@pytest.fixture
def pool():
    return make_pool()


def _settled(store, pool):
    labels, names = store.labels(), {one.class_id: one.name for one in store.classes.all()}
    where = pool.positions(labels.ids)
    return {int(p): names[int(c)] for p, c in zip(where, labels.class_ids)}


def test_a_csv_by_path_or_id_with_everything_odd_listed(store, pool):
    text = "path,image_id,label,annotator\n"
    text += "a/1.png,,cat,\n"  # 2: fine
    text += f",{show_id(pool.ids[1])},dog,ben\n"  # 3: fine, by id
    text += "gone.png,,cat,\n"  # 4: unknown path
    text += "ü b/3 #100%.png,,emu,\n"  # 5: unknown class
    text += "twice.png,,cat,\n"  # 6: two images
    text += ",zzz,cat,\n"  # 7: no id
    text += f",{show_id(5)},cat,\n"  # 8: an id of another pool
    text += "a/1.png,,dog,\n"  # 9: says otherwise than row 2
    text += "a/1.png,,cat,\n"  # 10: says the same
    text += ",,cat,\n"  # 11: names nothing
    text += "=cmd.png,,,\n"  # 12: no label
    text += "=cmd.png,,cat, spaced \n"  # 13: no annotator's name
    result = import_csv(store, pool, text.encode(), annotator="importer")
    assert _settled(store, pool) == {0: "cat", 1: "dog"}
    assert (result.n_rows, result.n_saved, result.n_unchanged) == (12, 2, 1)
    assert [(problem.row, problem.code) for problem in result.problems] == [
        (4, "UNKNOWN_PATH"),
        (5, "UNKNOWN_CLASS"),
        (6, "AMBIGUOUS_PATH"),
        (7, "BAD_IMAGE_ID"),
        (8, "UNKNOWN_IMAGE"),
        (9, "CONTRADICTS"),
        (11, "UNKNOWN_PATH"),
        (12, "UNKNOWN_CLASS"),
        (13, "INVALID_DATA"),
    ]
    assert {held.holder for held in store.held()} == {"importer", "ben"}


def test_an_id_that_a_spreadsheet_took_for_a_number_is_found_by_its_path(store, pool):
    damaged = ("1.23457E+15", "1234567890123450", "5678", "1.2345E+29")
    text = "image_id,path,label\n" + "".join(f"{text},a/{n}.png,cat\n" for n, text in enumerate(damaged))
    result = import_csv(store, pool, text.encode(), annotator="i")
    assert _settled(store, pool) == {0: "cat", 1: "cat"}  # a/1.png and a/2.png; there is no a/0.png and no a/3.png
    assert [(p.row, p.code) for p in result.problems] == [(2, "UNKNOWN_PATH"), (5, "UNKNOWN_PATH")]
    assert result.warnings[0].startswith("4 image ids are damaged")
    other = f"image_id,path,label\n{show_id(0xABCDEF)},a/1.png,dog\n,,\n"  # of another picture, not damaged
    assert import_csv(store, pool, other.encode(), annotator="i").problems[0].code == "UNKNOWN_IMAGE"


def test_missing_classes_can_be_made(store, pool):
    result = import_csv(
        store, pool, b"path,label\na/1.png,emu\na/2.png,cat\n", annotator="i", create_missing_classes=True
    )
    assert result.new_classes == ("emu",) and _settled(store, pool) == {0: "emu", 1: "cat"}


@pytest.mark.parametrize(
    "data",
    [
        "path;label\r\na/1.png;cat\r\n".encode("utf-16"),
        "\ufeffPath\tLabel\na/1.png\tcat\n".encode(),
        b'path,label\n"a/1.png","cat"\n',
        b"path,label\n.\\a\\1.png,cat",
    ],
)
def test_common_ways_to_write_a_csv_are_understood(store, pool, data):
    import_csv(store, pool, data, annotator="i")
    assert _settled(store, pool) == {0: "cat"}


@pytest.mark.parametrize(
    "data, code",
    [
        (b"", "CSV_EMPTY"),
        (b" \n", "CSV_EMPTY"),
        (b"path\na\n", "CSV_NO_PATH_COLUMN"),
        (b"file,label\na,b\n", "CSV_NO_PATH_COLUMN"),
        (b"path,label\nM\xfcller.png,cat\n", "CSV_ENCODING"),
        (b"path,label\n" + b"x" * 200_000 + b",cat\n", "CSV_CELL_TOO_LARGE"),
        (b'path,label\n"a,cat\n', "CSV_DAMAGED"),
    ],
)
def test_a_csv_that_cannot_be_read_is_refused_by_name(store, pool, data, code):
    with pytest.raises(InvalidDataError) as error:
        import_csv(store, pool, data, annotator="i")
    assert error.value.code == code and store.events() == []


def test_an_import_overwrites_only_when_asked(store, pool, event):
    store.append([event("label", int(pool.ids[0]), 1)])
    data = b"path,label\na/1.png,cat\n"
    result = import_csv(store, pool, data, annotator="ana")
    assert [problem.code for problem in result.problems] == ["ALREADY_LABELED"] and _settled(store, pool) == {0: "dog"}
    assert import_csv(store, pool, data, annotator="ana", replace=True).n_saved == 1
    assert _settled(store, pool) == {0: "cat"}
    assert import_csv(store, pool, data, annotator="ana").n_unchanged == 1


def test_every_imported_event_says_who_imported_it(store, pool, event):
    image = int(pool.ids[0])
    store.append([event("label", image, 0, annotator="ben")])
    text = b"path,label,annotator\na/1.png,dog,ben\na/2.png,cat,\n"
    import_csv(store, pool, text, annotator="eve", replace=True)
    assert [(row["annotator"], row["actor"]) for row in store.events()] == [
        ("ben", None),
        ("ben", "eve"),
        ("eve", "eve"),
    ]


def test_imports_of_an_older_store_have_no_importer(store, pool, event):
    import_csv(store, pool, b"path,label\na/1.png,dog\n", annotator="eve")

    def as_before(connection):
        connection.execute(sa.text("ALTER TABLE label_events DROP COLUMN actor"))
        connection.execute(schema.schema_steps.delete().where(schema.schema_steps.c.step >= 3))

    store.database.write(as_before)
    store.database.migrated = None
    migrations.migrate(store.database)
    import_csv(store, pool, b"path,label\na/2.png,dog\n", annotator="eve")
    assert [row["actor"] for row in store.events()] == [None, "eve"]


def test_one_undo_takes_an_import_back(store, event):
    pool = make_pool([f"{number}.png" for number in range(1200)], [0] * 1200)
    text = "path,label\n" + "".join(f"{number}.png,owl\n" for number in range(1200))
    progress = Collected()
    result = import_csv(store, pool, text.encode(), annotator="ana", progress=progress)
    assert len(store.labels().ids) == 1200 and progress.reports[-1]["done"] == 1200
    store.append([event("undo", target=result.last_event_id)])
    assert not len(store.labels().ids)


def test_an_import_can_be_stopped(store):
    pool = make_pool([f"{number}.png" for number in range(1200)], [0] * 1200)
    text = "path,label\n" + "".join(f"{number}.png,owl\n" for number in range(1200))
    with pytest.raises(Stopped):
        import_csv(store, pool, text.encode(), annotator="ana", progress=Collected(stop_after=500))
    assert len(store.labels().ids) == 500


def _hostile_store(store, pool, event):
    names = ["=1+1", "+1", "-1", "@x", "'=x", "a,b", 'q"uote', "ünï"]
    store.classes.add(names, annotator="ana")
    numbers = {one.name: one.class_id for one in store.classes.all()}
    chosen = names[: len(pool.ids)]
    store.append([event("label", int(image), numbers[name]) for image, name in zip(pool.ids, chosen)])
    return dict(enumerate(chosen))


@pytest.mark.parametrize("exact", [True, False])
def test_a_csv_comes_back_as_it_went(store, database, pool, event, tmp_path, exact):
    wanted = _hostile_store(store, pool, event)
    assert export_csv(store, pool, tmp_path / "labels.csv", exact=exact) == len(pool.ids)
    with open(tmp_path / "labels.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image_id"] for row in rows] == [export_id(image) for image in pool.ids]
    cells = [row[name] for row in rows for name in ("path", "label", "annotator")]
    assert any(cell.startswith("=") for cell in cells) == exact
    other = type(store)(database, store.project + "-2")
    result = import_csv(other, pool, (tmp_path / "labels.csv").read_bytes(), annotator="i", create_missing_classes=True)
    if exact:
        assert result.problems == [] and _settled(other, pool) == wanted
        assert import_csv(store, pool, (tmp_path / "labels.csv").read_bytes(), annotator="i").n_unchanged == len(wanted)
    else:  # where the classes are known the guarded names are understood
        other = type(store)(database, store.project + "-3")
        other.classes.add(set(wanted.values()) - {"'=x"}, annotator="i")
        import_csv(other, pool, (tmp_path / "labels.csv").read_bytes(), annotator="i")
        assert _settled(other, pool) == {place: name for place, name in wanted.items() if name != "'=x"}


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_begins_like_a_formula(first):
    assert safe_cell(first + "1") == "'" + first + "1" and plain_cell(safe_cell(first + "1")) == first + "1"


def test_a_path_that_really_begins_with_an_apostrophe_is_found(store, pool):
    import_csv(store, pool, b"path,label\n'=odd.png,cat\n'=cmd.png,dog\n", annotator="i")
    assert _settled(store, pool) == {6: "cat", 3: "dog"}


def test_every_answer_or_the_settled_one(store, pool, event, tmp_path):
    image = int(pool.ids[0])
    store.append([event("label", image, 0), event("label", image, 1, annotator="ben")])
    assert export_csv(store, pool, tmp_path / "x.csv") == 0
    assert export_csv(store, pool, tmp_path / "x.csv", every_answer=True) == 2
    store.append([event("settle", image, 1, annotator="eva")])
    assert export_csv(store, pool, tmp_path / "x.csv") == 1
    assert (tmp_path / "x.csv").read_text().splitlines()[1] == f"{export_id(image)},a/1.png,dog,eva"


def test_label_studio_comes_back_as_it_went(store, database, pool, event, tmp_path):
    wanted = _hostile_store(store, pool, event)
    image = int(pool.ids[0])
    store.append([event("skip", image, annotator="ben"), event("label", image, 3, lead_time_ms=4288)])
    assert export_label_studio(store, pool, tmp_path / "tasks.json") == len(pool.ids)
    tasks = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    assert tasks[2]["data"]["image"] == "/data/local-files/?d=%C3%BC%20b/3%20%23100%25.png"
    first = tasks[0]["annotations"]
    assert first[0]["result"][0] == {
        "id": "r1",
        "from_name": "choice",
        "to_name": "image",
        "type": "choices",
        "value": {"choices": ["=1+1"]},
    }
    assert first[0]["lead_time"] == 4.288 and first[1] == {"result": [], "was_cancelled": True, "ground_truth": False}
    other = type(store)(database, store.project + "-2")
    data = (tmp_path / "tasks.json").read_bytes()
    result = import_label_studio(other, pool, data, annotator="i", create_missing_classes=True)
    assert result.problems == [] and _settled(other, pool) == wanted
    assert {(held.holder, held.action) for held in other.held([image])} == {("ana", "label"), ("ben", "skip")}
    assert 4288 in {row["lead_time_ms"] for row in other.events()}


def _task(image, *choices, **annotation):
    result = [{"from_name": "c", "to_name": "i", "type": "choices", "value": {"choices": list(choices)}}]
    return {"data": {"image": image}, "annotations": [{"result": result, **annotation}]}


def test_label_studios_own_exports_are_read_and_odd_tasks_listed(store, pool):
    tasks = [
        _task("/data/local-files/?d=a/1.png", "cat", completed_by=3, lead_time=1.5),
        _task("/data/local-files/?d=%C3%BC%20b/3%20%23100%25.png", "dog", completed_by={"email": "ben@x.org"}),
        {"image": "a/2.png", "choice": "owl", "id": 7, "annotator": 2, "lead_time": 3.1},  # JSON_MIN
        _task("a/1.png", "cat", "dog"),
        _task("http://elsewhere/1.png", "cat"),
        {"data": {"text": "no image"}},
        {"data": {"image": "a/2.png"}, "annotations": []},
        "nonsense",
        {"data": {"image": "a/2.png"}, "annotations": ["x", {"result": [{"type": "rectanglelabels", "value": {}}]}]},
    ]
    result = import_label_studio(store, pool, json.dumps(tasks).encode(), annotator="i")
    assert _settled(store, pool) == {0: "cat", 1: "owl", 2: "dog"}
    assert {held.holder for held in store.held()} == {"label-studio 3", "ben@x.org", "label-studio 2"}
    assert [(p.row, p.code) for p in result.problems] == [
        (4, "NOT_ONE_CLASS"),
        (5, "UNKNOWN_PATH"),
        (6, "NO_IMAGE"),
        (8, "JSON_SHAPE"),
        (9, "JSON_SHAPE"),
    ]


def test_odd_answers_and_halves_of_letters_are_listed_and_the_rest_is_read(store, pool):
    numbers = [{"type": "choices", "value": {"choices": 5}}] * 2
    tasks = [
        {"data": {"image": "a/1.png"}, "annotations": [{"result": numbers}]},
        {"data": {"image": "a/1.png"}, "annotations": [{"result": 5}]},
        _task("a/\ud800.png", "cat"),
        _task("a/2.png", "cat"),
    ]
    result = import_label_studio(store, pool, json.dumps(tasks).encode(), annotator="i")
    assert [(p.row, p.code) for p in result.problems] == [(1, "NOT_ONE_CLASS"), (3, "UNKNOWN_PATH")]
    assert result.n_saved == 1


@pytest.mark.parametrize(
    "data, code",
    [
        (b"{", "JSON_DAMAGED"),
        (b"{}", "JSON_SHAPE"),
        (b"[" * 100_000, "JSON_DAMAGED"),
        (b"[" + b"9" * 5000 + b"]", "JSON_DAMAGED"),
    ],
)
def test_json_that_is_no_export_is_refused(store, pool, data, code):
    with pytest.raises(InvalidDataError) as error:
        import_label_studio(store, pool, data, annotator="i")
    assert error.value.code == code


def test_the_interface_for_label_studio_escapes_names(store):
    store.classes.add(['<b>"&'], annotator="ana")
    root = ET.fromstring(label_studio_config(store.classes.all()))
    choices = root.findall("./Choices/Choice")
    assert [choice.get("value") for choice in choices] == ["cat", "dog", "owl", '<b>"&']
    assert choices[0].get("hotkey") == "1"


def test_reference_labels_of_the_drawn_subset_and_no_others(store, pool, event):
    with pytest.raises(MissingStepError):
        take_reference(store, pool)
    ids = pool.ids
    store.drawings.draw(pool_hash="h", ids=ids[:4], duplicate_of=np.arange(4), count=4, annotator="ana")
    result = take_reference(store, pool)
    assert _settled(store, pool) == {0: "ant", 1: "bee", 3: "ant"}
    assert [(p.code, p.value) for p in result.problems] == [("NO_REFERENCE", show_id(ids[2]))]
    assert take_reference(store, pool).n_unchanged == 3
    store.append([event("label", int(ids[0]), 0)])
    assert _settled(store, pool)[0] == "cat" and len(store.uniform_labels()) == 3


def test_a_pool_without_reference_labels_says_so(store):
    pool = make_pool(labels=[-1] * len(PATHS))
    store.drawings.draw(pool_hash="h", ids=pool.ids, duplicate_of=np.arange(7), count=4, annotator="ana")
    with pytest.raises(MissingStepError, match="by hand"):
        take_reference(store, pool)


def test_an_events_text_has_limits():
    with pytest.raises(InvalidDataError):
        Event(event_id="x", annotator="a" * 65, action="undo")


def test_a_person_is_not_called_reference_and_one_who_was_is_not_overwritten(store, pool, event):
    with pytest.raises(InvalidDataError, match="stands for the labels that came with the images"):
        event("label", 1, 0, annotator="reference")
    acks = store.append_json(
        [{"event_id": "a", "action": "label", "image_id": show_id(int(pool.ids[0])), "class_id": 0, "force": True}],
        annotator="reference",
    )
    assert acks[0]["status"] == "refused" and not store.events()
    image = int(pool.ids[0])
    store.append([event("label", image, 2, annotator="refer")])
    for table in (schema.events, schema.current):  # as an earlier version let them
        renamed = table.update().filter_by(project=store.project).values(annotator="reference", holder="reference")
        store.database.write(lambda connection, renamed=renamed: connection.execute(renamed))
    store.drawings.draw(
        pool_hash="h", ids=pool.ids, duplicate_of=np.arange(len(pool.ids)), fraction=1.0, annotator="ana"
    )
    assert "ALREADY_LABELED" in [problem.code for problem in take_reference(store, pool).problems]
    assert {held.image_id: held.class_id for held in store.held()}[image] == 2


OTHER_NAMES = b"filename;kind\na/1.png;cat\na/2.png;emu\nelsewhere.png;cat\n"
COLUMNS = {"path": "filename", "label": "Kind"}


def test_columns_of_other_names_are_offered_and_taken_where_named(store, pool):
    assert csv_columns(OTHER_NAMES) == ("filename", "kind")
    assert guess_columns(csv_columns(OTHER_NAMES)) == {"path": "filename"}
    with pytest.raises(InvalidDataError, match="it has: filename, kind"):
        import_csv(store, pool, OTHER_NAMES, annotator="ana")
    with pytest.raises(InvalidDataError, match="no column 'sort'"):
        import_csv(store, pool, OTHER_NAMES, annotator="ana", columns={"path": "filename", "label": "sort"})
    result = import_csv(store, pool, OTHER_NAMES, annotator="ana", columns=COLUMNS)
    assert result.n_saved == 1 and [problem.code for problem in result.problems] == ["UNKNOWN_CLASS", "UNKNOWN_PATH"]


def test_a_preview_counts_and_writes_nothing(store, pool):
    before = len(store.labels().ids)
    found = preview_csv(store, pool, OTHER_NAMES, columns=COLUMNS)
    assert (found.n_rows, found.n_images, found.n_unknown) == (3, 2, 1)
    assert found.per_class == {"cat": 1, "emu": 1} and found.new_classes == ("emu",)
    assert found.n_left == len(PATHS) - 2 and not found.warning
    assert len(store.labels().ids) == before and "emu" not in store.classes.names()


def test_a_file_that_leaves_nothing_unlabeled_is_told(store, pool):
    rows = "".join(f"{show_id(image)},cat\n" for image in pool.ids)
    found = preview_csv(store, pool, f"image_id,label\n{rows}".encode())
    assert found.n_left == 0 and "none is left unlabeled" in found.warning
