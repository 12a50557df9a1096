"""Leases: who has which image before them, so that two people do not get the same one.

What one tab of a person has before it, another tab of the same person is not given, unless it takes that over.

A lease ends by itself. An image goes to as many annotators as it needs (one, or two in the overlap): those who have
decided it and those who hold a lease on it count. The whole hand-out is one write transaction.

While several people label, nobody is given, or keeps when asking again, more than a fair share of what is open. Who got
nothing holds a place in the line for a while, so that the others' shares shrink and there is something next time; from
a name that has not asked for as long, what exceeds its share is taken. A name costs nothing to invent, a decision is on
record: all newcomers, names that have not decided anything yet, together have one person's share.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.checks import check_range
from semiprune_core.errors import MissingStepError
from semiprune_core.labeling import schema
from semiprune_core.labeling.events import FIRST_ROUND, check_annotator
from semiprune_core.labeling.schema import in_chunks, signed, unsigned_array
from semiprune_core.project import rights

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore

DEFAULT_TTL_S = 600.0
MAX_LEASE = 1_000
WAITING = -1
"""In the place of an image: somebody waits. No picture's hash is expected to be this number of 64 bits."""
WAITING_S = 240.0
"""Longer than a page takes from one renewal to the next, so that the others give back meanwhile."""


class Share(NamedTuple):
    """A fair share of the images, and how many of it others have left: newcomers have theirs together."""

    most: int
    room: int


