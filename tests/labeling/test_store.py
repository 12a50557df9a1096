"""Events in, current labels out: idempotence, conflicts, undo, what counts, what is uniform."""

from __future__ import annotations

import os
import random
from collections import defaultdict

import numpy as np
import pytest

from semiprune_core.errors import InvalidDataError
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.snapshot import LabelsSnapshot
from semiprune_core.project.pool import show_id

BIG = 2**64 - 1


def test_a_label_is_saved_and_found_again(store, event):
    ack = store.append([event("label", BIG, 1, event_id="a", expected_version="", lead_time_ms=900)])[0]
    assert (ack.status, ack.version) == ("saved", "a")
    labels = store.labels()
    assert labels.ids.tolist() == [BIG] and labels.class_ids.tolist() == [1]


def test_a_repeated_event_changes_nothing(store, event):
    first = event("label", 5, 0, expected_version="")
    store.append([first])
    before, seq = store.events(), store.last_seq
    assert [ack.status for ack in store.append([first, first])] == ["already", "already"]
    assert store.events() == before and store.last_seq == seq


def test_an_event_twice_in_one_append_is_saved_once(store, event):
    one = event("label", 5, 0, expected_version="")
    assert [ack.status for ack in store.append([one, one])] == ["saved", "already"]
    assert len(store.events()) == 1


def test_a_used_event_id_for_something_else_is_refused(store, event):
    store.append([event("label", 5, 0, event_id="x", expected_version="")])
    ack = store.append([event("label", 6, 1, event_id="x", expected_version="")])[0]
    assert ack.status == "refused" and "this id" in ack.reason
    assert store.labels().ids.tolist() == [5]


def test_the_second_of_two_tabs_is_told_and_overwrites_nothing(store, event):
    store.append([event("label", 7, 0, event_id="tab1", expected_version="")])
    ack = store.append([event("label", 7, 1, event_id="tab2", expected_version="")])[0]
    assert ack.status == "conflict"
    assert (ack.current.annotator, ack.current.class_id, ack.current.version) == ("ana", 0, "tab1")
    assert ack.current.saved_ms == store.now_ms
    assert store.labels().class_ids.tolist() == [0] and len(store.events()) == 1


def test_replace_anyway_goes_through_under_the_same_id(store, event):
    store.append([event("label", 7, 0, expected_version="")])
    store.append([event("label", 7, 1, event_id="tab2", expected_version="")])
    ack = store.append([event("label", 7, 1, event_id="tab2", expected_version="", force=True)])[0]
    assert ack.status == "saved" and store.labels().class_ids.tolist() == [1]
    assert store.events()[-1]["forced"]


def test_the_same_answer_from_two_tabs_is_no_conflict(store, event):
    store.append([event("label", 7, 0, expected_version="")])
    assert store.append([event("label", 7, 0, expected_version="")])[0].status == "saved"


def test_a_correction_may_name_an_event_of_the_same_append(store, event):
    first = event("label", 7, 0, event_id="one", expected_version="")
    second = event("label", 7, 1, event_id="two", expected_version="one")
    assert [ack.status for ack in store.append([first, second])] == ["saved", "saved"]
    assert store.labels().class_ids.tolist() == [1]


def test_two_annotators_do_not_overwrite_each_other(store, event):
    store.append([event("label", 7, 0, expected_version="")])
    store.append([event("label", 7, 1, expected_version="", annotator="ben")])
    assert {(held.holder, held.class_id) for held in store.held([7])} == {("ana", 0), ("ben", 1)}
    labels = store.labels()
    assert not len(labels.ids) and labels.disputed_ids.tolist() == [7]


def test_an_unknown_class_is_refused_and_the_rest_is_saved(store, event):
    acks = store.append([event("label", 1, 99), event("label", 2, 0)])
    assert [ack.status for ack in acks] == ["refused", "saved"] and "99" in acks[0].reason


def test_skip_is_a_decision_without_a_label(store, event):
    store.append([event("skip", 3, expected_version="")])
    assert not len(store.labels().ids) and store.held([3])[0].action == "skip"


