"""A training loop that can be killed: every draw is a function of the seed and the step, the rest is in checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor, nn
from torch.optim import Optimizer

from semiprune_core.errors import SemiPruneError
from semiprune_core.learning.checkpoints import Checkpoints, with_prefix, without_prefix
from semiprune_core.progress import Progress, Stopped


def run_steps(
    one_step: Callable[[int], float],
    n_steps: int,
    *,
    modules: Mapping[str, nn.Module],
    optimizer: Optimizer,
    fingerprint: str,
    folder: Path | None,
    save_every: int,
    progress: Progress,
    stage: str,
    way_out: str,
) -> None:
    """Call ``one_step(number)`` for every step from the last checkpoint on; it returns the loss, for the report.

    ``modules`` hold everything that is learned or averaged (as weights or buffers). On a stop the state is saved.
    A loss or weights that are no longer finite are refused, with ``way_out`` as what to do.
    """
    saved = Checkpoints(folder, fingerprint) if folder is not None else None
    begin = _restore(saved, modules, optimizer)

    def save(step: int) -> None:
        if saved is not None and step:
            tensors = {key: value for name, module in modules.items() for key, value in _state(name, module).items()}
            saved.save(step, {**tensors, **_optimizer_tensors(optimizer)}, {})

    for step in range(begin, n_steps):
        if progress.should_stop():
            save(step)
            raise Stopped(f"Stopped after {step} of {n_steps} steps.")
        loss = one_step(step)
        if not math.isfinite(loss):
            raise _diverged(stage, f"its loss is {loss} at step {step + 1} of {n_steps}", way_out)
        progress.report(step + 1, n_steps, unit="steps", stage=stage, loss=round(loss, 4))
        if (step + 1) % save_every == 0 or step + 1 == n_steps:
            save(step + 1)
    if not all(weights.isfinite().all() for module in modules.values() for weights in module.parameters()):
        raise _diverged(stage, "its last step left weights that are not finite", way_out)


def _diverged(stage: str, how: str, way_out: str) -> SemiPruneError:
    return SemiPruneError(f"The training ({stage}) diverged: {how}. {way_out}", code="DIVERGED")


def _state(name: str, module: nn.Module) -> dict[str, Tensor]:
    return with_prefix(name, module.state_dict())


def _restore(saved: Checkpoints | None, modules: Mapping[str, nn.Module], optimizer: Optimizer) -> int:
    checkpoint = saved.load() if saved is not None else None
    if checkpoint is None:
        return 0
    for name, module in modules.items():
        module.load_state_dict(without_prefix(name, checkpoint.tensors))
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in without_prefix("optimizer", checkpoint.tensors).items():
        place, _, name = key.partition(".")
        state.setdefault(int(place), {})[name] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    return checkpoint.step


def _optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """Momenta and step counts by the place of their parameter."""
    return {
        f"optimizer.{place}.{name}": value
        for place, entry in optimizer.state_dict()["state"].items()
        for name, value in entry.items()
        if isinstance(value, Tensor)
    }
