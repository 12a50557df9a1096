"""Classes: a stable number each, a name, a place in the order, a colour, a key.

Labels name classes by number, so a renamed class keeps its labels. A merged class stays in the history, and its labels
count for the class it was merged into. Every change is recorded in ``label_class_events``.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core.errors import ConflictError, InvalidDataError, UnknownNameError
from semiprune_core.labeling import chain, schema
from semiprune_core.labeling.class_names import ClassBook
from semiprune_core.labeling.events import check_annotator
from semiprune_core.paths import shown
from semiprune_core.project import rights

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore

MAX_CLASSES = 1_000
MAX_NAME_BYTES = 255
RESERVED_KEYS = frozenset("fz?")  # flag, zoom, help; space, arrows and backspace are no single letters
DEFAULT_KEYS = "1234567890" + "".join(char for char in "abcdefghijklmnopqrstuvwxyz" if char not in RESERVED_KEYS)
# The seven hues of Okabe and Ito (2008) and three darker ones of Paul Tol's "muted" scheme, all told apart by people
# with the common kinds of colour blindness. Black is left to text.
PALETTE = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#d55e00",
    "#56b4e9",
    "#f0e442",
    "#882255",
    "#999933",
    "#332288",
)
NEUTRAL = "#8a8f98"
_COLOUR = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True, slots=True)
class LabelClass:
    """One class; ``key`` is "" when it has none, ``merged_into`` the number of the class that took its labels."""

    class_id: int
    name: str
    position: int
    colour: str
    key: str
    merged_into: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"class_id": self.class_id, "name": self.name, "colour": self.colour, "key": self.key}


@dataclass(frozen=True, slots=True)
class NewClass:
    """A class to add; colour and key are chosen where they are not given."""

    name: str
    colour: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """What came of adding classes: the new ones, the names that were there already, and sentences of warning."""

    classes: tuple[LabelClass, ...]
    existing: tuple[str, ...]
    warnings: tuple[str, ...]


def class_name(text: str) -> str:
    """A class name in its one spelling (NFC, no spaces at its ends), or a sentence why it cannot be one."""
    name = unicodedata.normalize("NFC", text).strip()
    if not name:
        raise InvalidDataError("A class needs a name. Type one.", code="CLASS_NAME")
    bad = next((char for char in name if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")), None)
    if bad is not None:
        raise InvalidDataError(
            f"The class name {shown(name, 60)!r} holds a line break or control character ({unicode_name(bad)}). "
            "Leave it out.",
            code="CLASS_NAME",
        )
    size = len(name.encode("utf-8"))
    if size > MAX_NAME_BYTES:
        raise InvalidDataError(
            f"The class name {shown(name, 40)!r} takes {size} bytes; at most {MAX_NAME_BYTES} fit. Shorten it.",
            code="CLASS_NAME",
        )
    return name


def unicode_name(char: str) -> str:
    return f"U+{ord(char):04X}"


def check_key(key: str) -> None:
    if key and (len(key) > 1 or key not in DEFAULT_KEYS):
        raise InvalidDataError(
            "A class key is one digit or one lower-case letter other than f (which flags) and z (which zooms); "
            f"got {shown(key, 20)!r}.",
            code="CLASS_KEY",
        )


def check_colour(colour: str) -> str:
    if not _COLOUR.fullmatch(colour.lower()):
        raise InvalidDataError(f"A colour is written #rrggbb; got {shown(colour, 20)!r}.", code="CLASS_COLOUR")
    return colour.lower()


def case_twins(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of names that differ only in upper and lower case."""
    first: dict[str, str] = {}
    return [(first[name.casefold()], name) for name in names if first.setdefault(name.casefold(), name) != name]


