"""Several processes on one run, through ``torchrun`` and DistributedDataParallel.

Every process draws the whole global batch and takes its own consecutive part of it; gradients are averaged by DDP.
Normalisation: on GPUs SyncBatchNorm over all processes; on CPUs, where it does not exist, each process normalises with
its own part, exactly as one process does that splits the same batch into as many micro-batches, and the running
statistics are those of the first process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from semiprune_core.errors import InvalidSettingError

N = TypeVar("N", bound=nn.Module)


@dataclass(frozen=True)
class World:
    """This process among ``size`` ones."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def part(self, n: int) -> slice:
        """This process's part of ``n`` things, all parts equally long."""
        if n % self.size:
            raise InvalidSettingError(
                f"A batch of {n} images cannot be shared equally by {self.size} processes. "
                f"Choose a batch size that is a multiple of {self.size}."
            )
        share = n // self.size
        return slice(self.rank * share, (self.rank + 1) * share)

    def gather(self, mine: Tensor) -> Tensor:
        """All processes' tensors of equal shape (n, ...), one after the other, (size * n, ...)."""
        if self.size == 1:
            return mine
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(parts, mine.contiguous())
        return torch.cat(parts)

    def add_up(self, mine: Tensor) -> Tensor:
        """The sum of all processes' tensors, on every one of them."""
        if self.size > 1:
            mine = mine.clone()
            dist.all_reduce(mine)
        return mine

    def first_says(self, flag: bool, device: torch.device) -> bool:
        """What the first process says, on all of them."""
        if self.size == 1:
            return flag
        answer = torch.tensor([int(flag)], device=device)
        dist.broadcast(answer, src=0)
        return bool(answer.item())

    def share_buffers(self, net: nn.Module) -> None:
        """Give every process the first one's running statistics, so that all of them answer alike."""
        self.share(net.buffers())

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Give every process the first one's values of these tensors."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)

    def wait(self) -> None:
        if self.size > 1:
            dist.barrier()

    def wrap(self, net: nn.Module, device: torch.device) -> nn.Module:
        """``net`` with gradients averaged over the processes."""
        if self.size == 1:
            return net
        return DistributedDataParallel(net, device_ids=[device] if device.type == "cuda" else None)

    def sync_norms(self, net: N, device: torch.device) -> N:
        if self.size > 1 and device.type == "cuda":
            return cast(N, nn.SyncBatchNorm.convert_sync_batchnorm(net))
        return net


@contextlib.contextmanager
def joined_world(device: torch.device) -> Iterator[tuple[World, torch.device]]:
    """The world that ``torchrun`` made, or a world of one; and this process's own device in it."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        yield World(), device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), dist.get_world_size()), device
    finally:
        dist.destroy_process_group()
