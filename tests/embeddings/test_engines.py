"""Engines: the same features from each, whatever comes in one batch, and nothing sent anywhere."""

import socket

import numpy as np
import pytest
import torch
from sklearn.datasets import load_sample_images

from semiprune_core.embeddings import engines
from semiprune_core.embeddings.encoders import PACKAGES, Encoder, open_encoder, own_side, packaged_file
from semiprune_core.embeddings.engines import BATCH, cosines, open_engine
from semiprune_core.errors import InvalidSettingError

SIDE = 64
openvino = pytest.mark.skipif(not engines.openvino_is_there(), reason="openvino is not installed")


@pytest.fixture
def guard(workspace):
    return workspace.guard


@pytest.fixture(scope="module")
def photos():
    """(BATCH + 3, SIDE, SIDE, 3): pieces of two photographs."""
    rng = np.random.default_rng(0)
    two = load_sample_images().images
    corners = rng.integers(0, 300, (BATCH + 3, 2))
    return np.stack([two[at % 2][y : y + SIDE, x : x + SIDE] for at, (y, x) in enumerate(corners)])


@torch.inference_mode()
def eager(encoder, pixels):
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (encoder.mean, encoder.std))
    return encoder.net((torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255 - mean) / std).flatten(1).numpy()


@pytest.mark.parametrize("name", list(PACKAGES))
@pytest.mark.parametrize("engine", ["torch", pytest.param("openvino", marks=openvino)])
def test_every_engine_gives_the_features_of_eager_torch(name, engine, guard, photos):
    if packaged_file(name) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed")
    encoder = open_encoder(name, guard=guard)
    features = open_engine(encoder, SIDE, engine=engine)(photos[:8])
    assert features.shape == (8, 1280) and features.dtype == np.float32
    assert cosines(features, eager(encoder, photos[:8])).min() > 0.9999


@pytest.mark.parametrize("engine", ["torch", pytest.param("openvino", marks=openvino)])
def test_an_images_features_do_not_depend_on_its_batch(engine, guard, photos):
    run = open_engine(open_encoder("efficientnet_lite0", guard=guard), SIDE, engine=engine)
    whole = run(photos)
    assert len(whole) == BATCH + 3
    np.testing.assert_array_equal(run(photos[:3]), whole[:3])


def test_the_lite_nets_see_images_of_their_own_size():
    assert [own_side(name) for name in PACKAGES] == [224, 240, 260]


@openvino
def test_openvino_sends_nothing(guard, monkeypatch):
    def refuse(*args):
        raise AssertionError("something was sent")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert open_engine(open_encoder("efficientnet_lite0", guard=guard), SIDE).name == "openvino"


@openvino
def test_a_net_that_cannot_be_converted_runs_in_torch(photos, caplog):
    class Unusual(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x.mean((1, 2))[:, None] * torch.eye(SIDE)).real

    encoder = Encoder(Unusual().eval(), "unusual")
    assert open_engine(encoder, SIDE).name == "torch" and "torch does" in caplog.text
    with pytest.raises(InvalidSettingError, match="Choose torch"):
        open_engine(encoder, SIDE, engine="openvino")


def test_without_openvino_torch_runs_it(guard, monkeypatch):
    monkeypatch.setattr(engines, "openvino_is_there", lambda: False)
    encoder = open_encoder("efficientnet_lite0", guard=guard)
    assert open_engine(encoder, SIDE).name == "torch"
    with pytest.raises(InvalidSettingError, match="pip install openvino"):
        open_engine(encoder, SIDE, engine="openvino")