def read_class_list(text: str) -> list[NewClass]:
    """Classes of a text: one name per line; empty lines are left out.

    >>> [one.name for one in read_class_list("cat\\n\\ndog\\n")]
    ['cat', 'dog']
    """
    return [NewClass(line) for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def read_class_csv(text: str) -> list[NewClass]:
    """Classes of a CSV with a header: ``name`` (or ``class``, ``label``), optional ``colour`` (or ``color``), ``key``.

    A name that comes twice counts once, so a table of labels works too.
    """
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    columns = {(name or "").strip().lower(): name for name in rows.fieldnames or ()}
    column = next((columns[name] for name in ("name", "class", "label") if name in columns), None)
    if column is None:
        header = ", ".join(shown(name, 40) for name in columns if name) or "none"
        raise InvalidDataError(
            f"The CSV needs a column name, class or label; it has: {header}.", code="CSV_NO_NAME_COLUMN"
        )
    colour, key = columns.get("colour", columns.get("color")), columns.get("key")
    found_classes: dict[str, NewClass] = {}
    try:
        for row in rows:
            name = row[column] or ""
            if name.strip():
                found_classes.setdefault(name, NewClass(name, row.get(colour) or None, row.get(key) or None))
    except csv.Error as error:
        raise InvalidDataError(
            f"The CSV cannot be read: {error} (near line {rows.line_num}).", code="CSV_DAMAGED"
        ) from error
    return list(found_classes.values())


def resolve_merges(sheet: Iterable[LabelClass]) -> dict[int, int]:
    """For every merged class, the number of the class its labels count for, along chains of merges."""
    into = {entry.class_id: entry.merged_into for entry in sheet if entry.merged_into is not None}
    resolved = {}
    for class_id in into:
        target = class_id
        while target in into:
            target = into[target]
        resolved[class_id] = target
    return resolved


class ClassSheet:
    """The classes of a project. Every method is one transaction."""

    def __init__(self, store: LabelStore) -> None:
        self.store = store

    def __len__(self) -> int:
        return len(self.all())

    def all(self) -> list[LabelClass]:
        """The classes to label with, in order."""
        with self.store.database.read() as connection:
            return [entry for entry in self.read(connection) if entry.merged_into is None]

    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.all())

    def read(self, connection: Connection) -> list[LabelClass]:
        """All classes in order, merged ones among them, inside a transaction."""
        table = schema.classes
        query = (
            sa.select(
                table.c.class_id, table.c.name, table.c.position, table.c.colour, table.c.key, table.c.merged_into
            )
            .where(table.c.project == self.store.project, ~table.c.removed)
            .order_by(table.c.position, table.c.class_id)
        )
        return [LabelClass(*row) for row in connection.execute(query)]

    def add(self, classes: Iterable[NewClass | str], *, annotator: str) -> Added:
        """Add classes at the end. A name that is there already is left as it is and listed."""
        wanted = [NewClass(given) if isinstance(given, str) else given for given in classes]
        return self._write(annotator, lambda connection: self.add_in(connection, wanted, annotator))

    def add_in(self, connection: Connection, wanted: Sequence[NewClass], annotator: str) -> Added:
        """:meth:`add` inside a write transaction that holds the project's lock."""
        shown_now = [entry for entry in self.read(connection) if entry.merged_into is None]
        by_name = {entry.name: entry for entry in shown_now}
        used_keys = {entry.key for entry in shown_now if entry.key}
        used_colours = {entry.colour for entry in shown_now}
        position = max((entry.position for entry in shown_now), default=-1)
        table = schema.classes
        highest = sa.select(sa.func.max(table.c.class_id)).where(table.c.project == self.store.project)
        number = connection.execute(highest).scalar()
        number = -1 if number is None else int(number)
        new: list[LabelClass] = []
        existing: list[str] = []
        for given in wanted:
            name = class_name(given.name)
            if name in by_name:
                existing.append(name)
                continue
            key = given.key if given.key is not None else next((k for k in DEFAULT_KEYS if k not in used_keys), "")
            check_key(key)
            if key in used_keys:
                raise ConflictError(f"Another class already has the key {key}. Choose another.", code="CLASS_KEY")
            free = [colour for colour in PALETTE if colour not in used_colours]
            colour = check_colour(given.colour) if given.colour else (free[0] if free else NEUTRAL)
            number, position = number + 1, position + 1
            new.append(LabelClass(number, name, position, colour, key))
            by_name[name] = new[-1]
            used_keys |= {key} - {""}
            used_colours.add(colour)
        if len(by_name) > MAX_CLASSES:
            raise InvalidDataError(
                f"A project has at most {MAX_CLASSES:,} classes; this would make {len(by_name):,}. Add fewer.",
                code="TOO_MANY_CLASSES",
            )
        if new:
            connection.execute(table.insert(), [{**_row(self.store.project, entry), "removed": False} for entry in new])
            self._record(connection, annotator, "add", {"classes": [entry.to_json() for entry in new]})
        return Added(tuple(new), tuple(existing), tuple(_twin_warnings(by_name)))

    def rename(self, class_id: int, name: str, *, annotator: str) -> tuple[str, ...]:
        """Give a class another name; returns warnings. A name that is taken is refused (merge the two instead)."""
        new = class_name(name)

        def work(connection: Connection) -> tuple[str, ...]:
            sheet = self._shown(connection)
            old = self._find(sheet, class_id)
            if any(entry.name == new and entry.class_id != class_id for entry in sheet):
                raise ConflictError(
                    f"There is already a class '{shown(new, 60)}'. Choose another name, or merge the two classes.",
                    code="CLASS_EXISTS",
                )
            self._change(connection, class_id, name=new)
            self._record(connection, annotator, "rename", {"class_id": class_id, "from": old.name, "to": new})
            return tuple(_twin_warnings([entry.name for entry in sheet if entry.class_id != class_id] + [new]))

        return self._write(annotator, work)

    def merge(self, class_id: int, into: int, *, annotator: str) -> None:
        """Let all labels of ``class_id``, past and to come, count for ``into``."""
        if class_id == into:
            raise InvalidDataError("A class cannot be merged into itself. Choose another one.", code="CLASS_MERGE")

        def work(connection: Connection) -> None:
            sheet = self._shown(connection)
            self._find(sheet, class_id)
            self._find(sheet, into)
            self._change(connection, class_id, merged_into=into, key="")
            self._record(connection, annotator, "merge", {"class_id": class_id, "into": into})

        self._write(annotator, work)

    def remove(self, class_id: int, *, annotator: str) -> None:
        """Take a class away that no label ever named, and nothing was merged into; its number is not used again."""

        def work(connection: Connection) -> None:
            entry = self._find(self._shown(connection), class_id)
            table = schema.events
            named = sa.select(table.c.seq).where(table.c.project == self.store.project, table.c.class_id == class_id)
            merged = any(other.merged_into == class_id for other in self.read(connection))
            if merged or connection.execute(named.limit(1)).first():
                raise ConflictError(
                    f"The class '{shown(entry.name, 60)}' has labels. Merge it into another class instead.",
                    code="CLASS_IN_USE",
                )
            self._change(connection, class_id, removed=True, key="")
            self._record(connection, annotator, "remove", {"class_id": class_id})

        self._write(annotator, work)

    def reorder(self, class_ids: Sequence[int], *, annotator: str) -> None:
        """Put the classes into this order; it must name each one once."""

        def work(connection: Connection) -> None:
            present = {entry.class_id for entry in self._shown(connection)}
            if set(class_ids) != present or len(class_ids) != len(present):
                raise ConflictError(
                    "The new order does not name each class once: the classes have changed. Reload them.",
                    code="CLASS_ORDER",
                )
            for position, class_id in enumerate(class_ids):
                self._change(connection, class_id, position=position)
            self._record(connection, annotator, "reorder", {"class_ids": list(class_ids)})

        self._write(annotator, work)

    def set_colour(self, class_id: int, colour: str, *, annotator: str) -> None:
        chosen = check_colour(colour)

        def work(connection: Connection) -> None:
            self._find(self._shown(connection), class_id)
            self._change(connection, class_id, colour=chosen)
            self._record(connection, annotator, "colour", {"class_id": class_id, "colour": chosen})

        self._write(annotator, work)

    def set_key(self, class_id: int, key: str, *, annotator: str) -> None:
        """Give a class a key ("" for none); one that another class has is refused."""
        check_key(key)

        def work(connection: Connection) -> None:
            sheet = self._shown(connection)
            self._find(sheet, class_id)
            owner = next((entry for entry in sheet if key and entry.key == key and entry.class_id != class_id), None)
            if owner:
                raise ConflictError(
                    f"The key {key} belongs to the class '{shown(owner.name, 60)}'. Free it there first.",
                    code="CLASS_KEY",
                )
            self._change(connection, class_id, key=key)
            self._record(connection, annotator, "key", {"class_id": class_id, "key": key})

        self._write(annotator, work)

    def book(self) -> ClassBook:
        """All classes under all their names."""
        table = schema.class_events
        renamed = sa.select(table.c.details).where(table.c.project == self.store.project, table.c.action == "rename")
        with self.store.database.read() as connection:
            sheet = self.read(connection)
            former = connection.execute(renamed.order_by(table.c.seq)).scalars().all()
        present = {entry.class_id for entry in sheet}
        known_as = {details["from"]: details["class_id"] for details in former if details["class_id"] in present}
        for entry in sorted(sheet, key=lambda entry: entry.merged_into is None):  # present classes are written last
            known_as[entry.name] = entry.class_id
        names = {entry.class_id: entry.name for entry in sheet}
        first = dict(names)
        for details in reversed(former):
            if details["class_id"] in present:
                first[details["class_id"]] = details["from"]
        created_as = {first[class_id]: class_id for class_id in sorted(present, reverse=True)}
        return ClassBook(names, resolve_merges(sheet), known_as, created_as)

    def history(self) -> list[dict[str, Any]]:
        """Every change of the classes, oldest first."""
        table = schema.class_events
        query = sa.select(table).where(table.c.project == self.store.project).order_by(table.c.seq)
        with self.store.database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _shown(self, connection: Connection) -> list[LabelClass]:
        return [entry for entry in self.read(connection) if entry.merged_into is None]

    def _find(self, sheet: Sequence[LabelClass], class_id: int) -> LabelClass:
        for entry in sheet:
            if entry.class_id == class_id:
                return entry
        raise UnknownNameError(
            f"There is no class with the number {class_id}: it was merged or removed. Reload the classes.",
            code="NO_CLASS",
        )

    def _change(self, connection: Connection, class_id: int, **values: Any) -> None:
        table = schema.classes
        mine = (table.c.project == self.store.project) & (table.c.class_id == class_id)
        connection.execute(table.update().where(mine).values(**values))

    def _record(self, connection: Connection, annotator: str, action: str, details: Mapping[str, Any]) -> None:
        project = self.store.project
        head = schema.lock_project(connection, project)
        row: dict[str, Any] = {
            "project": project,
            "seq": head.seq + 1,
            "saved_ms": self.store.now_ms,
            "annotator": annotator,
            "action": action,
            "details": dict(details),
            "sheet": chain.sheet_of(connection, project),
        }
        row["link"] = chain.link_of_class_event(head.link, row)
        connection.execute(schema.class_events.insert().values(row))
        schema.set_head(connection, project, schema.Head(row["seq"], row["link"]))

    def _write(self, annotator: str, work: Callable[[Connection], Any]) -> Any:
        check_annotator(annotator)
        rights.check("classes", self.store.project)

        def locked(connection: Connection) -> Any:
            schema.lock_project(connection, self.store.project)
            return work(connection)

        return self.store.database.write(locked)


def find_class(store: LabelStore, text: str) -> LabelClass:
    """The class of this name, or else of this number."""
    sheet = store.classes.all()
    for entry in (*(entry for entry in sheet if entry.name == text), *sheet):
        if text in (entry.name, str(entry.class_id)):
            return entry
    names = ", ".join(shown(entry.name, 40) for entry in sheet[:20]) or "none"
    raise UnknownNameError(f"There is no class '{shown(text, 60)}'. Classes: {names}.", code="NO_CLASS")


def _row(project: str, entry: LabelClass) -> dict[str, Any]:
    return {
        "project": project,
        "class_id": entry.class_id,
        "name": entry.name,
        "position": entry.position,
        "colour": entry.colour,
        "key": entry.key,
        "merged_into": entry.merged_into,
    }


def _twin_warnings(names: Iterable[str]) -> list[str]:
    return [
        f"The classes '{shown(first, 60)}' and '{shown(second, 60)}' differ only in upper and lower case."
        for first, second in case_twins(names)
    ]
