"""Labels kept for a final test: drawn uniformly, labeled like the others, given to nothing that learns."""

import numpy as np
import pytest
import sqlalchemy as sa

from semiprune_core.errors import InvalidSettingError
from semiprune_core.labeling import Event, LabelStore, migrations, schema
from semiprune_core.labeling.snapshot import LabelsSnapshot

IDS = np.arange(1000, 1200, dtype=np.uint64)


@pytest.fixture
def store(tmp_path):
    store = LabelStore.sqlite(tmp_path / "labels.sqlite", "p")
    store.classes.add(["a", "b"], annotator="ana")
    return store


def draw(store, count, **settings):
    return store.drawings.draw(
        pool_hash="h", ids=IDS, duplicate_of=np.arange(len(IDS)), count=count, annotator="ana", **settings
    )


def label(store, ids):
    store.append(
        [
            Event(event_id=f"e{image}", annotator="ana", action="label", image_id=int(image), class_id=int(image) % 2)
            for image in ids
        ]
    )


def test_a_share_of_the_drawn_labels_is_kept_and_the_store_remembers_which(store):
    drawing = draw(store, 60, final_test=0.1)
    assert drawing.final_mask.sum() == 6
    again = store.drawings.get(drawing.drawing_id)
    assert again.final_test == 0.1 and (again.final_mask == drawing.final_mask).all()
    assert not draw(store, 20, seed=5).final_mask.any()


def test_a_larger_drawing_keeps_a_share_of_what_is_new(store):
    first = draw(store, 60, final_test=0.1)
    second = draw(store, 100)  # as the one that it extends
    assert (second.final_mask[:60] == first.final_mask).all() and second.final_mask[60:].sum() == 4
    assert draw(store, 140, final_test=0).final_mask.sum() == 10


def test_what_may_have_been_learned_from_does_not_become_a_test(store):
    draw(store, 60)
    with pytest.raises(InvalidSettingError, match="Only labels of newly drawn images"):
        draw(store, 60, final_test=0.1)
    later = draw(store, 100, final_test=0.5)
    assert not later.final_mask[:60].any() and later.final_mask[60:].sum() == 20


def test_only_uniformly_drawn_labels_are_kept(store):
    with pytest.raises(InvalidSettingError, match="uniformly"):
        draw(store, 5, method="uncertainty", confidence=np.ones(len(IDS)), final_test=0.1)
    with pytest.raises(InvalidSettingError, match="final_test"):
        draw(store, 60, final_test=0.6)


def test_labels_of_the_final_test_are_in_no_snapshot_but_their_own(store):
    drawing = draw(store, 60, final_test=0.1)
    label(store, IDS[:100])  # more than was drawn
    kept = np.sort(drawing.ids[drawing.final_mask])
    final = store.final_test()
    assert final.ids.tolist() == [image for image in kept if image < 1100] and final.uniform_mask.all()
    for snapshot in (store.snapshot(), store.uniform_labels()):
        assert not np.isin(snapshot.ids, kept).any() and (snapshot.final_ids == kept).all()
    assert len(store.snapshot()) == 100 - len(final) and len(store.labels().ids) == 100


def test_a_copy_of_a_test_image_tells_nothing_either():
    snapshot = LabelsSnapshot(
        IDS[:4], np.array([0, 1, 0, 1]), np.ones(4, bool), ("a", "b"), (1, 2), final_ids=np.array([1010], np.uint64)
    )
    duplicate_of = np.arange(len(IDS))
    duplicate_of[10] = 2  # the image of the test has the same pixels as a labeled one
    labels, uniform = snapshot.on_pool(IDS, duplicate_of)
    assert labels[:4].tolist() == [0, 1, -1, 1] and labels[10] == -1 and not uniform[2]
    assert np.flatnonzero(snapshot.final_mask(IDS, duplicate_of)).tolist() == [2, 10]


def test_a_snapshot_without_a_final_test_has_the_hash_it_had_before(store):
    label(store, IDS[:4])
    snapshot = store.snapshot()
    kept = LabelsSnapshot(
        snapshot.ids, snapshot.labels, snapshot.uniform_mask, snapshot.class_names, snapshot.class_ids, IDS[50:51]
    )
    assert not len(snapshot.final_ids) and kept.hash != snapshot.hash


def test_drawings_of_an_older_store_have_no_final_test(store):
    draw(store, 60)

    def as_before(connection):
        for table, column in (("label_drawings", "final_test"), ("label_drawn", "is_final")):
            connection.execute(sa.text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        connection.execute(schema.schema_steps.delete().where(schema.schema_steps.c.step >= 2))

    store.database.write(as_before)
    store.database.migrated = None
    migrations.migrate(store.database)
    (drawing,) = store.drawings.all()
    assert drawing.final_test == 0 and not drawing.final_mask.any() and len(drawing) == 60
    assert draw(store, 100, final_test=0.1).final_mask.sum() == 4
