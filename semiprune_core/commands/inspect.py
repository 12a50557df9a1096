"""``quality`` and ``map``: how far the pseudo-labels can be trusted, and the pool as a map."""

from __future__ import annotations

import argparse

from semiprune_core import jobs, trust
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.embeddings.features import FEATURES
from semiprune_core.errors import InvalidDataError
from semiprune_core.importing.allowing import allow_named
from semiprune_core.labeling import open_store
from semiprune_core.learning.quality import Share
from semiprune_core.maps.embedding_map import MapSettings, make_maps
from semiprune_core.maps.reduce import REDUCERS
from semiprune_core.paths import real_path
from semiprune_core.project.workspace import Workspace
from semiprune_core.results import PseudoRun, latest_pseudo
from semiprune_core.trust import quality_report


def _configure_quality(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project's name")
    parser.add_argument("--run", metavar="ID", help="a run, such as pseudo-0002 (default: the newest)")
    parser.add_argument("--subset", metavar="NAME", help='only these images, such as "Corrupted images"')


def _quality(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    run = latest_pseudo(project)
    if args.run:
        artifact = project.artifact(args.run)
        if artifact.kind != "pseudo":
            raise InvalidDataError(f"{artifact.id} holds no pseudo-labels. Name a run such as {run.artifact.id}.")
        run = PseudoRun(artifact)
    report = quality_report.report(project.pool(), run, store=open_store(project), subset=args.subset)
    others = [PseudoRun(other) for other in project.artifacts("pseudo") if other.id != run.artifact.id]
    judgement = trust.judge(report, trust.stability_of(project, run, others))
    value = {
        "project": project.name,
        **report.to_json(),
        "trust": {
            "level": judgement.level,
            "verdict": judgement.verdict,
            "reasons": [{"level": reason.level, "sentence": reason.sentence} for reason in judgement.reasons],
        },
    }
    return Outcome(value, _text(report, judgement))


def _text(report: quality_report.Report, judgement: trust.Trust) -> str:
    lines = [f"{report.run.artifact.id}, {report.subset.lower()} ({report.n_images:,})"]
    held_out, reference = report.held_out, report.reference
    if held_out is not None:
        share = held_out.accuracy
        lines.append(
            f"Held-out accuracy {share.value:.1%}, 95% interval {share.low:.1%} to {share.high:.1%}, n = {share.n}. "
            f"{quality_report.labels_to_halve(share):,} more held-out labels would halve the interval."
        )
        for name, by_class in zip(report.class_names, held_out.per_class, strict=True):
            lines.append(f"  {name}: {_share(by_class)}")
    else:
        lines.append("No labels were held out, so only reference labels could measure this run.")
    if reference is not None:
        lines.append(
            f"Against {reference.n:,} reference labels: accuracy {reference.accuracy:.1%}, balanced "
            f"{reference.balanced_accuracy:.1%}, NMI {reference.nmi:.1%}, ARI {reference.ari:.1%}."
        )
    lines.append(f"Trust: {judgement.level}. {judgement.verdict}")
    lines += [f"  {reason.level}: {reason.sentence}" for reason in judgement.reasons]
    return "\n".join(lines)


def _share(share: Share | None) -> str:
    if share is None:
        return "too few held-out labels"
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def _configure_map(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project's name")
    parser.add_argument("--method", choices=list(REDUCERS), default="umap", help="default: umap")
    parser.add_argument("--features", choices=list(FEATURES), default="ssl", help="default: ssl")
    parser.add_argument("--encoder", default="", help="with --features pretrained: torchvision:NAME or timm:NAME")
    parser.add_argument("--weights", default="", help="a local .safetensors file for the encoder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _map(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    allow_named(workspace, real_path(args.weights) if args.weights else None)
    settings = MapSettings(
        features=args.features, method=args.method, seed=args.seed, encoder=args.encoder, weights=args.weights
    )
    if args.background:
        job = jobs.submit(project, "map", settings.to_json())
        jobs.supervise(workspace)
        return Outcome({"job": job.id}, f"Queued as {job.id}.")
    made = make_maps(project, settings, console)[-1]
    facts = made.artifact.facts
    value = {"project": project.name, "artifact": made.artifact.id, "title": made.title, **facts}
    return Outcome(value, f"{made.artifact.id}: {made.title}, {facts['n_placed']:,} of {facts['n_images']:,} images.")


COMMANDS.register("quality")(
    Command("show how good the pseudo-labels are, with intervals", _configure_quality, _quality)
)
COMMANDS.register("map")(Command("compute a 2-D map of the pool", _configure_map, _map))
