"""Ways to run an encoder: from uint8 pixels to float32 features, as fast as the machine allows and no less exact.

Measured on two shared cores (EfficientNet-Lite0, 224 pixels; see docs/features.md): OpenVINO in fp32 is several times
as fast as torch and gives the same features to 1e-5. bf16 is faster still, but moves them (cosine 0.998), so it is not
used. torch.compile takes minutes before the first image. OpenVINO is an optional package; without it torch runs the
net with its normalisation folded into the convolutions.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semiprune_core.checks import check_choice
from semiprune_core.embeddings.encoders import Encoder
from semiprune_core.errors import InvalidSettingError
from semiprune_core.records import FloatArray

if TYPE_CHECKING:
    import torch
    from torch import nn

log = logging.getLogger(__name__)

AUTO, TORCH, OPENVINO = "auto", "torch", "openvino"
ENGINES = (AUTO, TORCH, OPENVINO)
BATCH = 16
"""Larger ones are no faster (OpenVINO, Lite0: 1.57 CPU seconds for 128 images at 16, 32 and 64, 1.63 at 8)."""
SAME = 0.9999
"""Cosine with torch's own answer that a converted net must reach before it is used."""
TRIED = 2
"""Images that a converted net is tried on."""


@dataclass(frozen=True, eq=False)
class Engine:
    """``answer`` maps exactly ``batch`` images (batch, side, side, 3) uint8 to their features (batch, D) float32."""

    name: str
    batch: int
    answer: Callable[[np.ndarray], FloatArray]

    def __call__(self, pixels: np.ndarray) -> FloatArray:
        """(n, side, side, 3) uint8 to (n, D) float32, for any n.

        Every batch is filled up to the same size, so an image's features do not depend on what came with it.
        """
        parts = []
        for start in range(0, len(pixels), self.batch):
            part = pixels[start : start + self.batch]
            n = len(part)
            if n < self.batch:
                part = np.concatenate([part, np.zeros((self.batch - n, *part.shape[1:]), np.uint8)])
            parts.append(np.array(self.answer(part)[:n], dtype=np.float32))
        return np.concatenate(parts)


def openvino_is_there() -> bool:
    return importlib.util.find_spec("openvino") is not None


def open_engine(encoder: Encoder, side: int, *, device: str = "cpu", engine: str = AUTO) -> Engine:
    """The fastest way to run ``encoder`` on images of ``side`` pixels here.

    ``auto`` takes OpenVINO on a CPU where it is installed and gives torch's answers, and torch everywhere else.
    """
    check_choice("engine", engine, ENGINES)
    if engine == OPENVINO and not openvino_is_there():
        raise InvalidSettingError("OpenVINO is not installed here. Install it (pip install openvino), or choose torch.")
    if engine == TORCH or device != "cpu" or not openvino_is_there():
        return _torch_engine(encoder, side, device)
    try:
        return _openvino_engine(encoder, side)
    except Exception as error:  # noqa: BLE001 - whatever a converter says of an unusual net, torch can run it
        if engine == OPENVINO:
            raise InvalidSettingError(f"OpenVINO cannot run this encoder: {str(error)[:200]}. Choose torch.") from error
        log.warning("OpenVINO cannot run this encoder, torch does: %s", str(error)[:200])
        return _torch_engine(encoder, side, device)


def _torch_engine(encoder: Encoder, side: int, device: str) -> Engine:
    import torch

    from semiprune_core.learning.device import channels_last

    place = torch.device(device)
    mean, std = (torch.tensor(values, device=place).view(1, 3, 1, 1) for values in (encoder.mean, encoder.std))
    net = channels_last(folded(encoder.net), place)

    @torch.inference_mode()
    def answer(pixels: np.ndarray) -> FloatArray:
        seen = torch.from_numpy(np.ascontiguousarray(pixels)).to(place).permute(0, 3, 1, 2).float() / 255
        seen = ((seen - mean) / std).contiguous(memory_format=torch.channels_last)
        with torch.autocast(place.type, torch.float16, enabled=place.type == "cuda"):
            return net(seen).flatten(1).float().cpu().numpy()

    return Engine(TORCH, BATCH, answer)


def folded(net: nn.Module) -> nn.Module:
    """A copy of ``net`` in which a normalisation right behind a convolution is part of it: half the memory traffic."""
    from torch import nn
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    net = copy.deepcopy(net).eval()
    for layers in [module for module in net.modules() if isinstance(module, nn.Sequential)]:
        for number in range(len(layers) - 1):
            conv, norm = layers[number], layers[number + 1]
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                layers[number], layers[number + 1] = fuse_conv_bn_eval(conv, norm), nn.Identity()
    return net


def _openvino_engine(encoder: Encoder, side: int) -> Engine:
    """The net as a compiled graph in fp32; refused where its answers differ from torch's.

    The frontend is called directly: ``openvino.convert_model`` would report its use over the network.
    """
    import openvino
    import torch

    trial = _trial_images(side)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (encoder.mean, encoder.std))
    seen = (torch.from_numpy(trial).permute(0, 3, 1, 2).float() / 255 - mean) / std
    with _one_thread(), torch.inference_mode():  # for two images the start of more threads costs more than they save
        wanted = encoder.net(seen).flatten(1).numpy()
        model = _converted(encoder.net, seen[:1])
    model.inputs[0].get_node().set_element_type(openvino.Type.f32)
    model.reshape([BATCH, 3, side, side])
    steps = openvino.preprocess.PrePostProcessor(model)
    steps.input().tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC"))
    steps.input().model().set_layout(openvino.Layout("NCHW"))
    scale = steps.input().preprocess().convert_element_type(openvino.Type.f32)
    scale.mean([255 * value for value in encoder.mean]).scale([255 * value for value in encoder.std])
    options = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": 1}
    request = openvino.Core().compile_model(steps.build(), "CPU", options).create_infer_request()

    def answer(pixels: np.ndarray) -> FloatArray:
        given = [np.ascontiguousarray(pixels)]
        return request.infer(given, share_inputs=True, share_outputs=True)[0].reshape(len(pixels), -1)

    engine = Engine(OPENVINO, BATCH, answer)
    if (likeness := float(cosines(engine(trial), wanted).min())) < SAME:
        raise ValueError(f"its answers differ from torch's (cosine {likeness:.5f})")
    return engine


def _converted(net: nn.Module, example: torch.Tensor) -> Any:
    """The net as OpenVINO's graph, for images as large as the ``example``."""
    import torch
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sizes that become constants, which they are
        traced = torch.jit.freeze(torch.jit.trace(net, example, check_trace=False))
        frontend = FrontEndManager().load_by_framework("pytorch")
        decoder = TorchScriptPythonDecoder(traced)  # held until the conversion is over
        return frontend.convert(frontend.load(decoder))


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _trial_images(side: int) -> np.ndarray:
    """(TRIED, side, side, 3) uint8: soft blotches of colour, the same each time."""
    coarse = np.random.default_rng(0).integers(0, 256, (TRIED, 8, 8, 3), dtype=np.uint8)
    step = -(-side // 8)
    return np.ascontiguousarray(coarse.repeat(step, axis=1).repeat(step, axis=2)[:, :side, :side])


def cosines(features: FloatArray, others: FloatArray) -> FloatArray:
    """(n,) how alike the rows of two arrays (n, D) are; two rows of zeros are equal."""
    lengths = np.linalg.norm(features, axis=1) * np.linalg.norm(others, axis=1)
    products = (features * others).sum(1)
    return np.where(lengths > 0, products / np.where(lengths > 0, lengths, 1), 1.0)
