"""Optimizer, learning-rate schedules and the moving average of the weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from semiprune_core.learning.settings import TrainingSettings

N = TypeVar("N", bound=nn.Module)


def fixmatch_cosine(done: float) -> float:
    """Factor on the learning rate after the fraction ``done`` of a run: cos(7 pi k / 16 K)."""
    return math.cos(7 * math.pi * done / 16)


def cosine(done: float) -> float:
    """From 1 to 0 along half a cosine."""
    return 0.5 * (1 + math.cos(math.pi * done))


def step_decay(done: float) -> float:
    """A tenth after half of the run, a hundredth after three quarters."""
    return 1.0 if done < 0.5 else 0.1 if done < 0.75 else 0.01


SCHEDULES = {"cosine": cosine, "step": step_decay, "fixmatch": fixmatch_cosine}


def make_optimizer(
    net: nn.Module, settings: TrainingSettings, device: torch.device, scales: Mapping[str, float] | None = None
) -> torch.optim.SGD:
    """SGD; vectors (biases, normalisation) decay only where the settings say so.

    ``scales`` are factors on the learning rate by parameter name, 1 where there is none.
    """
    members: dict[tuple[float, bool], list[nn.Parameter]] = {(1.0, True): [], (1.0, False): []}
    for name, parameter in net.named_parameters():
        members.setdefault(((scales or {}).get(name, 1.0), parameter.ndim > 1), []).append(parameter)
    decay = {True: settings.weight_decay, False: settings.weight_decay if settings.decay_norms else 0.0}
    groups = [
        {"params": parameters, "weight_decay": decay[is_matrix], "scale": scale}
        for (scale, is_matrix), parameters in members.items()
    ]
    fused = device.type in ("cpu", "cuda")
    nesterov = settings.nesterov and settings.momentum > 0
    return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum, nesterov=nesterov, fused=fused)


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Give every group its share of ``lr``; all of it where a group has none."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group.get("scale", 1.0)


class MovingAverage(Generic[N]):
    """Weights averaged over steps: average <- decay * average + (1 - decay) * weights; buffers are copied."""

    def __init__(self, net: N, decay: float) -> None:
        self.net: N = copy.deepcopy(net).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, net: nn.Module) -> None:
        torch._foreach_lerp_(list(self.net.parameters()), list(net.parameters()), 1 - self.decay)
        for mine, theirs in zip(self.net.buffers(), net.buffers()):
            mine.copy_(theirs)


def momentum_tensors(net: nn.Module, optimizer: torch.optim.SGD) -> dict[str, Tensor]:
    """The optimizer's momentum by parameter name; empty before the first step."""
    momenta = {}
    for name, parameter in net.named_parameters():
        momentum = optimizer.state.get(parameter, {}).get("momentum_buffer")
        if momentum is not None:
            momenta[name] = momentum
    return momenta


def restore_momentum(net: nn.Module, optimizer: torch.optim.SGD, saved: dict[str, Tensor]) -> None:
    for name, parameter in net.named_parameters():
        if name in saved:
            buffer = torch.empty_like(parameter)
            buffer.copy_(saved[name])
            optimizer.state[parameter] = {"momentum_buffer": buffer}
