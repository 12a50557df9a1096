"""``sample`` and ``labels``: drawing the subset, and labels from and to files."""

from __future__ import annotations

import argparse
import getpass
from pathlib import Path
from typing import Any

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.errors import InvalidSettingError, WorkspaceError
from semiprune_core.labeling import open_store
from semiprune_core.labeling.exchange import (
    ImportResult,
    export_csv,
    export_label_studio,
    import_csv,
    import_label_studio,
    take_reference,
)
from semiprune_core.workspace import Workspace


def _annotator() -> str:
    """Who sits at the terminal."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user's name
        return "command line"


def _configure_sample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fraction", type=float, help="share of the distinct pictures to draw (default: 0.10)")
    size.add_argument("--count", type=int, help="how many to draw instead")
    parser.add_argument("--seed", type=int, default=0, help="the same seed extends an earlier drawing (default: 0)")
    parser.add_argument("--overlap", type=float, default=0.0, help="share that two people label (default: 0)")


def _sample(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    pool = project.pool()
    fraction = 0.10 if args.fraction is None and args.count is None else args.fraction
    drawing = open_store(project).drawings.draw(
        pool_hash=pool.hash,
        ids=pool.ids,
        duplicate_of=pool.duplicate_of,
        fraction=fraction,
        count=args.count,
        seed=args.seed,
        overlap=args.overlap,
        annotator=_annotator(),
    )
    value = {
        "project": project.name,
        "drawing": drawing.drawing_id,
        "images": len(drawing),
        "of": drawing.n_groups,
        "seed": drawing.seed,
        "extends": drawing.extends,
    }
    return Outcome(value, f"Drawing {drawing.drawing_id}: {len(drawing):,} of {drawing.n_groups:,} pictures to label.")


def _configure_labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("import", "export", "reference"), help="what to do")
    parser.add_argument("name", help="the project")
    parser.add_argument("file", nargs="?", type=Path, help="a .csv or, for Label Studio, a .json file")
    parser.add_argument("--annotator", help="whose labels they are where the file does not say (default: you)")
    parser.add_argument("--create-classes", action="store_true", help="make classes that the project does not have")
    parser.add_argument("--replace", action="store_true", help="replace labels that differ")
    parser.add_argument("--exact", action="store_true", help="export byte for byte, without spreadsheet protection")
    parser.add_argument("--every-answer", action="store_true", help="export one row per annotator and image")


def _labels(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    store, pool = open_store(project), project.pool()
    if args.action == "reference":
        return _imported(take_reference(store, pool, progress=console))
    if args.file is None:
        raise InvalidSettingError(f"`semiprune labels {args.action}` needs a FILE ending in .csv or .json.")
    is_json = args.file.suffix.lower() == ".json"
    if args.action == "export":
        if is_json:
            n_rows = export_label_studio(store, pool, args.file)
        else:
            n_rows = export_csv(store, pool, args.file, exact=args.exact, every_answer=args.every_answer)
        return Outcome({"file": str(args.file), "rows": n_rows}, f"{args.file}: {n_rows:,} rows.")
    try:
        data = args.file.read_bytes()
    except OSError as error:
        raise WorkspaceError(f"{args.file} cannot be read: {error.strerror}.", code="NOT_READABLE") from error
    take = import_label_studio if is_json else import_csv
    result = take(
        store,
        pool,
        data,
        annotator=args.annotator or _annotator(),
        create_missing_classes=args.create_classes,
        replace=args.replace,
        progress=console,
    )
    return _imported(result)


def _imported(result: ImportResult) -> Outcome:
    value: dict[str, Any] = {
        "rows": result.n_rows,
        "saved": result.n_saved,
        "unchanged": result.n_unchanged,
        "new_classes": list(result.new_classes),
        "warnings": list(result.warnings),
        "problems": [
            {"row": one.row, "value": one.value, "code": one.code, "message": one.message} for one in result.problems
        ],
    }
    lines = [f"{result.n_saved:,} labels saved, {result.n_unchanged:,} were there already."]
    lines += [f"row {one.row}: {one.message} ({one.value})" for one in result.problems[:20]]
    if len(result.problems) > 20:
        lines.append(f"and {len(result.problems) - 20:,} more rows with problems; --json lists them all")
    return Outcome(
        value, "\n".join(lines), failed=bool(result.n_rows) and not result.n_saved and not result.n_unchanged
    )


COMMANDS.register("sample")(Command("draw the subset to label", _configure_sample, _sample))
COMMANDS.register("labels")(Command("labels from or to a file, or the reference labels", _configure_labels, _labels))
