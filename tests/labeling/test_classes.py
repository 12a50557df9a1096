"""Classes: names shown as typed, keys and colours chosen, merges that keep history."""

from __future__ import annotations

import unicodedata

import pytest

from semiprune_core.errors import ConflictError, InvalidDataError, UnknownNameError
from semiprune_core.labeling.classes import (
    DEFAULT_KEYS,
    MAX_CLASSES,
    NEUTRAL,
    PALETTE,
    NewClass,
    class_name,
    read_class_csv,
    read_class_list,
)

HOSTILE = [
    "<script>alert(1)</script>",
    "[a](javascript:alert(1))",
    "=HYPERLINK(1)",
    "-1+1",
    "@x",
    "'; DROP TABLE label_events; --",
    "\u202egnp.exe",
    "CON",
    "dot.",
    "%s {0} $1",
    "👩\u200d🔬",
    "ü" * 127,
    "x" * 255,
    "..",
    "null",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_kept_literally(store, name):
    added = store.classes.add([name], annotator="ana")
    assert added.classes[0].name == name and store.classes.names()[-1] == name


@pytest.mark.parametrize(
    "name", ["", "  ", "a\nb", "a\rb", "a\0b", "a\x1bb", "a\u2028b", "x" * 256, "ü" * 128, "\ud800"]
)
def test_names_that_cannot_be_shown_are_refused_in_words(name):
    with pytest.raises(InvalidDataError) as error:
        class_name(name)
    assert error.value.code == "CLASS_NAME"
    str(error.value).encode()


def test_a_name_has_one_spelling(store):
    name = "Köhler"
    assert class_name(" " + unicodedata.normalize("NFD", name)) == name
    store.classes.add([name], annotator="ana")
    assert store.classes.add([unicodedata.normalize("NFD", name)], annotator="ana").existing == (name,)


def test_keys_and_colours_are_given_out_in_order(store):
    store.classes.add([f"c{number}" for number in range(40)], annotator="ana")
    classes = store.classes.all()
    assert "".join(one.key for one in classes) == DEFAULT_KEYS == "1234567890abcdeghijklmnopqrstuvwxy"
    assert [one.colour for one in classes[:10]] == list(PALETTE) and {one.colour for one in classes[10:]} == {NEUTRAL}


def test_a_name_that_is_there_is_listed_and_case_twins_are_warned_of(store):
    added = store.classes.add(["dog", "Dog"], annotator="ana")
    assert added.existing == ("dog",) and [one.name for one in added.classes] == ["Dog"]
    assert len(added.warnings) == 1 and "upper and lower case" in added.warnings[0]


def test_rename_keeps_labels_and_refuses_a_taken_name(store, event):
    store.append([event("label", 1, 0)])
    assert store.classes.rename(0, "Dog", annotator="ana")
    assert store.snapshot().class_names == ("Dog", "dog", "owl") and store.snapshot().labels.tolist() == [0]
    with pytest.raises(ConflictError, match="merge"):
        store.classes.rename(0, "owl", annotator="ana")
    with pytest.raises(UnknownNameError):
        store.classes.rename(77, "x", annotator="ana")


def test_merged_labels_count_for_the_target_along_a_chain(store, event):
    store.append([event("label", image, image) for image in (0, 1, 2)])
    store.classes.merge(0, 1, annotator="ana")
    store.classes.merge(1, 2, annotator="ana")
    snapshot = store.snapshot()
    assert snapshot.class_names == ("owl",) and snapshot.labels.tolist() == [0, 0, 0]
    assert [row["class_id"] for row in store.events()] == [0, 1, 2]  # what was said stays said
    late = store.append([event("label", 9, 0)])[0]  # a browser that has not heard of it yet
    assert late.status == "saved" and store.labels().class_ids.tolist() == [2, 2, 2, 2]
    for class_id, into in ((0, 2), (2, 1), (2, 2)):
        with pytest.raises((UnknownNameError, InvalidDataError)):
            store.classes.merge(class_id, into, annotator="ana")


def test_a_merge_ends_disagreements_between_the_two(store, event):
    store.append([event("label", 1, 0), event("label", 1, 1, annotator="ben")])
    assert len(store.labels().disputed_ids) == 1
    store.classes.merge(0, 1, annotator="ana")
    assert not len(store.labels().disputed_ids) and store.labels().class_ids.tolist() == [1]


def test_the_name_of_a_merged_class_is_free_again(store):
    store.classes.merge(0, 1, annotator="ana")
    assert store.classes.add(["cat"], annotator="ana").classes[0].class_id == 3


def test_reorder_changes_places_not_numbers(store, event):
    store.append([event("label", 1, 0)])
    store.classes.reorder([2, 0, 1], annotator="ana")
    assert store.classes.names() == ("owl", "cat", "dog") and store.snapshot().labels.tolist() == [1]
    for wrong in ([0, 1], [0, 1, 2, 2], [0, 1, 9]):
        with pytest.raises(ConflictError):
            store.classes.reorder(wrong, annotator="ana")


def test_keys_are_unique_and_never_those_of_actions(store):
    store.classes.set_key(0, "x", annotator="ana")
    store.classes.set_key(1, "", annotator="ana")
    store.classes.set_colour(1, "#ABCDEF", annotator="ana")
    assert [(one.key, one.colour) for one in store.classes.all()][:2] == [("x", PALETTE[0]), ("", "#abcdef")]
    with pytest.raises(ConflictError, match="cat"):
        store.classes.set_key(2, "x", annotator="ana")
    for key in ("f", "z", "?", " ", "ab", "X"):
        with pytest.raises(InvalidDataError):
            store.classes.set_key(2, key, annotator="ana")
    with pytest.raises(InvalidDataError):
        store.classes.set_colour(1, "red; background: url(x)", annotator="ana")


def test_remove_is_for_classes_without_labels_and_numbers_are_not_reused(store, event):
    store.append([event("label", 1, 0), event("undo")])
    with pytest.raises(ConflictError, match="Merge"):
        store.classes.remove(0, annotator="ana")
    store.classes.remove(2, annotator="ana")
    assert store.classes.names() == ("cat", "dog")
    assert store.append([event("label", 1, 2)])[0].status == "refused"
    assert store.classes.add(["owl"], annotator="ana").classes[0].class_id == 3
    store.classes.merge(1, 3, annotator="ana")
    with pytest.raises(ConflictError):
        store.classes.remove(3, annotator="ana")


def test_a_thousand_classes_and_not_one_more(store):
    store.classes.add([f"c{number}" for number in range(MAX_CLASSES - 3)], annotator="ana")
    assert len(store.classes) == MAX_CLASSES
    with pytest.raises(InvalidDataError, match="at most 1,000"):
        store.classes.add(["one more"], annotator="ana")
    assert len(store.classes) == MAX_CLASSES


def test_every_change_is_in_the_history(store):
    store.classes.rename(0, "kitten", annotator="ben")
    store.classes.merge(2, 0, annotator="ana")
    assert [(row["action"], row["annotator"]) for row in store.classes.history()] == [
        ("add", "ana"),
        ("rename", "ben"),
        ("merge", "ana"),
    ]


def test_classes_of_a_list_and_of_a_csv():
    assert [one.name for one in read_class_list("cat\r\n\r\ndog, big\n")] == ["cat", "dog, big"]
    text = '\ufeffpath,Label,key\na.png,cat,k\nb.png,"dog, big",\nc.png,cat,k\n'
    assert read_class_csv(text) == [NewClass("cat", None, "k"), NewClass("dog, big", None, None)]
    with pytest.raises(InvalidDataError, match="it has: path"):
        read_class_csv("path\nx\n")
