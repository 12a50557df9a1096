"""The draws of a training loop, by the rule of :mod:`semiprune_core.streams`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import torch

from semiprune_core import streams
from semiprune_core.records import IntArray
from semiprune_core.streams import Purpose


def torch_rng(seed: int, purpose: Purpose, *numbers: int) -> torch.Generator:
    """A CPU generator; draws are made on the CPU and moved, so that they do not depend on the device."""
    return torch.Generator().manual_seed(streams.derived(seed, purpose, *numbers))


@contextmanager
def fresh_weights(seed: int, *numbers: int) -> Iterator[None]:
    """Modules that are built in the block begin with the weights of ``seed``; no global state is used up."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(streams.derived(seed, Purpose.WEIGHTS, *numbers))
        yield


@lru_cache(maxsize=4)
def permutation(n: int, seed: int, purpose: Purpose, turn: int) -> IntArray:
    order = streams.rng(seed, purpose, turn).permutation(n)
    order.flags.writeable = False
    return order


def stream(n: int, start: int, count: int, *, seed: int, purpose: Purpose) -> IntArray:
    """Places ``start`` to ``start + count`` of an endless row of permutations of 0..n-1.

    Every image comes once before one comes twice; a batch larger than n repeats images.
    """
    taken = []
    while count:
        turn, place = divmod(start, n)
        piece = permutation(n, seed, purpose, turn)[place : place + count]
        taken.append(piece)
        start, count = start + len(piece), count - len(piece)
    return np.concatenate(taken)
