"""The program of a net as an ONNX file, for runtimes without torch. Its packages are optional and loaded here alone."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

NEEDED = ("onnx", "onnxscript", "onnxruntime")
"""torch writes by way of the first two; the third opens the file again."""
INPUT, OUTPUT = "pixels", "probabilities"
CHATTY = ("onnxscript", "onnx_ir", "torch.onnx", "torch.export")


def missing() -> str | None:
    """Why no ONNX file can be written here, in a sentence; None where one can."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if not lacking:
        return None
    return f"model.onnx was left out: install {' '.join(lacking)} (the extra [onnx]) and run this again."


def write_onnx(program: torch.export.ExportedProgram, path: Path) -> None:
    """Write ``program`` with all its weights into the one file ``path``."""
    with _quiet():
        written = torch.onnx.export(
            program,
            dynamo=True,
            input_names=[INPUT],
            output_names=[OUTPUT],
            external_data=False,
            verbose=False,
        )
        assert written is not None  # the exporter by torch.export gives its program back
        written.save(path, external_data=False)


def run_onnx(path: Path, pixels: np.ndarray) -> np.ndarray:
    """What onnxruntime answers to uint8 ``pixels`` (B, C, H, W): probabilities (B, K)."""
    runtime: Any = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (answer,) = session.run([OUTPUT], {INPUT: pixels})
    return np.asarray(answer)


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters warn about themselves and tell every step; what matters is the comparison afterwards."""
    loggers = [logging.getLogger(name) for name in CHATTY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)
