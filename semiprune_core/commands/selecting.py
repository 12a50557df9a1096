"""``dynamics``, ``scores``, ``select``, ``export``: from pseudo-labels to a coreset in files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from semiprune_core import files, jobs
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome, add_knobs, assignments, given_knobs
from semiprune_core.coresets import OPTIONS, CoresetRequest, build_coresets, nesting, own_evidence, settable_knobs
from semiprune_core.coresets.select_view import saved_error
from semiprune_core.dynamics import SCORING_STARTS, submit_dynamics
from semiprune_core.dynamics.scoring import with_new_scores, with_settings
from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.exporting import (
    FORMATS,
    Export,
    Exported,
    ExportOptions,
    export_coreset,
    export_csv,
    export_ids,
    options_for,
)
from semiprune_core.exporting.trees import WAYS
from semiprune_core.importing.allowing import allow_named
from semiprune_core.jobs import follow
from semiprune_core.learning.presets import SUPERVISED_PRESETS
from semiprune_core.methods import METHODS, open_knobs
from semiprune_core.paths import real_path
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import CoresetRun, ScoreRun, latest_scores, open_coreset
from semiprune_core.results.evidence import EvidenceRun
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.scores import SCORES, score_knobs
from semiprune_core.selection import AIMS, SELECTORS


def _configure_dynamics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--start",
        choices=tuple(SCORING_STARTS),
        help="a head on pretrained features, a fine-tuned net, or one from scratch (default: as the pseudo-labels)",
    )
    parser.add_argument("--encoder", help="whose features or weights (default: the pseudo-labels' encoder)")
    parser.add_argument("--preset", default="quick", help=f"from scratch: one of {', '.join(SUPERVISED_PRESETS)}")
    parser.add_argument("--seed", type=int, default=0, help="seed of the (first) run")
    parser.add_argument("--seeds", type=int, default=1, metavar="K", help="so many runs; scores are their mean")
    parser.add_argument("--epochs", type=int, help="instead of the preset's")
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda:0, ...")
    parser.add_argument("--nproc", type=int, default=1, help="processes of one run, through torchrun")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _dynamics(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    if args.seeds < 1:
        raise InvalidSettingError(f"--seeds must be at least 1, got {args.seeds}.")
    job = submit_dynamics(
        project,
        start=args.start,
        encoder=args.encoder,
        preset=args.preset,
        seeds=tuple(range(args.seed, args.seed + args.seeds)),
        device=args.device,
        nproc=args.nproc,
        **({"epochs": args.epochs} if args.epochs is not None else {}),
    )
    if args.background:
        jobs.supervise(workspace)
        return Outcome({"job": job.id, "state": job.status().state}, f"Queued as {job.id}.")
    follow(job, console)
    result = job.result() or {}
    run = ScoreRun(project.artifact(result["scores"]))
    start = str(job.settings["start"])
    text = f"{run.artifact.id}: {SCORES.listed(run.names)} for {run.artifact.facts['n_images']:,} images. "
    text += f"{SCORING_STARTS[start]}, {run.n_epochs} epochs."
    return Outcome({"job": job.id, "start": start, **result, "stability": run.artifact.facts["stability"]}, text)


def _configure_scores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table here: .csv or .parquet")
    add_knobs(parser, score_knobs())


def _scores(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    changes = given_knobs(args, score_knobs())
    run = with_settings(project, latest_scores(project), progress=console, **changes)
    run = with_new_scores(project, run, progress=console)
    value: dict[str, Any] = {"scores": run.artifact.id, "hash": run.artifact.hash, "settings": run.artifact.settings}
    value |= {"columns": list(run.names), **{key: run.artifact.facts[key] for key in ("n_images", "stability")}}
    text = f"{run.artifact.id}: {SCORES.listed(run.names)} for {run.artifact.facts['n_images']:,} images."
    if args.out is not None:
        write_table(run, args.out)
        value["out"] = str(args.out)
        text += f" Written to {args.out}."
    return Outcome(value, text)


def write_table(run: ScoreRun, path: Path) -> None:
    """The scores as CSV or Parquet, image ids as exports show them."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidSettingError(f"--out must end in .csv or .parquet, got {path.name}.")
    table = pq.read_table(run.artifact.path("scores.parquet"))
    table = table.set_column(0, "image_id", export_ids(table["image_id"].to_numpy()).cast(pa.string()))
    with files.named_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with files.open_atomic(path) as file:
        if path.suffix.lower() == ".csv":
            file.write((",".join(table.column_names) + "\n").encode("ascii"))
            pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(include_header=False))
        else:
            pq.write_table(table, file)