def test_flags_stand_beside_the_label(store, event):
    store.append([event("label", 3, 2), event("flag", 3)])
    assert store.flagged_ids().tolist() == [3] and store.labels().class_ids.tolist() == [2]
    store.append([event("unflag", 3)])
    assert not len(store.flagged_ids())


# --- undo and redo ---------------------------------------------------------------------------------------------------


def test_undo_goes_back_step_by_step_and_redo_forward(store, event):
    store.append([event("label", 1, 0), event("label", 1, 1), event("skip", 2)])
    seen = []
    for action in ("undo", "undo", "undo", "redo", "redo", "redo"):
        assert store.append([event(action)])[0].status == "saved"
        state = {held.image_id: (held.action, held.class_id) for held in store.held([1, 2])}
        seen.append((state[1], state[2][0]))
    none, cat, dog = (None, None), ("label", 0), ("label", 1)
    assert seen == [(dog, None), (cat, None), (none, None), (cat, None), (dog, None), (dog, "skip")]


def test_undo_works_in_a_later_session(store, event):
    store.append([event("label", 1, 0)])
    later = LabelStore(store.database, store.project)
    later.append([event("undo")])
    assert not len(later.labels().ids)


def test_nothing_to_undo_or_redo_is_refused_with_a_sentence(store, event):
    acks = store.append([event("undo"), event("redo")])
    assert [ack.status for ack in acks] == ["refused", "refused"] and "nothing" in acks[0].reason


def test_a_new_decision_ends_what_a_bare_redo_may_bring_back(store, event):
    store.append([event("label", 1, 0), event("undo"), event("label", 2, 1)])
    assert store.append([event("redo")])[0].status == "refused"


def test_undo_takes_back_a_whole_bulk_action_and_redo_brings_it_back(store, event):
    store.append([event("label", 1, 2)])
    store.append([event("label", image, 0, group_id="bulk") for image in range(1, 601)])
    ack = store.append([event("undo")])[0]
    assert len(ack.touched) == 600
    assert store.labels().ids.tolist() == [1] and store.labels().class_ids.tolist() == [2]
    store.append([event("redo")])
    assert len(store.labels().ids) == 600 and set(store.labels().class_ids.tolist()) == {0}


def test_undo_of_a_named_event_that_was_overtaken_is_a_conflict(store, event):
    store.append([event("label", 1, 0, event_id="old"), event("label", 1, 1, event_id="new")])
    ack = store.append([event("undo", target="old")])[0]
    assert ack.status == "conflict" and ack.current.version == "new"


def test_undo_twice_of_the_same_event_is_refused_and_only_its_owner_may(store, event):
    store.append([event("label", 1, 0, event_id="mine")])
    assert store.append([event("undo", target="mine", annotator="ben")])[0].status == "refused"
    assert store.append([event("undo", target="mine")])[0].status == "saved"
    assert store.append([event("undo", target="mine")])[0].status == "refused"


def test_a_bare_undo_never_takes_back_an_import(store, event):
    store.append([event("label", 1, 0), event("label", 2, 0, source="import", group_id="imported")])
    store.append([event("undo")])
    assert store.labels().ids.tolist() == [2]


# --- replay ----------------------------------------------------------------------------------------------------------


def _slow_twin(rows):
    """What holds, by looking through all events for every place: the rule written out, nothing kept."""
    done = {}
    for row in rows:
        if row["action"] not in ("undo", "redo"):
            done[row["seq"]] = True
            continue
        target = next(other for other in rows if other["event_id"] == row["target"])
        for other in rows:
            in_group = target["group_id"] and other["group_id"] == target["group_id"]
            same = in_group and other["annotator"] == target["annotator"]
            if other["seq"] < row["seq"] and other["seq"] in done and (other is target or same):
                done[other["seq"]] = row["action"] == "redo"
    held = defaultdict(lambda: (None, None))
    for row in rows:
        if row["action"] not in ("undo", "redo"):
            place = (row["image_id"], row["round"], row["holder"])
            held[place] = (row["action"], row["class_id"]) if done[row["seq"]] else held[place]
    return dict(held)


