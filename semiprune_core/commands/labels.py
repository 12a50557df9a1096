"""``sample``, ``labels``: draw the subset to label; import and export labels."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.errors import InvalidSettingError, WorkspaceError
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling.classes import find_class
from semiprune_core.labeling.drawing import DRAW_METHODS, FINAL_TEST, draw_count, has_test_labels
from semiprune_core.labeling.exchange.pictures import export_answers, picture_note, served_pictures
from semiprune_core.labeling.export_labels import export_csv
from semiprune_core.labeling.import_labels import (
    ImportPreview,
    ImportResult,
    import_csv,
    import_label_studio,
    preview_csv,
    take_reference,
)
from semiprune_core.paths import shown
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Workspace
from semiprune_core.trust.similarity import draw_evidence

SHOWN_PROBLEMS = 10
ANNOTATOR = "command line"


def _configure_sample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fraction", type=float, help="share of the pool to label (default: 0.10)")
    size.add_argument("--count", type=int, help="number of images to label")
    parser.add_argument("--seed", type=int, default=0, help="the same seed extends an earlier drawing")
    parser.add_argument(
        "--method",
        choices=("uniform", *DRAW_METHODS),
        default="uniform",
        help="coverage spreads over similar images, uncertainty picks what the trained model is least sure of, unlike "
        "what is farthest from the labeled images, near what is like a class; all of them depart from the paper, and "
        "their labels give no unbiased estimates",
    )
    parser.add_argument("--near", metavar="CLASS", help="a class with few labels: draw images like its own")
    parser.add_argument("--overlap", type=float, default=0.0, help="share of the images that two annotators label")
    parser.add_argument(
        "--final-test",
        type=float,
        nargs="?",
        const=FINAL_TEST,
        metavar="SHARE",
        help=f"keep this share of the labels (default: {FINAL_TEST:g}) for a final test: only evaluations use them, "
        "nothing learns from them",
    )


def _sample(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    store, pool = _opened(workspace, args.name)
    method = "near" if args.near is not None and args.method == "uniform" else args.method
    if (args.near is not None) != (method == "near"):
        raise InvalidSettingError("--near CLASS and --method near belong together.")
    if args.final_test and has_test_labels(workspace.project(args.name)):
        raise InvalidSettingError(
            "This project came with labeled test images, and evaluations test on those. Leave out --final-test."
        )
    leaders = int((pool.duplicate_of == np.arange(len(pool))).sum())
    fraction = None if args.count is not None else (0.10 if args.fraction is None else args.fraction)
    evidence = draw_evidence(
        workspace.project(args.name),
        pool,
        method,
        count=draw_count(leaders, fraction=fraction, count=args.count),
        near=None if args.near is None else find_class(store, args.near).class_id,
    )
    drawing = store.drawings.draw(
        pool_hash=pool.hash,
        ids=pool.ids,
        duplicate_of=pool.duplicate_of,
        fraction=fraction,
        count=args.count,
        seed=args.seed,
        method=method,
        overlap=args.overlap,
        final_test=args.final_test,
        annotator=ANNOTATOR,
        features=evidence.get("features"),
        confidence=evidence.get("confidence"),
        order=evidence.get("order"),
    )
    value = {
        "project": args.name,
        "drawing": drawing.drawing_id,
        "images": len(drawing),
        "of": drawing.n_groups,
        "seed": drawing.seed,
        "method": drawing.method,
        "uniform": drawing.uniform,
        "extends": drawing.extends,
        "final_test": int(drawing.final_mask.sum()),
    }
    words = f"Drawing {drawing.drawing_id}: {len(drawing):,} of {drawing.n_groups:,} images to label."
    if value["final_test"]:
        words += f" {value['final_test']:,} of their labels are kept for the final test."
    return Outcome(value, words)


def _configure_labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("import", "export", "reference"), help="the action")
    parser.add_argument("name", help="the project")
    parser.add_argument("file", nargs="?", type=Path, help="a CSV, or Label Studio's JSON (by its ending)")
    parser.add_argument("--annotator", default=ANNOTATOR, help="import: the annotator where the file names none")
    parser.add_argument("--create-classes", action="store_true", help="import: add missing classes")
    parser.add_argument("--replace", action="store_true", help="import: replace labels that differ")
    parser.add_argument(
        "--columns",
        metavar="ROLE=NAME,...",
        help="import: which columns of a CSV are path, image_id, label, annotator, such as path=filename,label=class",
    )
    parser.add_argument("--dry-run", action="store_true", help="import: say what a CSV would bring, and write nothing")
    parser.add_argument(
        "--exact", action="store_true", help="export: text exactly as stored, not escaped for spreadsheets"
    )
    parser.add_argument("--every-answer", action="store_true", help="export: one row per annotator and image")


def _labels(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    store, pool = _opened(workspace, args.name)
    actions: dict[str, Callable[..., Outcome]] = {"import": _import, "export": _export, "reference": _reference}
    return actions[args.what](args, store, pool, console)


def _reference(args: argparse.Namespace, store: LabelStore, pool: Pool, console: Console) -> Outcome:
    if args.file is not None:
        raise InvalidSettingError("labels reference takes no file: the labels come from the pool itself.")
    return _import_outcome(take_reference(store, pool, progress=console))


def _import(args: argparse.Namespace, store: LabelStore, pool: Pool, console: Console) -> Outcome:
    path = _file(args)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be read: {error.strerror}. Check the path.", code="NO_FILE") from error
    columns = _columns(args.columns)
    if _is_json(path) and (columns or args.dry_run):
        raise InvalidSettingError("--columns and --dry-run are for a CSV, not for Label Studio's JSON.")
    preview = None if _is_json(path) else preview_csv(store, pool, data, columns=columns)
    if args.dry_run and preview is not None:
        return _preview_outcome(preview)
    read = import_label_studio if preview is None else functools.partial(import_csv, columns=columns)
    result = read(
        store,
        pool,
        data,
        annotator=args.annotator,
        actor=ANNOTATOR,
        create_missing_classes=args.create_classes,
        replace=args.replace,
        progress=console,
    )
    return _import_outcome(result, preview.warning if preview is not None else "")


def _columns(text: str | None) -> dict[str, str]:
    """``path=filename,label=class`` as names of columns by what they are for."""
    found = {}
    for part in (text or "").split(","):
        role, mark, name = part.partition("=")
        if not mark and part.strip():
            raise InvalidSettingError(f"--columns is written path=filename,label=class; got '{shown(part, 40)}'.")
        if mark:
            found[role.strip()] = name.strip()
    return found


def _preview_outcome(preview: ImportPreview) -> Outcome:
    value = {**asdict(preview), "images": preview.n_images, "warning": preview.warning}
    text = (
        f"{preview.n_rows:,} rows: labels for {preview.n_images:,} images of the pool in {len(preview.per_class):,} "
        f"classes, {preview.n_unknown:,} rows name no image of it. {preview.n_left:,} of {preview.n_pool:,} images "
        "would stay unlabeled. Nothing was written."
    )
    return Outcome(value, text + (f"\n{preview.warning}" if preview.warning else ""))


def _export(args: argparse.Namespace, store: LabelStore, pool: Pool, console: Console) -> Outcome:
    path = _file(args)
    if not path.absolute().parent.is_dir():
        raise WorkspaceError(f"Folder {path.absolute().parent} does not exist. Create it first.", code="NO_FOLDER")
    if _is_json(path):
        note = picture_note(served_pictures(pool))
        n_rows = export_answers(store, pool, path)
        return Outcome({"file": str(path), "rows": n_rows, "note": note}, f"Wrote {n_rows:,} tasks to {path}.\n{note}")
    n_rows = export_csv(store, pool, path, exact=args.exact, every_answer=args.every_answer)
    return Outcome({"file": str(path), "rows": n_rows}, f"Wrote {n_rows:,} rows to {path}.")


def _import_outcome(result: ImportResult, warning: str = "") -> Outcome:
    value: dict[str, Any] = {
        "rows": result.n_rows,
        "saved": result.n_saved,
        "unchanged": result.n_unchanged,
        "new_classes": list(result.new_classes),
        "warnings": list(result.warnings),
        "problems": [asdict(problem) for problem in result.problems],
    }
    lines = [f"Imported {result.n_saved:,} of {result.n_rows:,} labels, {result.n_unchanged:,} unchanged."]
    lines += [f"Note: {note}" for note in result.warnings]
    lines += [warning] if warning else []
    lines += [
        f"  row {problem.row}: {shown(problem.value, 60)}: {problem.message}"
        for problem in result.problems[:SHOWN_PROBLEMS]
    ]
    if result.problems.n_rows > SHOWN_PROBLEMS:
        lines.append(f"  and {result.problems.n_rows - SHOWN_PROBLEMS:,} more; --json lists them.")
    failed = bool(result.problems) and not result.n_saved and not result.n_unchanged
    return Outcome(value, "\n".join(lines), failed=failed)


def _opened(workspace: Workspace, name: str) -> tuple[LabelStore, Pool]:
    project = workspace.project(name)
    return open_store(project), project.pool()


def _file(args: argparse.Namespace) -> Path:
    if args.file is None:
        raise InvalidSettingError(
            f"labels {args.what} needs a file: semiprune labels {args.what} {args.name} labels.csv"
        )
    return args.file


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


COMMANDS.register("sample")(Command("draw the subset to label", _configure_sample, _sample))
COMMANDS.register("labels")(
    Command("import or export labels, or take the pool's reference labels", _configure_labels, _labels)
)