def _configure_select(parser: argparse.ArgumentParser) -> None:
    selectors = SELECTORS.listed(name for name in SELECTORS if name not in METHODS)
    parser.add_argument("name", help="the project")
    parser.add_argument("--method", default=CoresetRequest.method, help=f"one of {METHODS.listed()}, {selectors}")
    ratio = parser.add_mutually_exclusive_group(required=True)
    ratio.add_argument("--ratio", type=float, help="the share to remove, 0 <= r < 1")
    ratio.add_argument("--ratios", type=numbers, metavar="R,R,...", help="several at once, such as 0.3,0.5,0.7,0.8,0.9")
    parser.add_argument("--nested", action="store_true", help="with --ratios: hold the knobs, so that coresets nest")
    parser.add_argument(
        "--aim",
        choices=AIMS,
        default=CoresetRequest.aim,
        help="what default knobs serve: accuracy, or few wrong labels in the coreset (default: accuracy)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--class-balanced", action="store_true", help="equal shares for all classes")
    parser.add_argument("--keep-human", action="store_true", help="keep every image a person labeled")
    parser.add_argument("--same-annotation-budget", action="store_true", help="human labels are in first and count")
    parser.add_argument("--min-per-class", type=int, default=0, metavar="K", help="at least K of each class")
    parser.add_argument(
        "--class-share",
        type=float,
        metavar="S",
        help="keep of each class at least this part of its share, 0 to 1 (default: 0.75 for runs on features, else 0)",
    )
    parser.add_argument("--drop-duplicates", action="store_true", help="of equal pictures keep one at most")
    parser.add_argument(
        "--one-of-each", action="store_true", help="of near-duplicates with one label keep one at most (needs a scan)"
    )
    parser.add_argument(
        "--encoder", metavar="NAME", help="of a baseline: pixels, ssl, efficientnet_lite0, timm:..., ..."
    )
    parser.add_argument("--weights", metavar="FILE", help="of its encoder, as .safetensors")
    parser.add_argument(
        "--evidence",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another setting of a baseline, such as n_neighbours=10 or preset=paper; repeatable",
    )
    parser.add_argument("--device", default="auto", help="where a baseline trains: auto (default), cpu, cuda:0, ...")
    parser.add_argument("--exact", action="store_true", help="leave texts as they are, also where they look like code")
    add_knobs(parser, settable_knobs())


def numbers(text: str) -> tuple[float, ...]:
    """``0.3,0.5`` as numbers, for argparse."""
    return tuple(float(part) for part in text.split(",") if part.strip())


