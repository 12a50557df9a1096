"""Every entry carries a link to the one before it: what changes on the disk no longer fits, and is named."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa

from semiprune_core.labeling import migrations, schema
from semiprune_core.labeling.checking import check

IDS = np.arange(100, 120, dtype=np.uint64)


def damage(store):
    with store.database.read() as connection:
        return check(connection, store.project)[1]


def execute(store, statement):
    store.database.write(lambda connection: connection.execute(statement))


def rows(store, table):
    with store.database.read() as connection:
        query = sa.select(table).where(table.c.project == store.project).order_by(table.c.seq)
        return [dict(row) for row in connection.execute(query).mappings()]


@pytest.fixture
def labeled(store, event):
    """Classes (1), a drawing (2), labels (3 to 8), an undo (9), a class more (10)."""
    store.drawings.draw(pool_hash="h", ids=IDS, duplicate_of=np.arange(20), fraction=0.5, annotator="ana")
    for number in range(5):
        store.append([event("label", 100 + number, number % 3, event_id=f"{store.project}-{number}")])
    store.append([event("label", 100, 2)])
    store.append([event("undo")])
    store.classes.add(["fox"], annotator="ben")
    return store


def test_an_untouched_store_is_whole_and_every_entry_has_its_own_link(labeled):
    assert damage(labeled) is None
    tables = (schema.events, schema.class_events, schema.drawings)
    entries = sorted((row["seq"], row["link"]) for table in tables for row in rows(labeled, table))
    assert [seq for seq, _ in entries] == list(range(1, 11))
    assert len({link for _, link in entries}) == 10 and {len(link) for _, link in entries} == {32}
    with labeled.database.read() as connection:
        assert schema.head_of(connection, labeled.project) == entries[-1]


def mine(store, table, **where):
    return table.update().filter_by(project=store.project, **where)


CHANGES = {
    "a class of a label": (lambda s: mine(s, schema.events, seq=4).values(class_id=2), 4, "event 4 (label by ana"),
    "its annotator": (lambda s: mine(s, schema.events, seq=5).values(annotator="eve"), 5, "event 5"),
    "its image": (lambda s: mine(s, schema.events, seq=6).values(image_id=119), 6, "event 6"),
    "its time": (lambda s: mine(s, schema.events, seq=6).values(saved_ms=1), 6, "1970"),
    "its link": (lambda s: mine(s, schema.events, seq=7).values(link="0" * 32), 7, "event 7"),
    "an event goes": (lambda s: schema.events.delete().filter_by(project=s.project, seq=5), 5, "event 5 is missing"),
    "a change of classes": (lambda s: mine(s, schema.class_events, seq=1).values(annotator="eve"), 1, "add by eve"),
    "the last entry goes": (lambda s: schema.class_events.delete().filter_by(project=s.project, seq=10), 10, "missing"),
    "a drawing": (lambda s: mine(s, schema.drawings).values(seed=7), 2, "event 2 (draw by ana"),
    "a drawn image": (lambda s: mine(s, schema.drawn, position=3).values(image_id=99), 2, "event 2"),
    "the end of the chain": (lambda s: mine(s, schema.projects).values(link="0" * 32), 10, "last event"),
    "what holds": (lambda s: mine(s, schema.current, image_id=101).values(class_id=2), 4, "0000000000000065"),
    "what held": (lambda s: schema.current.delete().filter_by(project=s.project, image_id=102), 5, "what counts"),
    "what is undone": (lambda s: schema.undone.delete().filter_by(project=s.project), None, "undone"),
    "a class's name": (lambda s: mine(s, schema.classes, class_id=0).values(name="cut"), 10, "the classes"),
    "a merge": (lambda s: mine(s, schema.classes, class_id=0).values(merged_into=1), 10, "the classes"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_changes_is_named_with_the_first_bad_event(labeled, what):
    statement, first_bad, words = CHANGES[what]
    execute(labeled, statement(labeled))
    found = damage(labeled)
    assert found.first_bad == first_bad and words in found.reason


def test_labels_of_a_copied_project_keep_their_chain(labeled):
    from semiprune_core.labeling import LabelStore
    from semiprune_core.labeling.store import _copy

    copy = LabelStore(labeled.database, f"{labeled.project}-copy")
    _copy(labeled, copy)
    copy.classes.add(["elk"], annotator="ana")
    assert damage(copy) is None


def test_the_chain_of_an_older_store_is_made_over_what_is_there(labeled, event):
    before = labeled.events(), labeled.drawings.all()[0].seq

    def as_before(connection):
        for table, *columns in (
            ("label_projects", "link"),
            ("label_events", "link"),
            ("label_class_events", "link", "sheet"),
            ("label_drawings", "link", "seq"),
            ("label_leases", "leased_ms"),
        ):
            for column in columns:
                connection.execute(sa.text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        connection.execute(schema.schema_steps.delete().where(schema.schema_steps.c.step >= 4))

    labeled.database.write(as_before)
    labeled.database.migrated = None
    migrations.migrate(labeled.database)
    assert damage(labeled) is None and labeled.drawings.all()[0].seq == before[1] == 2
    unlinked = [{name: value for name, value in row.items() if name != "link"} for row in before[0]]
    assert [{name: row[name] for name in old} for row, old in zip(labeled.events(), unlinked, strict=True)] == unlinked
    labeled.append([event("label", 103, 1)])
    assert damage(labeled) is None
