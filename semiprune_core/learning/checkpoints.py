"""Checkpoints: safetensors and JSON, each whole or absent, the last two kept.

    checkpoint-00000200.safetensors   all tensors
    checkpoint-00000200.json          step, fingerprint of the run, small facts, SHA-256 of the tensors; written last

A checkpoint exists when its JSON does. One that does not match its SHA-256 is passed over for the one before it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from semiprune_core import files
from semiprune_core.errors import WorkspaceError

log = logging.getLogger(__name__)
KEEP_LAST = 2
NAME = re.compile(r"checkpoint-(\d{8,})\.json")
SCHEMA = 1


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after ``step`` steps. ``tensors`` are on the CPU."""

    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]


@dataclass
class Checkpoints:
    """The checkpoints of one run in ``folder``; ``fingerprint`` says which run that is."""

    folder: Path
    fingerprint: str
    notes: list[str] = field(default_factory=list)
    """What a person should know about the last :meth:`load`, in sentences."""

    def save(self, step: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        with files.named_disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        data = safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        path = self._path(step, "safetensors")
        files.write_bytes(path, data)
        head = {"schema": SCHEMA, "step": step, "fingerprint": self.fingerprint, "sha256": files.sha256_file(path)}
        files.write_json(self._path(step, "json"), {**head, "facts": dict(facts)})
        self._tidy()

    def load(self) -> Checkpoint | None:
        """The newest readable checkpoint of this run, or None; damaged ones are named in ``notes``."""
        self.notes.clear()
        for step in sorted(self.steps(), reverse=True):
            try:
                return self._read(step)
            except _DamagedError as error:
                note = f"Checkpoint {step} is damaged ({error}); resuming from the one before it."
                log.warning(note)
                self.notes.append(note)
        return None

    def steps(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        matches = (NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def _path(self, step: int, ending: str) -> Path:
        return self.folder / f"checkpoint-{step:08d}.{ending}"

    def _read(self, step: int) -> Checkpoint:
        path = self._path(step, "safetensors")
        try:
            head = json.loads(self._path(step, "json").read_text("utf-8"))
            fits = files.sha256_file(path) == head["sha256"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _DamagedError(str(error)) from error
        if head.get("fingerprint") != self.fingerprint or head.get("schema") != SCHEMA:
            raise WorkspaceError(
                f"{self.folder} holds checkpoints of another run (other settings, seed, labels or images). "
                "Start this one in a folder of its own."
            )
        if not fits:
            raise _DamagedError("its content does not match its SHA-256")
        try:
            tensors = safetensors.torch.load_file(path)
        except (OSError, safetensors.SafetensorError) as error:
            raise _DamagedError(str(error)) from error
        return Checkpoint(step, tensors, head["facts"])

    def _tidy(self) -> None:
        """Remove all but the last KEPT checkpoints, and what interrupted writes left."""
        latest = set(self.steps()[-KEEP_LAST:])
        for path in sorted(self.folder.iterdir()):
            match = re.fullmatch(r"\.?checkpoint-(\d{8,})\.(json|safetensors)(\..*\.part)?", path.name)
            if match and (int(match[1]) not in latest or match[3]):
                path.unlink(missing_ok=True)


class _DamagedError(Exception):
    """A checkpoint that cannot be read."""


def with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
