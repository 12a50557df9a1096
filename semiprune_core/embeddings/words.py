"""Words as CLIP reads them, in the space of its image features: for looking through a pool by text.

The text part is open_clip's, from one file of its weights that lies in the workspace's folder ``weights``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from semiprune_core.errors import InvalidDataError, SourceError
from semiprune_core.records import FloatArray

PACKAGE = "open_clip"
MODELS = {"clip_vit_b_32": "ViT-B-32-quickgelu", "clip_vit_b_16": "ViT-B-16-quickgelu"}
"""Our names of CLIP's image part, and open_clip's of the whole."""
FILE = "open_clip_model.safetensors"
TEXT_PART, IMAGE_PART = "token_embedding.weight", "visual.conv1.weight"
PATCHES = {"clip_vit_b_32": 32, "clip_vit_b_16": 16}
LARGEST_TABLE = 100 << 20


def missing(folder: Path, encoder: str) -> str:
    """What is missing to read words, and what to do; "" where nothing is."""
    if importlib.util.find_spec(PACKAGE) is None:
        return "Words need the package open_clip. Install it: pip install open_clip_torch"
    if text_weights(folder, encoder) is None:
        name = f"vit_base_patch{PATCHES[encoder]}_clip_224.openai"
        return f"Words need the text part of CLIP. Put {FILE} of timm/{name} into {folder}."
    return ""


def text_weights(folder: Path, encoder: str) -> Path | None:
    """The file in ``folder`` that holds the text part belonging to an image encoder."""
    for path in sorted(folder.glob("*.safetensors")) if folder.is_dir() else ():
        shapes = dict(_shapes(path))
        if TEXT_PART in shapes and shapes.get(IMAGE_PART, (0,))[-1] == PATCHES[encoder]:
            return path
    return None


def read_words(encoder: str, weights: Path, words: str) -> FloatArray:
    """(D,) what CLIP makes of ``words``."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    open_clip: Any = importlib.import_module(PACKAGE)
    net = open_clip.create_model(MODELS[encoder], load_weights=False)
    try:
        net.load_state_dict(load_file(weights), strict=False)
    except (SafetensorError, RuntimeError) as error:
        raise SourceError(f"{weights.name} does not hold CLIP's weights. Copy it again.") from error
    with torch.inference_mode():
        answer: FloatArray = net.eval().encode_text(open_clip.tokenize([words]))[0].float().numpy()
    if not answer.any():
        raise InvalidDataError("CLIP made nothing of these words. Try others.")
    return answer


def _shapes(path: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the tensors of a safetensors file, from its table; nothing of a damaged one."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > LARGEST_TABLE:
            return
        try:
            for name, entry in json.loads(file.read(length)).items():
                if name != "__metadata__":
                    yield name, tuple(int(side) for side in entry["shape"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return
