"""``embed``: features of every image, the same job that runs after an import."""

from __future__ import annotations

import argparse
from typing import Any

from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.embeddings.encoders import DEFAULT
from semiprune_core.features import submit_features
from semiprune_core.importing.allowing import allow_named
from semiprune_core.jobs import commands, follow, supervise
from semiprune_core.paths import real_path
from semiprune_core.project.workspace import Workspace


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--encoder", default=DEFAULT, help=f"a pretrained encoder, or a+b (default: {DEFAULT}; see semiprune weights)"
    )
    parser.add_argument("--weights", default="", help="a .safetensors file with its weights")
    parser.add_argument("--size", type=int, default=0, help="side of the images it sees (default: its own)")
    parser.add_argument("--background", action="store_true", help="queue it and return at once")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    allow_named(workspace, real_path(args.weights) if args.weights else None)
    job = submit_features(project, args.encoder, weights=args.weights, size=args.size)
    if args.background:
        supervise(workspace)
        return Outcome(commands.summary(job), f"{job.title}: {job.id} ({job.status().state})")
    follow(job, console)
    result = job.result() or {}
    return Outcome({"job": job.id, **result}, _sentence(result))


def _sentence(result: dict[str, Any]) -> str:
    text = f"{result['artifact']}: {result['n_dimensions']:,} features of {result['n_images']:,} images"
    if result["n_test"]:
        text += f" and {result['n_test']:,} test images"
    if result["n_problems"]:
        text += f"; {result['n_problems']:,} originals could not be used, their training copies were"
    return text + "."


COMMANDS.register("embed")(Command("compute the features of every image", _configure, _run))