def words(text: str) -> tuple[str, ...]:
    """``csv,parquet`` as names, for argparse."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _select(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    ratios = args.ratios or (args.ratio,)
    request = CoresetRequest(
        method=args.method,
        pruning_ratio=ratios[0] if args.ratio is None else args.ratio,
        seed=args.seed,
        aim=args.aim,
        **{name: getattr(args, name) for name in OPTIONS},
    )
    request = request.replace(**given_knobs(args, {**settable_knobs(), **open_knobs(args.method)}))
    own = _own_evidence(project, request, args, console)
    runs = build_coresets(project, request, ratios, nested=args.nested, own=own, progress=console)
    made = [_selected(project, run, export_csv(project, run, exact=args.exact)) for run in runs]
    lines = [
        f"{one['coreset']}: {one['n_kept']:,} of {one['n_pool']:,} images kept. Written to {one['files']['kept']}."
        f"{_error_line(one['pseudo_label_error'])}"
        for one in made
    ]
    if args.ratios is None:
        return Outcome(made[0], lines[0])
    return Outcome({"coresets": made, "nesting": nesting(runs)}, "\n".join([*lines, nesting(runs)]))


def _own_evidence(
    project: Project, request: CoresetRequest, args: argparse.Namespace, console: Console
) -> EvidenceRun | None:
    """A baseline's evidence, made now where it is not there; None for the project's own methods."""
    settings = assignments("--evidence", args.evidence, "n_neighbours=10")
    allow_named(project.workspace, real_path(args.weights) if args.weights else None)
    settings |= {name: getattr(args, name) for name in ("encoder", "weights") if getattr(args, name)}
    if not has_own_evidence(request.method):
        if settings:
            raise InvalidSettingError(
                f"The setting {next(iter(settings))} belongs to the baselines; {request.method} has none."
            )
        return None
    latest_scores(project)  # said before hours of work, not after
    return own_evidence(project, request, console, device=args.device, settings=settings)


def _error_line(error: dict[str, Any]) -> str:
    """The estimate of :func:`saved_error` as a line of its own; nothing where nothing is known."""
    if error["value"] is None:
        return ""
    more = ", more than in the pool" if error["is_likely_more"] else ""
    return f"\n  Pseudo-label error, estimated: {error['low']:.0%} to {error['high']:.0%} (n = {error['n']}){more}."


def _selected(project: Project, run: CoresetRun, exported: Exported) -> dict[str, Any]:
    artifact = run.artifact
    return {
        "coreset": artifact.id,
        "hash": artifact.hash,
        **{key: artifact.facts[key] for key in ("n_pool", "n_kept", "n_human")},
        "settings": artifact.settings,
        "seed": artifact.manifest["seed"],
        "pseudo_label_error": saved_error(project, run).to_json(),
        "files": exported.to_json(),
    }


def _configure_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--coreset", type=words, metavar="ID,...", help="default: the latest one")
    which.add_argument("--ratios", type=numbers, metavar="R,R,...", help="the latest coreset of each of these ratios")
    parser.add_argument("--method", help="with --ratios: of this method (default: that of the latest coreset)")
    parser.add_argument(
        "--format", type=words, default=("csv",), metavar="F,...", help=f"some of {FORMATS.listed()} (default: csv)"
    )
    parser.add_argument("--exact", action="store_true", help="leave texts as they are, also where they look like code")
    parser.add_argument("--images", choices=WAYS, help="how formats with images hand them over (default: zip)")
    parser.add_argument(
        "--absolute", action="store_true", help="full paths on this machine: the column file, or the list of paths"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write there, not into the project's exports")


def _export(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    options = ExportOptions(exact=args.exact, images=args.images, absolute=args.absolute)
    for name in args.format:
        options_for(name, options)  # every name and way is known before the first one is written
    _check_absolute(args.format, absolute=args.absolute)
    if args.out is not None and args.out.exists() and not args.out.is_dir():
        raise InvalidSettingError(f"--out is a folder; {args.out} is a file. Name a folder, which may be new.")
    if args.ratios:
        method = args.method or str(open_coreset(project).artifact.settings["method"])
        runs = [_of_ratio(project, method, ratio) for ratio in args.ratios]
    else:
        runs = [open_coreset(project, one) for one in args.coreset or (None,)]
    made = [
        export_coreset(project, run, name, options, progress=console, folder=args.out)
        for run in runs
        for name in args.format
    ]
    lines = [f"Written to {next(iter(one.files.values()))}." for one in made]
    lines += [f"Note: {warning}" for one in made for warning in one.manifest["warnings"]]
    nested = nesting(runs) if len(runs) > 1 else None
    if nested:
        lines.append(nested)
    return Outcome({"exports": [_exported(one) for one in made], "nesting": nested}, "\n".join(lines))


def _check_absolute(formats: Sequence[str], *, absolute: bool) -> None:
    """Full paths are refused where they would be left out in silence."""
    able = [name for name in FORMATS if "absolute" in FORMATS.facts(name)["options"]]
    if absolute and (others := [name for name in formats if name not in able]):
        raise InvalidSettingError(
            f"--absolute is for {', '.join(able)}, not for {', '.join(others)}. Leave it out, or export these apart."
        )


def _exported(export: Export) -> dict[str, Any]:
    said = export.manifest
    return {
        "coreset": said["coreset"],
        "format": export.format,
        "files": export.to_json(),
        **said["counts"],
        "warnings": said["warnings"],
    }


def _of_ratio(project: Project, method: str, ratio: float) -> CoresetRun:
    for artifact in reversed(project.artifacts("coreset")):
        if artifact.settings["pruning_ratio"] == ratio and artifact.settings["method"] == method:
            return CoresetRun(artifact)
    raise MissingStepError(
        f"Project '{project.name}' has no coreset of {method} at ratio {ratio:g} yet. Select one: "
        f"semiprune select {project.name} --method {method} --ratios {ratio:g}"
    )


COMMANDS.register("dynamics")(
    Command("train on the pseudo-labeled pool and score every image", _configure_dynamics, _dynamics)
)
COMMANDS.register("scores")(Command("the scores of every image, as a table", _configure_scores, _scores))
COMMANDS.register("select")(Command("choose a coreset and write it as CSV", _configure_select, _select))
COMMANDS.register("export")(Command("write saved coresets to files, in any format", _configure_export, _export))
