"""A net to take away: weights, what has to be known about them, and a program that runs without this app.

model.safetensors   the net's tensors
model.json          net, classes, preprocessing, and how each file answered when it was opened again
model.pt2           torch.export: uint8 (B, C, H, W) to probabilities (B, K), normalisation included
model.onnx          the same program for runtimes without torch, where the packages for it are installed
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from semiprune_core import files
from semiprune_core.errors import MissingStepError, WorkspaceError
from semiprune_core.learning.images import channel_moments
from semiprune_core.learning.nets import Net, build_net
from semiprune_core.prediction import onnx_file
from semiprune_core.prediction.run import open_net
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray
from semiprune_core.results import PseudoRun, check_same_pool
from semiprune_core.results.pseudo import SCRATCH
from semiprune_core.training.settings import TrainSettings

WEIGHTS, ABOUT, PROGRAM, ONNX = "model.safetensors", "model.json", "model.pt2", "model.onnx"
HOW_TO = {
    WEIGHTS: "the net's tensors; normalise before: (values - mean) / std",
    PROGRAM: "torch.export.load(...).module(): uint8 (B, C, H, W) to probabilities (B, classes)",
    ONNX: "pixels: uint8 (B, C, H, W); probabilities: float32 (B, classes)",
}
TRIED = 100
"""Images of the pool on which every file is compared with the net itself."""


class Whole(nn.Module):
    """The net with its normalisation: uint8 (B, C, H, W) to probabilities (B, K)."""

    def __init__(self, net: Net, mean: np.ndarray, std: np.ndarray) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("mean", torch.from_numpy(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.from_numpy(std).view(1, -1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        seen = (pixels.float() - self.get_buffer("mean")) / self.get_buffer("std")
        return self.net.head(self.net.features(seen)).softmax(-1)


def write_model(project: Project, run: PseudoRun, folder: Path) -> dict[str, Any]:
    """Write the net of a run from scratch into the new ``folder``; returns what ``model.json`` says."""
    check_same_pool(run.artifact, project.pool())
    if run.start != SCRATCH:
        raise MissingStepError(
            f"{run.artifact.id} has no net of its own that could be taken away: it learned on an encoder's features. "
            "Label new images here with `semiprune predict`, or train from scratch."
        )
    if folder.exists():
        raise WorkspaceError(f"{folder} exists already. Choose a new folder with --out.", code="FOLDER_TAKEN")
    net, labeled = open_net(project, run)
    pixels = project.pool().images()
    mean, std = channel_moments(pixels)
    whole = Whole(net, mean, std).eval()
    tried = torch.from_numpy(np.array(pixels[:TRIED])).permute(0, 3, 1, 2)
    expected = _answers(whole, tried)
    aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    with files.named_disk_errors(folder):
        try:
            aside.mkdir(parents=True)
            save_file({name: part.contiguous() for name, part in net.state_dict().items()}, aside / WEIGHTS)
            batch = torch.export.Dim("batch", min=1)
            program = torch.export.export(whole, (tried[:2],), dynamic_shapes={"pixels": {0: batch}})
            torch.export.save(program, aside / PROGRAM)
            again = {
                WEIGHTS: _answers(_from_weights(project, run, aside, labeled, mean, std), tried),
                PROGRAM: _answers(torch.export.load(aside / PROGRAM).module(), tried),
            }
            if (left_out := onnx_file.missing()) is None:
                onnx_file.write_onnx(program, aside / ONNX)
                again[ONNX] = torch.from_numpy(onnx_file.run_onnx(aside / ONNX, tried.numpy()))
            about = _about(project, run, labeled, mean, std, [*again]) | {
                "tried_on": len(tried),
                "largest_difference": {name: float((answer - expected).abs().max()) for name, answer in again.items()},
                "left_out": left_out,
            }
            files.write_json(aside / ABOUT, about)
            os.rename(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return about


@torch.inference_mode()
def _answers(module: nn.Module, pixels: Tensor) -> Tensor:
    answer: Tensor = module(pixels)
    return answer


def _from_weights(
    project: Project, run: PseudoRun, folder: Path, labeled: IntArray, mean: np.ndarray, std: np.ndarray
) -> nn.Module:
    form = project.pool().images().shape
    net = build_net(_net_of(run), image_size=form[1], channels=form[3], n_classes=len(labeled))
    net.load_state_dict(load_file(folder / WEIGHTS))
    return Whole(net, mean, std).eval()


def _net_of(run: PseudoRun) -> str:
    return TrainSettings.from_flat(run.artifact.settings).training.net


def _about(
    project: Project, run: PseudoRun, labeled: IntArray, mean: np.ndarray, std: np.ndarray, written: Sequence[str]
) -> dict[str, Any]:
    form = project.pool_settings
    assert form is not None  # the pool has images
    return {
        "schema": 1,
        "project": project.name,
        "run": run.artifact.id,
        "run_hash": run.artifact.hash,
        "net": _net_of(run),
        "classes": [run.class_names[at] for at in labeled.tolist()],
        "accuracy": (run.quality() or {}).get("accuracy"),
        "preprocessing": {
            "size": form.size,
            "channels": form.channels,
            "fit": form.fit,
            "resize": "bilinear with antialiasing, as Pillow does it",
            "values": "0 to 255",
            "mean": [round(float(value), 6) for value in mean],
            "std": [round(float(value), 6) for value in std],
        },
        "files": {name: HOW_TO[name] for name in written},
    }
