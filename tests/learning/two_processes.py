"""Run by test_distributed.py in each of two processes: a short run of either kind, what it found saved as .npz."""

import sys

import numpy as np
import torch

from semiprune_core.learning.distributed import joined_world
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.learning.supervised_run import MemoryRecorder, train_supervised
from semiprune_core.progress import Collected
from tests.support.pools import NAMES, make_pool, ssl_settings, supervised_settings


def short_ssl(world, folder=None):
    images, truth = make_pool(61)
    labels = np.where(np.arange(61) < 30, truth, -1)
    settings = ssl_settings(epochs=1, algorithm="freematch", options={"fairness_weight": 0.0})
    return train_ssl(
        images, labels, class_names=NAMES, settings=settings, seed=3, progress=Collected(), world=world, folder=folder
    )


def short_supervised(world):
    record = MemoryRecorder()
    images, truth = make_pool(45)
    settings = supervised_settings(epochs=2)
    result = train_supervised(
        images, truth, n_classes=3, settings=settings, seed=3, progress=Collected(), record=record, world=world
    )
    return result, record


def main(out):
    torch.set_num_threads(1)
    with joined_world(torch.device("cpu")) as (world, _):
        semi = short_ssl(world)
        dynamics, record = short_supervised(world)
        arrays = {"predicted": semi.predicted, "confidence": semi.confidence, "features": semi.features}
        if world.is_first:
            arrays |= {f"trajectory.{name}": value for name, value in vars(record.trajectory()).items()}
        for name, net in (("semi", semi.net), ("dynamics", dynamics.net)):
            arrays |= {f"{name}.{key}": value.numpy() for key, value in net.state_dict().items()}
        np.savez(f"{out}-{world.rank}.npz", **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
