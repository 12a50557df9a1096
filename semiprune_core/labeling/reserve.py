"""A little disk space that is set aside for labels, so that they are still saved when the disk is full.

It lies where a save needs it and nobody else can take it: free pages inside the store's own file, and a journal that
keeps its size between two transactions (``journal_mode=PERSIST``). A label takes about 400 bytes.
"""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.labeling import schema
from semiprune_core.labeling.database import Database

SET_ASIDE = 1 << 20
"""Bytes in the file, and as many in the journal: some 2,500 labels."""
LEAVE_FREE = 64 << 20
"""Where the disk has less than this left, it is too late."""


def set_space_aside(database: Database) -> None:
    """Fill the reserve up when less than half of it is left. SQLite only: a server looks after its own disk."""
    if not database.is_sqlite or n_free(database) >= SET_ASIDE // 2:
        return
    if shutil.disk_usage(Path(str(database.url.database)).parent).free < LEAVE_FREE:
        return
    table = schema.reserve
    steps = (
        table.delete(),  # what a process that was killed here left
        table.insert().values(filler=sa.func.zeroblob(SET_ASIDE)),
        table.update().values(filler=sa.func.zeroblob(SET_ASIDE)),  # old pages go through the journal, which grows
        table.delete(),  # a transaction of its own: pages that were never written would take no space
    )
    for step in steps:
        database.write(functools.partial(Connection.execute, statement=step))


def n_free(database: Database) -> int:
    """Bytes of the store's file that new entries can take without making it larger."""
    with database.read() as connection:
        pages, size = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("freelist_count", "page_size")
        )
    return int(pages * size)
