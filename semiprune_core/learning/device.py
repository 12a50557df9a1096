"""Where and in which number format to compute, and what running out of memory looks like there."""

from __future__ import annotations

import contextlib
from typing import TypeVar

import torch
from torch import nn

from semiprune_core.errors import InvalidSettingError

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


N = TypeVar("N", bound=nn.Module)


def channels_last(net: N, device: torch.device) -> N:
    """The net on its device, weights laid out with channels last: convolutions take half the time on a CPU."""
    return net.to(device).to(memory_format=torch.channels_last)


def choose_device(wanted: str = "auto") -> torch.device:
    """``auto`` takes CUDA, then MPS, then the CPU; a device that is not there is refused with what is."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if wanted == "auto":
        return torch.device(next(name for name in ("cuda", "mps", "cpu") if there[name]))
    kind, _, number = wanted.partition(":")
    available = ", ".join(name for name, is_there in there.items() if is_there)
    if not there.get(kind) or (number and not number.isdigit()):
        raise InvalidSettingError(f"device '{wanted}' is not available here. Available: auto, {available}.")
    if kind == "cuda" and number and int(number) >= torch.cuda.device_count():
        raise InvalidSettingError(
            f"device '{wanted}' does not exist; this machine has {torch.cuda.device_count()} GPUs."
        )
    return torch.device(wanted)


def choose_precision(wanted: str, device: torch.device) -> str:
    """fp32, bf16 or fp16. ``auto``: bf16 where the device multiplies it natively, else fp16 on CUDA, fp32 elsewhere."""
    if wanted != "auto":
        if wanted == "fp16" and device.type == "cpu":
            raise InvalidSettingError("precision fp16 needs a GPU. Choose auto, fp32 or bf16.")
        return wanted
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    if device.type == "cpu" and torch.cpu.get_capabilities().get("avx512_bf16", False):
        return "bf16"
    return "fp32"


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[object]:
    if precision == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, torch.bfloat16 if precision == "bf16" else torch.float16)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that the device (or this machine) has no memory left."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    )
