"""Progress: what is done, what is left, how fast, and what comes next."""

from __future__ import annotations

import numpy as np
import pytest

from semiprune_core.labeling.progress_report import labels_per_minute, progress


def _draw(store, n, **settings):
    ids = np.arange(n, dtype=np.uint64) + np.uint64(2**63)
    store.drawings.draw(pool_hash="h", ids=ids, duplicate_of=np.arange(n), count=n, annotator="ana", **settings)
    return [int(image) for image in ids]


def test_before_a_drawing_it_says_what_to_do(store):
    found = progress(store)
    assert found.n_drawn == 0 and not found.complete and "Draw" in found.note


def test_counts_add_up_to_the_drawing(store, event):
    ids = _draw(store, 10)
    store.append([event("label", ids[0], 0), event("label", ids[1], 1), event("skip", ids[2]), event("flag", ids[9])])
    store.append([event("label", ids[1], 0, annotator="ben"), event("label", 12345, 2)])
    found = progress(store)
    assert (found.labeled, found.skipped, found.disputed, found.left, found.flagged) == (1, 1, 1, 7, 1)
    assert found.per_class == {"cat": 1, "dog": 0, "owl": 1} and found.thin_classes == ("cat", "dog", "owl")
    assert found.skipped_ids.tolist() == [ids[2]] and found.note == "7 of 10 images are still to be labeled."


def test_a_complete_subset_says_that_the_next_step_is_ready(store, event):
    ids = _draw(store, 6)
    store.append([event("label", image, 0) for image in ids[:5]])
    assert not progress(store).complete
    store.append([event("label", ids[5], 0), event("label", ids[0], 1, annotator="ben")])
    found = progress(store)
    assert not found.complete and "Settle" in found.note
    store.append([event("settle", ids[0], 0, annotator="eva")])
    found = progress(store)
    assert found.complete and "training, is ready" in found.note and "dog, owl" in found.note
    assert found.thin_classes == ("dog", "owl")


def test_the_overlap_waits_for_its_second_annotator(store, event):
    ids = _draw(store, 4, overlap=1.0)
    store.append([event("label", image, 0) for image in ids])
    found = progress(store)
    assert found.overlap_left == 4 and found.complete and "second annotator" in found.note
    store.append([event("label", ids[0], 0, annotator="ben")])
    assert progress(store).overlap_left == 3


def test_all_open_drawings_count_and_each_image_once(store, event):
    ids = np.arange(30, dtype=np.uint64)
    settings = {"pool_hash": "h", "ids": ids, "duplicate_of": np.arange(30), "annotator": "ana"}
    uniform = store.drawings.draw(count=10, **settings).ids
    doubtful = store.drawings.draw(count=5, method="uncertainty", confidence=np.linspace(0, 1, 30), **settings).ids
    store.append([event("label", int(image), 0) for image in doubtful])
    found = progress(store)
    assert (found.n_drawn, found.labeled, found.left) == (15, 5, 10) and not found.complete
    larger = store.drawings.draw(count=25, **settings).ids
    assert progress(store).n_drawn == len(set(larger.tolist()) | set(doubtful.tolist()))
    assert progress(store, drawing_id=2).complete and progress(store, drawing_id=1).left == 10
    store.append([event("label", int(image), 0) for image in larger])
    assert progress(store).complete and set(uniform.tolist()) <= set(larger.tolist())


def test_pace_and_time_left(store, event):
    ids = _draw(store, 50)
    times = [1_000_000 + 2000 * number for number in range(10)]
    store.append([event("label", image, 0, made_ms=at) for image, at in zip(ids, times)])
    found = progress(store, annotator="ana")
    assert found.per_minute == pytest.approx(30) and found.minutes_left == pytest.approx(40 / 30)
    assert progress(store, annotator="ben").per_minute is None


def test_breaks_do_not_count_and_one_decision_has_no_pace():
    assert labels_per_minute(np.array([0, 1000, 2000, 3_600_000, 3_601_000])) == pytest.approx(60)
    assert labels_per_minute(np.array([5])) is None and labels_per_minute(np.array([], dtype=int)) is None
    assert labels_per_minute(np.array([0, 10_000_000])) is None
    assert np.isfinite(labels_per_minute(np.array([7, 7, 7])))


def test_an_import_has_no_pace(store, event):
    _draw(store, 3)
    store.append([event("label", image, 0, source="import") for image in range(50)])
    assert progress(store).per_minute is None