def _random_events(rng, event, saved):
    batch = []
    for _ in range(rng.randint(1, 4)):
        who = rng.choice(["ana", "ben"])
        kind = rng.choice(["label"] * 5 + ["skip", "flag", "unflag", "settle", "undo", "undo", "redo", "again", "bulk"])
        image = rng.choice([1, 2, 3, BIG])
        source = rng.choice(["person", "person", "review", "import"])
        if kind in ("undo", "redo"):
            target = rng.choice([None, None, rng.choice(saved)]) if saved else None
            batch.append(event(kind, annotator=who, target=target, force=rng.random() < 0.5))
        elif kind == "again" and batch:
            batch.append(batch[-1])
        elif kind == "bulk":
            group = rng.choice(["g1", "g2"])
            batch += [event("label", i, rng.randint(0, 2), annotator=who, group_id=group) for i in (1, 2, 3)]
        elif kind in ("label", "settle"):
            expected = rng.choice([None, "", *saved[-3:]])
            batch.append(event(kind, image, rng.randint(0, 3), annotator=who, source=source, expected_version=expected))
        elif kind != "again":
            batch.append(event(kind, image, annotator=who))
    return batch


@pytest.mark.parametrize("seed", range(40 if os.environ.get("SEMIPRUNE_FULL") else 3))
def test_what_holds_always_equals_a_replay_of_the_events(store, event, seed):
    rng = random.Random(seed)
    saved: list[str] = []
    for _ in range(25):
        acks = store.append(_random_events(rng, event, saved))
        saved += [ack.event_id for ack in acks if ack.status == "saved"]
    kept = sorted(store.held(), key=repr)
    assert {(h.image_id, h.round, h.holder): (h.action, h.class_id) for h in kept} == _slow_twin(store.events())
    store.rebuild()
    assert sorted(store.held(), key=repr) == kept
    seqs = [row["seq"] for row in store.events()]
    assert seqs == sorted(set(seqs)) and len({row["event_id"] for row in store.events()}) == len(seqs)


# --- what counts -----------------------------------------------------------------------------------------------------


def test_settling_decides_a_disagreement_and_undo_reopens_it(store, event):
    store.append([event("label", 7, 0), event("label", 7, 1, annotator="ben")])
    store.append([event("settle", 7, 1, annotator="eva", expected_version="")])
    assert store.labels().class_ids.tolist() == [1]
    second = store.append([event("settle", 7, 0, annotator="ana", expected_version="")])[0]
    assert second.status == "conflict" and second.current.annotator == "eva"
    store.append([event("undo", annotator="eva")])
    assert store.labels().disputed_ids.tolist() == [7]


def test_a_persons_label_wins_over_a_reference_label(store, event):
    store.append([event("label", 1, 0, annotator="reference", source="reference"), event("label", 1, 2)])
    store.append([event("label", 2, 0, annotator="reference", source="reference")])
    labels = store.labels()
    assert labels.class_ids.tolist() == [2, 0] and labels.by_person_mask.tolist() == [True, False]


def _draw(store, ids, **settings):
    values = {"count": len(ids), "seed": 0, "annotator": "ana", **settings}
    array = np.array(ids, dtype=np.uint64)
    return store.drawings.draw(pool_hash="h", ids=array, duplicate_of=np.arange(len(ids)), **values)


def test_only_uniformly_drawn_labels_made_without_a_suggestion_are_uniform(store, event):
    _draw(store, [1, 2, BIG])
    store.append([event("label", image, 0) for image in (1, 2, 9, BIG)])
    store.append([event("label", 2, 1, source="review")])
    snapshot = store.snapshot()
    assert snapshot.ids.tolist() == [1, 2, 9, BIG] and snapshot.labels.tolist() == [0, 1, 0, 0]
    assert snapshot.uniform_mask.tolist() == [True, False, False, True]
    uniform = store.uniform_labels()
    assert uniform.ids.tolist() == [1, 2, BIG] and uniform.labels.tolist() == [0, 0, 0]


def test_the_snapshots_hash_follows_the_labels_and_nothing_else(store, event):
    store.append([event("label", 1, 0), event("label", 2, 1)])
    before = store.snapshot().hash
    store.append([event("flag", 1), event("skip", 3)])
    assert store.snapshot().hash == before
    store.append([event("label", 2, 2)])
    assert store.snapshot().hash != before
    store.append([event("undo")])
    assert store.snapshot().hash == before


