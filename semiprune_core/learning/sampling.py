"""Randomness without state: every draw of a run is a function of its seed, a purpose and a step number.

So there is no generator to checkpoint and none to lose: step k draws the same after a resume, on another device, or on
another process of the same run.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from semiprune_core.records import IntArray

WEIGHTS, LABELED, POOL, VIEWS, EPOCH, SPLIT, CHECK = range(7)
"""Purposes."""


def numpy_rng(seed: int, purpose: int, step: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, purpose, step])


def torch_rng(seed: int, purpose: int, step: int) -> torch.Generator:
    """A CPU generator; draws are made on the CPU and moved, so that they do not depend on the device."""
    state = np.random.SeedSequence([seed, purpose, step]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


@lru_cache(maxsize=4)
def permutation(n: int, seed: int, purpose: int, turn: int) -> IntArray:
    order = numpy_rng(seed, purpose, turn).permutation(n)
    order.flags.writeable = False
    return order


def stream(n: int, start: int, count: int, *, seed: int, purpose: int) -> IntArray:
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
