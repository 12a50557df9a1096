"""Two CPU processes over gloo learn what one process learns with the same global batch in two halves."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from semiprune_core.errors import InvalidSettingError
from semiprune_core.learning import ssl_run, supervised_run
from semiprune_core.learning.distributed import World, joined_world
from semiprune_core.learning.images import Images
from semiprune_core.learning.predict import predict
from semiprune_core.learning.trainer import Trainer
from tests.learning.two_processes import short_ssl, short_supervised
from tests.support.pools import make_pool

ROOT = Path(__file__).parents[2]


class HalvedTrainer(Trainer):
    """Splits each batch in two, as two processes would."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.micro_batches = 2


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each of the two processes saved."""
    out = tmp_path_factory.mktemp("world") / "found"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        **os.environ,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.learning.two_processes", str(out)],
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            cwd=ROOT,
        )
        for rank in range(2)
    ]
    try:
        assert [process.wait(timeout=240) for process in started] == [0, 0]
    finally:
        for process in started:
            process.kill()
    return [np.load(f"{out}-{rank}.npz") for rank in range(2)]


def weights(arrays, name, net):
    for key, parameter in net.named_parameters():
        yield key, torch.from_numpy(arrays[f"{name}.{key}"]), parameter.detach()


def test_steps_equal_those_of_one_process(found, monkeypatch):
    monkeypatch.setattr(ssl_run, "Trainer", HalvedTrainer)
    alone = short_ssl(World())
    for key, theirs, ours in weights(found[0], "semi", alone.net):
        assert torch.allclose(theirs, ours, atol=1e-5), key


def test_recorded_trajectories_equal_those_of_one_process(found, monkeypatch):
    monkeypatch.setattr(supervised_run, "Trainer", HalvedTrainer)
    alone, record = short_supervised(World())
    for key, theirs, ours in weights(found[0], "dynamics", alone.net):
        assert torch.allclose(theirs, ours, atol=1e-5), key
    assert found[0]["trajectory.target_prob"] == pytest.approx(record.trajectory().target_prob, abs=1e-4)
    assert found[0]["trajectory.last_entropy"] == pytest.approx(record.trajectory().last_entropy, abs=1e-4)


def test_pseudo_labels_are_complete_in_order_and_the_same_everywhere(found):
    net = short_ssl(World()).net
    net.load_state_dict({key: torch.from_numpy(found[0][f"semi.{key}"]) for key in net.state_dict()})
    alone = predict(net, Images(make_pool(61)[0], torch.device("cpu")))
    for arrays in found:
        assert len(arrays["predicted"]) == 61
        assert arrays["confidence"] == pytest.approx(alone.confidence, abs=1e-5)
        assert np.array_equal(arrays["predicted"], alone.labels)
    assert np.array_equal(found[0]["features"], found[1]["features"])


def test_a_batch_that_cannot_be_shared_is_refused():
    with pytest.raises(InvalidSettingError, match="batch of 7 images cannot be shared equally by 2"):
        World(0, 2).part(7)


def test_without_torchrun_there_is_one_process(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with joined_world(torch.device("cpu")) as (world, device):
        assert world == World(0, 1) and device.type == "cpu"
