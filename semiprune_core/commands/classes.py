"""``classes``: list, add, rename, merge and remove classes, and choose their order, keys and colours."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.commands.labels import ANNOTATOR
from semiprune_core.errors import InvalidSettingError
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling.classes import find_class
from semiprune_core.labeling.progress_report import progress
from semiprune_core.paths import shown
from semiprune_core.project.workspace import Workspace

WANTED = {
    "list": (0, ""),
    "add": (None, "CLASS ..."),
    "rename": (2, "CLASS NAME"),
    "merge": (2, "CLASS INTO"),
    "remove": (1, "CLASS"),
    "order": (None, "CLASS ..."),
    "set": (1, "CLASS --key K --colour #rrggbb"),
}
"""How many classes each action takes (None: at least one), and how it is written."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("what", nargs="?", default="list", choices=tuple(WANTED), help="the action (default: list)")
    parser.add_argument("classes", nargs="*", help="classes, by name or number")
    parser.add_argument("--key", help="add, set: the key to label with; none frees it")
    parser.add_argument("--colour", help="set: a colour, #rrggbb")
    parser.add_argument("--annotator", default=ANNOTATOR, help="who changes them, for the history")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    store = open_store(workspace.project(args.name))
    count, form = WANTED[args.what]
    if (count is None and not args.classes) or (count is not None and len(args.classes) != count):
        raise InvalidSettingError(f"Write: semiprune classes {args.name} {args.what} {form}".rstrip())
    if args.what != "set" and (args.key or args.colour):
        raise InvalidSettingError("--key and --colour belong to: semiprune classes NAME set CLASS")
    sentence = ACTIONS[args.what](args, store)
    counts = progress(store).per_class
    rows: list[dict[str, Any]] = [{**entry.to_json(), "labels": counts[entry.name]} for entry in store.classes.all()]
    text = sentence or _table(rows)
    return Outcome({"project": args.name, "classes": rows}, text)


def _list(args: argparse.Namespace, store: LabelStore) -> str:
    return "" if len(store.classes) else f"No classes yet. Add some: semiprune classes {args.name} add CLASS ..."


def _add(args: argparse.Namespace, store: LabelStore) -> str:
    added = store.classes.add(args.classes, annotator=args.annotator)
    words = [f"Added {len(added.classes):,} {'class' if len(added.classes) == 1 else 'classes'}."]
    if added.existing:
        words.append(f"Already there: {', '.join(shown(name, 40) for name in added.existing)}.")
    return " ".join([*words, *added.warnings])


def _rename(args: argparse.Namespace, store: LabelStore) -> str:
    old = find_class(store, args.classes[0])
    warnings = store.classes.rename(old.class_id, args.classes[1], annotator=args.annotator)
    return " ".join([f"Renamed '{shown(old.name, 60)}'. Its labels and results stay.", *warnings])


def _merge(args: argparse.Namespace, store: LabelStore) -> str:
    source, into = (find_class(store, text) for text in args.classes)
    store.classes.merge(source.class_id, into.class_id, annotator=args.annotator)
    return f"Merged '{shown(source.name, 60)}' into '{shown(into.name, 60)}': its labels, past and future, count there."


def _remove(args: argparse.Namespace, store: LabelStore) -> str:
    unwanted = find_class(store, args.classes[0])
    store.classes.remove(unwanted.class_id, annotator=args.annotator)
    return f"Removed '{shown(unwanted.name, 60)}'."


def _order(args: argparse.Namespace, store: LabelStore) -> str:
    """The named classes first, all others behind them as they were."""
    first = [find_class(store, text).class_id for text in args.classes]
    rest = [entry.class_id for entry in store.classes.all() if entry.class_id not in first]
    store.classes.reorder([*first, *rest], annotator=args.annotator)
    return ""


def _set(args: argparse.Namespace, store: LabelStore) -> str:
    if args.key is None and args.colour is None:
        raise InvalidSettingError(f"Write: semiprune classes {args.name} set {WANTED['set'][1]}")
    chosen = find_class(store, args.classes[0])
    if args.key is not None:
        key = "" if args.key == "none" else args.key
        store.classes.set_key(chosen.class_id, key, annotator=args.annotator)
    if args.colour is not None:
        store.classes.set_colour(chosen.class_id, args.colour, annotator=args.annotator)
    return ""


ACTIONS: dict[str, Callable[[argparse.Namespace, LabelStore], str]] = {
    "list": _list,
    "add": _add,
    "rename": _rename,
    "merge": _merge,
    "remove": _remove,
    "order": _order,
    "set": _set,
}


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'number':>6}  {'key':<3}  {'labels':>7}  name"]
    lines += [
        f"{row['class_id']:>6}  {row['key'] or '-':<3}  {row['labels']:>7,}  {shown(row['name'], 80)}" for row in rows
    ]
    return "\n".join(lines)


COMMANDS.register("classes")(Command("list, add, rename, merge or remove classes", _configure, _run))