class Leases:
    """The leases of a project."""

    def __init__(self, store: LabelStore) -> None:
        self.store = store

    def lease(
        self, annotator: str, n: int = 20, *, ttl_s: float = DEFAULT_TTL_S, drawing_id: int | None = None, tab: str = ""
    ) -> np.ndarray:
        """The next ``n`` images (at most) for this annotator, (n,) uint64 in the drawing's order.

        Without a drawing's number they come from all open drawings, uniform ones first. A ``tab`` gets none that
        another tab of the same annotator has.

        Images the annotator holds already and has not decided come among them and are renewed, so a reload goes on
        where it was. Empty when there is nothing left for this annotator now.
        """
        check_annotator(annotator)
        self._check_rights(annotator)
        check_range("n", n, low=1, high=MAX_LEASE)
        check_range("ttl_s", ttl_s, low=1, high=86_400)

        def work(connection: Connection) -> list[int]:
            schema.lock_project(connection, self.store.project)
            now = self.store.now_ms
            self._follow_clock(connection, now)
            leases = schema.leases
            connection.execute(
                leases.delete().where(leases.c.project == self.store.project, leases.c.expires_ms <= now)
            )
            n_elsewhere = self._n_elsewhere(connection, annotator, tab)
            share = self._fair_share(connection, drawing_id, annotator)
            most = n if share is None else min(n, max(0, share.most - n_elsewhere))
            images = self._next(connection, drawing_id, annotator, most, tab)
            if share and len(images) < most and self._cut_silent(connection, drawing_id, annotator, share.most, now):
                share = self._fair_share(connection, drawing_id, annotator)
                images = self._next(connection, drawing_id, annotator, most, tab)
            images = images[: max(0, share.room - n_elsewhere)] if share else images
            self._hold(connection, annotator, images, now, ttl_s, tab)
            if share:
                self._cut(connection, drawing_id, annotator, min(share))
            if not images and not n_elsewhere:
                self._hold(connection, annotator, [WAITING], now, WAITING_S)
            return images

        return unsigned_array(self.store.database.write(work))

    def renew(
        self, annotator: str, image_ids: Iterable[int], *, ttl_s: float = DEFAULT_TTL_S, tab: str = ""
    ) -> np.ndarray:
        """Hold these images longer; returns those that are still the annotator's, in this ``tab``.

        An expired lease is not revived, and what goes beyond a fair share, the last ones first, is given back.
        """
        check_annotator(annotator)
        self._check_rights(annotator)
        check_range("ttl_s", ttl_s, low=1, high=86_400)
        wanted = [signed(int(image_id)) for image_id in image_ids]

        def work(connection: Connection) -> list[int]:
            schema.lock_project(connection, self.store.project)
            now, leases = self.store.now_ms, schema.leases
            self._follow_clock(connection, now)
            held: set[int] = set()
            for part in in_chunks(wanted):
                query = sa.select(leases.c.image_id).where(
                    leases.c.project == self.store.project,
                    leases.c.annotator == annotator,
                    leases.c.expires_ms > now,
                    leases.c.image_id.in_(part),
                    _is_of(tab),
                )
                held.update(connection.execute(query).scalars())
            mine = [image for image in wanted if image in held]
            share = self._fair_share(connection, None, annotator)
            n_elsewhere = self._n_elsewhere(connection, annotator, tab)
            renewed = mine if share is None else mine[: max(0, min(share) - n_elsewhere)]
            self._hold(connection, annotator, renewed, now, ttl_s, tab)
            for part in in_chunks(mine[len(renewed) :]):
                connection.execute(self._of(annotator).where(leases.c.image_id.in_(part)))
            return renewed

        return unsigned_array(self.store.database.write(work))

    def release(self, annotator: str, image_ids: Iterable[int] | None = None, *, tab: str = "") -> None:
        """Give images back (all of the annotator's where None, or of the ``tab``), so that others get them at once."""
        self._check_rights(annotator)
        leases, mine = schema.leases, self._of(annotator).where(_is_of(tab))
        wanted = None if image_ids is None else [signed(int(image_id)) for image_id in image_ids]

        def work(connection: Connection) -> None:
            schema.lock_project(connection, self.store.project)
            if wanted is None:
                connection.execute(mine)
                return
            for part in in_chunks(wanted):
                connection.execute(mine.where(leases.c.image_id.in_(part)))

        self.store.database.write(work)

    def take_over(self, annotator: str, *, tab: str) -> None:
        """What other tabs of this annotator have before them goes to ``tab``."""
        self._check_rights(annotator)
        leases = schema.leases
        mine = leases.update().where(leases.c.project == self.store.project, leases.c.annotator == annotator)

        def work(connection: Connection) -> None:
            schema.lock_project(connection, self.store.project)
            connection.execute(mine.values(tab=tab))

        self.store.database.write(work)

    def _check_rights(self, annotator: str) -> None:
        """Nobody holds images in another's name."""
        rights.check("label", self.store.project)
        rights.check_own(annotator)

    def n_elsewhere(self, annotator: str, tab: str) -> int:
        """How many images other tabs of this annotator have before them."""
        with self.store.database.read() as connection:
            return self._n_elsewhere(connection, annotator, tab)

    def _n_elsewhere(self, connection: Connection, annotator: str, tab: str) -> int:
        leases, current = schema.leases, schema.current
        is_done = sa.exists().where(
            self._decided(), current.c.image_id == leases.c.image_id, current.c.holder == annotator
        )
        query = sa.select(sa.func.count()).where(
            leases.c.project == self.store.project,
            leases.c.annotator == annotator,
            leases.c.image_id != WAITING,
            leases.c.expires_ms > self.store.now_ms,
            ~_is_of(tab),
            ~is_done,
        )
        return int(connection.execute(query).scalar_one())

    def _of(self, annotator: str) -> sa.Delete:
        leases = schema.leases
        return leases.delete().where(leases.c.project == self.store.project, leases.c.annotator == annotator)

    def _fair_share(self, connection: Connection, drawing_id: int | None, annotator: str) -> Share | None:
        """How many images this annotator may hold at most; None while nobody else has any left to decide."""
        others = self._others(connection, annotator)
        if not others:
            return None
        newcomers = [n_held for is_known, n_held in others if not is_known]
        is_known = connection.execute(sa.select(self._is_known(sa.literal(annotator)))).scalar_one()
        n_shares = len(others) - len(newcomers) + bool(newcomers or not is_known) + bool(is_known)
        share = max(1, -(-self._n_wanting(connection, drawing_id) // n_shares))
        if is_known:
            return Share(share, share)
        return Share(-(-share // (len(newcomers) + 1)), max(0, share - sum(newcomers)))

    def _others(self, connection: Connection, annotator: str) -> list[tuple[bool, int]]:
        """Of everybody else who has images left to decide, or waits for one: whether known, and how many images."""
        project, leases, current = self.store.project, schema.leases, schema.current
        is_done = sa.exists().where(
            self._decided(), current.c.image_id == leases.c.image_id, current.c.holder == leases.c.annotator
        )
        n_held = sa.func.sum(sa.case((leases.c.image_id == WAITING, 0), else_=1))
        query = (
            sa.select(self._is_known(leases.c.annotator), n_held)
            .where(leases.c.project == project, leases.c.annotator != annotator)
            .where(leases.c.expires_ms > self.store.now_ms, ~is_done)
            .group_by(leases.c.annotator)
        )
        return [(bool(is_known), int(n)) for is_known, n in connection.execute(query).fetchall()]

    def _is_known(self, annotator: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        events = schema.events
        return sa.exists().where(events.c.project == self.store.project, events.c.annotator == annotator)

    def _decided(self) -> sa.ColumnElement[bool]:
        current = schema.current
        is_first = current.c.round == FIRST_ROUND
        return (current.c.project == self.store.project) & is_first & current.c.action.is_not(None)

    def _n_wanting(self, connection: Connection, drawing_id: int | None) -> int:
        """How many decisions the open images still need."""
        drawn, current = schema.drawn, schema.current
        numbers = self.store.drawings.open_in(connection) if drawing_id is None else [drawing_id]
        is_decided = self._decided() & (current.c.image_id == drawn.c.image_id)
        n_decided = sa.select(sa.func.count()).where(is_decided).scalar_subquery()
        query = sa.select(sa.func.sum(drawn.c.needs - n_decided)).where(
            drawn.c.project == self.store.project, drawn.c.drawing_id.in_(numbers), n_decided < drawn.c.needs
        )
        return int(connection.execute(query).scalar() or 0)

    def _next(self, connection: Connection, drawing_id: int | None, annotator: str, n: int, tab: str = "") -> list[int]:
        """The first ``n`` images that this annotator may have, of one drawing or of all open ones, each once."""
        numbers = self.store.drawings.open_in(connection) if drawing_id is None else [drawing_id]
        if not numbers:
            raise MissingStepError("No images were drawn yet. Draw the subset to label first.")
        images: dict[int, None] = {}
        for number in numbers:
            if len(images) < n:
                open_images = connection.execute(self._open_images(number, annotator, n, tab))
                images.update(dict.fromkeys(image for (image,) in open_images))
        return list(images)[:n]

    def _hold(
        self, connection: Connection, annotator: str, images: Iterable[int], now: int, ttl_s: float, tab: str = ""
    ) -> None:
        lease = {"project": self.store.project, "annotator": annotator, "leased_ms": now, "tab": tab}
        lease["expires_ms"] = now + int(ttl_s * 1000)
        schema.upsert(connection, schema.leases, [{**lease, "image_id": image} for image in images])

    def _follow_clock(self, connection: Connection, now: int) -> None:
        """Where the clock was set back, a lease made before lasts from now on as long as it was made for."""
        leases = schema.leases
        ahead = leases.update().where(leases.c.project == self.store.project, leases.c.leased_ms > now)
        lasts = leases.c.expires_ms - leases.c.leased_ms
        connection.execute(ahead.values(expires_ms=now + lasts, leased_ms=now))

    def _cut(self, connection: Connection, drawing_id: int | None, annotator: str, share: int) -> bool:
        """Give back what an annotator holds beyond ``share``, the last ones first; whether there was any."""
        leases = schema.leases
        query = sa.select(leases.c.image_id).where(
            leases.c.project == self.store.project, leases.c.annotator == annotator
        )
        held = set(connection.execute(query).scalars())
        mine = [image for image in self._next(connection, drawing_id, annotator, MAX_LEASE) if image in held]
        for part in in_chunks(mine[share:]):
            connection.execute(self._of(annotator).where(leases.c.image_id.in_(part)))
        return len(mine) > share

    def _cut_silent(self, connection: Connection, drawing_id: int | None, annotator: str, share: int, now: int) -> bool:
        """The same for all others that have not been heard of for as long as somebody waits; newcomers lose all."""
        leases = schema.leases
        query = (
            sa.select(leases.c.annotator, self._is_known(leases.c.annotator))
            .where(leases.c.project == self.store.project, leases.c.annotator != annotator)
            .group_by(leases.c.annotator)
            .having(sa.func.max(leases.c.leased_ms) <= now - int(WAITING_S * 1000))
        )
        silent = connection.execute(query).fetchall()
        return sum(self._cut(connection, drawing_id, name, share if known else 0) for name, known in silent) > 0

    def _open_images(self, drawing_id: int, annotator: str, n: int, tab: str) -> sa.Select[Any]:
        drawn, current, leases = schema.drawn, schema.current, schema.leases
        project = self.store.project

        def decided(
            table: sa.FromClause, image: sa.Column[int], holder: sa.ColumnElement[bool]
        ) -> sa.ColumnElement[bool]:
            return sa.and_(
                table.c.project == project,
                table.c.image_id == image,
                table.c.round == FIRST_ROUND,
                table.c.action.is_not(None),
                holder,
            )

        mine, others, theirs = (current.alias(name) for name in ("mine", "others", "theirs"))
        by_me = sa.exists().where(decided(mine, drawn.c.image_id, mine.c.holder == annotator))
        by_others = (
            sa.select(sa.func.count())
            .where(decided(others, drawn.c.image_id, others.c.holder != annotator))
            .scalar_subquery()
        )
        leased = (
            sa.select(sa.func.count())
            .where(
                leases.c.project == project,
                leases.c.image_id == drawn.c.image_id,
                leases.c.annotator != annotator,
                ~sa.exists().where(decided(theirs, leases.c.image_id, theirs.c.holder == leases.c.annotator)),
            )
            .scalar_subquery()
        )
        before_me = sa.exists().where(
            leases.c.project == project,
            leases.c.image_id == drawn.c.image_id,
            leases.c.annotator == annotator,
            leases.c.expires_ms > self.store.now_ms,
            ~_is_of(tab),
        )
        return (
            sa.select(drawn.c.image_id)
            .where(drawn.c.project == project, drawn.c.drawing_id == drawing_id, ~by_me, ~before_me)
            .where(by_others + leased < drawn.c.needs)
            .order_by(drawn.c.position)
            .limit(n)
        )


def _is_of(tab: str) -> sa.ColumnElement[bool]:
    """Leases of this tab, and those of which nobody knows the tab; without a name all are."""
    return schema.leases.c.tab.in_(("", tab)) if tab else sa.true()
