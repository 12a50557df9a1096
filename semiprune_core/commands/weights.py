"""``weights``: which pretrained weights are on this machine, and where to put more. Nothing is fetched."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiprune_core import files
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome
from semiprune_core.embeddings.weights import DAMAGED, HERE, Weights, is_whole, known_weights, weights_folder
from semiprune_core.errors import SourceError
from semiprune_core.project.workspace import Workspace


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", type=Path, metavar="FILE", help="say a safetensors file's hash, and if it is whole")
    parser.add_argument("--sha256", metavar="HASH", help="with --check: the hash that it must have")


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    if args.check is not None:
        return _check(args.check, (args.sha256 or "").lower())
    found, folder = known_weights(workspace.root), weights_folder(workspace.root)
    lines = [_line(weights) for weights in found]
    lines.append(f"Put further .safetensors files into {folder}. Nothing is downloaded unless you ask for it.")
    value = {"folder": str(folder), "weights": [weights.to_json() for weights in found]}
    return Outcome(value, "\n".join(lines), failed=any(weights.state == DAMAGED for weights in found))


def _line(weights: Weights) -> str:
    if weights.state != HERE:
        return f"{weights.name:24} {weights.state:8} {weights.how}"
    size = f"{(weights.bytes or 0) / 1e6:.0f} MB"
    return f"{weights.name:24} {weights.state:8} {size:>8}  sha256 {str(weights.sha256)[:12]}…  {weights.file}"


def _check(path: Path, wanted: str) -> Outcome:
    if not path.is_file():
        raise SourceError(f"There is no file {path}. Check the path of the weights.", code="FILE_MISSING")
    digest = files.sha256_file(path)
    whole = is_whole(path) if path.suffix == ".safetensors" else None
    same = digest == wanted if wanted else None
    value = {"file": str(path), "sha256": digest, "whole": whole, "same": same}
    words = [f"{path.name}: sha256 {digest}"]
    words += ["It is damaged: copy it again."] if whole is False else []
    words += [f"It is not the file with sha256 {wanted}."] if same is False else []
    words += ["It is the one you named."] if same else []
    return Outcome(value, " ".join(words), failed=whole is False or same is False)


COMMANDS.register("weights")(Command("list pretrained weights and where to put more", _configure, _run))
