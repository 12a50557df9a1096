"""The tables of ``accounts.sqlite`` in the workspace: who there is, who is logged in, who is what where, and the trail.

accounts            one row per person; an id is never given twice
account_invites     the one open invite of an account: only a hash of its code, and until when
account_sessions    who is logged in: only a hash of the cookie
account_members     roles, per project
account_trail       who did what when; rows are added, and the database refuses to change or remove one
account_schema      the steps that made these tables
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.errors import WorkspaceError
from semiprune_core.labeling.database import Database

VERSION = 1
metadata = sa.MetaData()

schema_steps = sa.Table(
    "account_schema", metadata, sa.Column("step", sa.Integer, primary_key=True, autoincrement=False)
)
accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("folded", sa.String(200), nullable=False, unique=True),  # two ids never differ in case alone
    sa.Column("shown", sa.String(64), nullable=False),
    sa.Column("password", sa.String(200)),  # null until an invite was accepted
    sa.Column("is_admin", sa.Boolean, nullable=False),
    sa.Column("made_ms", sa.BigInteger, nullable=False),
    sa.Column("made_by", sa.String(64), nullable=False),
    sa.Column("closed_ms", sa.BigInteger),
)
invites = sa.Table(
    "account_invites",
    metadata,
    sa.Column("account", sa.String(64), primary_key=True),
    sa.Column("mark", sa.String(64), nullable=False, unique=True),
    sa.Column("expires_ms", sa.BigInteger, nullable=False),
)
sessions = sa.Table(
    "account_sessions",
    metadata,
    sa.Column("mark", sa.String(64), primary_key=True),
    sa.Column("account", sa.String(64), nullable=False, index=True),
    sa.Column("made_ms", sa.BigInteger, nullable=False),
    sa.Column("seen_ms", sa.BigInteger, nullable=False),
    sa.Column("address", sa.String(64), nullable=False),
    sa.Column("browser", sa.String(40), nullable=False),
)
members = sa.Table(
    "account_members",
    metadata,
    sa.Column("project", sa.String(64), primary_key=True),
    sa.Column("account", sa.String(64), primary_key=True),
    sa.Column("role", sa.String(16), nullable=False),
)
trail = sa.Table(
    "account_trail",
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("account", sa.String(64), nullable=False),
    sa.Column("address", sa.String(64), nullable=False),
    sa.Column("project", sa.String(64), nullable=False),
    sa.Column("act", sa.String(40), nullable=False),
    sa.Column("note", sa.String(300), nullable=False),
    sqlite_autoincrement=True,  # a number is never given twice
)
_ONLY_ADDED = """
CREATE TRIGGER account_trail_{word} BEFORE {word} ON account_trail
BEGIN SELECT RAISE(ABORT, 'The trail is only added to.'); END
"""


def prepare(database: Database) -> None:
    """Make the tables where there are none; refuse those of a newer version."""
    with database.read() as connection:
        done = _version(connection)
    if done == 0:
        database.write(_make)
    elif done > VERSION:
        raise WorkspaceError(
            f"{database.shown} was written by a newer SemiPrune Studio (schema {done}, this one knows {VERSION}). "
            "Update SemiPrune Studio; the accounts were not touched.",
            code="NEWER_SCHEMA",
        )


def _version(connection: Connection) -> int:
    if not sa.inspect(connection).has_table(schema_steps.name):
        return 0
    return connection.execute(sa.select(sa.func.max(schema_steps.c.step))).scalar() or 0


def _make(connection: Connection) -> None:
    if _version(connection):
        return
    metadata.create_all(connection)
    for word in ("UPDATE", "DELETE"):
        connection.exec_driver_sql(_ONLY_ADDED.format(word=word))
    connection.execute(schema_steps.insert().values(step=VERSION))