def test_copies_of_a_labeled_picture_get_its_label():
    snapshot = LabelsSnapshot(
        np.array([10, 30, 31], np.uint64), np.array([2, 0, 1]), np.array([True, False, False]), ("a", "b", "c")
    )
    ids = np.array([20, 10, 11, 31, 30, 40], np.uint64)
    labels, uniform = snapshot.on_pool(ids, np.array([0, 1, 1, 3, 3, 5]))
    assert labels.tolist() == [-1, 2, 2, 1, 1, -1]  # 31 comes first in the pool, so its label is the group's
    assert uniform.tolist() == [False, True, True, False, False, False]


def test_an_empty_store_has_an_empty_snapshot(database):
    store = LabelStore(database, "empty-one")
    assert len(store.snapshot()) == 0 and len(store.labels().ids) == 0 and store.last_seq == 0
    assert store.snapshot().on_pool(np.array([1], np.uint64), np.array([0]))[0].tolist() == [-1]


def test_projects_in_one_database_never_see_each_other(store, event):
    _draw(store, [1, 2])
    store.append([event("label", 1, 0, event_id="same"), event("flag", 1)])
    other = LabelStore(store.database, store.project + "-b", clock=store.clock)
    assert other.events() == [] and other.held() == [] and other.classes.all() == [] and other.drawings.all() == []
    assert not len(other.flagged_ids()) and not len(other.snapshot())
    assert other.append([event("undo", target="same")])[0].status == "refused"
    other.classes.add(["ant"], annotator="ana")
    assert other.append([event("label", 1, 0, event_id="same", expected_version="")])[0].status == "saved"
    other.rebuild()
    other.leases.release("ana")
    assert store.labels().ids.tolist() == [1] and store.snapshot().class_names == ("cat", "dog", "owl")
    assert other.snapshot().class_names == ("ant",)


# --- the browser's form ----------------------------------------------------------------------------------------------


def test_a_posted_batch_is_answered_item_by_item(store):
    good = {"event_id": "g", "action": "label", "image_id": show_id(BIG), "class_id": 1.0, "expected_version": ""}
    answers = store.append_json([{"event_id": "b", "action": "label"}, good, 7], annotator="ana")
    assert [answer["status"] for answer in answers] == ["refused", "saved", "refused"]
    assert answers[1]["current"]["image_id"] == show_id(BIG) and answers[1]["version"] == "g"
    assert store.labels().ids.tolist() == [BIG]


@pytest.mark.parametrize(
    "change",
    [
        {"annotator": "eve"},
        {"image_id": 5},
        {"image_id": "xyz"},
        {"class_id": "1"},
        {"class_id": True},
        {"class_id": 2**40},
        {"class_id": -1},
        {"lead_time_ms": float("nan")},
        {"lead_time_ms": -1},
        {"action": "drop"},
        {"source": "reference"},
        {"event_id": ""},
        {"event_id": "x" * 65},
        {"event_id": "a\nb"},
        {"expected_version": None},
        {"force": "yes"},
        {"class_id": None},
        {"group_id": 3},
    ],
)
def test_a_malformed_event_is_refused_in_words_and_writes_nothing(store, change):
    good = {"event_id": "g", "action": "label", "image_id": show_id(1), "class_id": 1, "expected_version": ""}
    answer = store.append_json([{**good, **change}], annotator="ana")[0]
    assert answer["status"] == "refused" and len(answer["reason"]) > 10
    assert store.events() == []


def test_recent_decisions_are_newest_first_and_without_the_undone(store, event):
    store.append([event("label", image, 0) for image in range(12)] + [event("undo"), event("flag", 3)])
    assert [held.image_id for held in store.recent("ana")] == list(range(10, 0, -1))
    assert store.recent("ben") == []


def test_too_many_events_at_once_are_refused(store, event):
    with pytest.raises(InvalidDataError, match="5000"):
        store.append([event("flag", 1)] * 5001)
    assert store.append([]) == []
