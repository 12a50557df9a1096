"""Streams of random numbers: every draw is a function of a seed, a purpose and numbers such as a step or a fold.

The rule: the numbers of a stream come from numpy's ``default_rng``, seeded with the SHA-256 of the text
``semiprune <rule>: <purpose>: <seed>: <numbers, with commas>``. So streams of different seeds, purposes or numbers have
nothing in common, neighbouring seeds included; there is no generator to checkpoint and none to lose; and step k draws
the same after a resume, on another device, or in another process. No seed is ever added to.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum, unique

import numpy as np

RULE = 2
"""Kept with checkpoints and in manifests. Under rule 1 a run of many nets gave them the seeds s, s + 1, ..., and one
seed drew the same for several purposes."""


@unique
class Purpose(StrEnum):
    """What a stream is for; the texts belong to the rule."""

    # runs, each with a seed of its own: the number is the net's or the fold's
    SSL_RUN = "semi-supervised net"
    SCORING_RUN = "scoring net"
    TRIAL_RUN = "trial net"
    BASELINE_RUN = "scoring net of a baseline"
    ENCODER_RUN = "encoder of a baseline"
    CLUSTER_RUN = "clustering heads of a baseline"
    GRAPH_RUN = "graph net of a baseline"
    # within a run: the number is the step, the epoch or the turn
    WEIGHTS = "initial weights"
    LABELED = "order of labeled images"
    OF_CLASS = "order of a class"
    POOL = "order of the pool"
    EPOCH = "order within an epoch"
    VIEWS = "views"
    CHECK = "images to look at"
    SETTLE = "images to normalise by"
    SPLIT = "held-out labels"
    # heads on features
    FOLDS = "folds of a head"
    HEAD = "head by an SSL algorithm"
    SCORING_HEAD = "scoring head"
    OUTLOOK = "outlook on more labels"
    COVERAGE = "simulated draw of labels"
    LABEL_ERROR = "error of a coreset's labels"
    # choosing
    CORESET = "coreset"
    CORESET_SAMPLE = "sample of a coreset"
    STUDY_LABELS = "labels of a study"
    STUDY_PARTS = "parts of a study"
    # other methods
    CLUSTERS = "starts of k-means"
    CLUSTER_BATCHES = "batches of k-means"
    SUBSPACES = "sampled subspaces"
    NEIGHBOURS = "number of neighbours"
    # pictures and pools
    MAP = "map"
    MAP_POINTS = "points of a map"
    REPORT_SAMPLE = "pictures of a report"
    DRAW_CLUSTERS = "clusters of a drawing"
    DRAW_PIXELS = "pixels of a drawing"
    DRAW_COMPONENTS = "components of a drawing"
    CORRUPTED = "corrupted images"
    LONG_TAIL = "long tail"


def rng(seed: int, purpose: Purpose, *numbers: int) -> np.random.Generator:
    """The stream of ``purpose``, a generator at its beginning."""
    return np.random.default_rng(_entropy(seed, purpose, numbers))


def coreset_rng(seed: int, rule: int = RULE) -> np.random.Generator:
    """The stream of a coreset; ``rule`` is that of the version which chose it, to choose it once more."""
    return np.random.default_rng(seed) if rule < 2 else rng(seed, Purpose.CORESET)


def derived(seed: int, purpose: Purpose, *numbers: int, bits: int = 63) -> int:
    """A seed of ``bits`` bits: for a run within a run, or for a library that wants a number.

    >>> derived(0, Purpose.TRIAL_RUN) == derived(0, Purpose.SCORING_RUN)
    False
    """
    return _entropy(seed, purpose, numbers) >> (256 - bits)


def _entropy(seed: int, purpose: Purpose, numbers: tuple[int, ...]) -> int:
    text = f"semiprune {RULE}: {purpose}: {int(seed)}: {','.join(str(int(number)) for number in numbers)}"
    return int.from_bytes(hashlib.sha256(text.encode("ascii")).digest(), "big")
