"""The draws of a training loop, by the rule of :mod:`semiprune_core.streams`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import torch

from semiprune_core import streams
from semiprune_core.records import FloatArray, IntArray
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
    taken: list[IntArray] = [np.empty(0, dtype=np.int64)]
    while count:
        turn, place = divmod(start, n)
        piece = permutation(n, seed, purpose, turn)[place : place + count]
        taken.append(piece)
        start, count = start + len(piece), count - len(piece)
    return np.concatenate(taken)


class LabeledOrder:
    """Labeled images in the order in which batches take them, an endless row.

    A turn has as many images of each class as labels of it were ``drawn`` (C,) uniformly, in random order; within a
    class every image comes once before one comes twice. So a class with many labels that were added on purpose is seen
    in more variety, and not more often. Without added labels, or where ``drawn`` is None, a turn is a permutation.
    """

    def __init__(self, labels: IntArray, drawn: FloatArray | None, seed: int) -> None:
        self.n, self.seed = len(labels), seed
        counts = np.bincount(labels, minlength=0 if drawn is None else len(drawn))
        self.slots = counts if drawn is None else np.ceil(drawn).astype(np.int64)
        self.is_plain = np.array_equal(self.slots, counts)
        self.members = [np.flatnonzero(labels == label) for label in range(len(counts))]

    def take(self, start: int, count: int) -> IntArray:
        """Places ``start`` to ``start + count`` of the row, as positions among the labels."""
        if self.is_plain:
            return stream(self.n, start, count, seed=self.seed, purpose=Purpose.LABELED)
        length = int(self.slots.sum())
        first, last = start // length, (start + count - 1) // length
        turns = np.concatenate([self._turn(turn) for turn in range(first, last + 1)])
        return turns[start - first * length :][:count]

    def _turn(self, turn: int) -> IntArray:
        chosen = []
        for label, (members, slots) in enumerate(zip(self.members, self.slots.tolist(), strict=True)):
            own = streams.derived(self.seed, Purpose.OF_CLASS, label)
            chosen.append(members[stream(len(members), turn * slots, slots, seed=own, purpose=Purpose.LABELED)])
        places = np.concatenate(chosen)
        return places[permutation(len(places), self.seed, Purpose.LABELED, turn)]
