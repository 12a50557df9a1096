"""What the processes of a search do: decode a picture, and let an encoder see it or read words."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from semiprune_core.embeddings import words as text
from semiprune_core.embeddings.encoders import open_encoder, state_hash
from semiprune_core.embeddings.engines import TORCH, open_engine
from semiprune_core.embeddings.originals import SPARE
from semiprune_core.errors import InvalidDataError
from semiprune_core.importing import images, limited
from semiprune_core.project.workspace import Workspace

CPU_SECONDS = 10


def see_picture(side: str, fit: str, name: str) -> Iterator[str]:
    """The file on standard input as the encoder sees it: (side, side, 3) uint8, in base64."""
    limited.limit_effort(CPU_SECONDS)
    image = images.decode(sys.stdin.buffer.read(), name=name, least_side=SPARE * int(side)).image
    yield base64.b64encode(images.fit(image, int(side), 3, fit, reducing_gap=None).tobytes()).decode()


def answer_picture(root: str, encoder: str, weights: str, side: str, weights_hash: str) -> Iterator[float]:
    """The features of the pixels on standard input, by torch: converting the net takes longer than one picture."""
    opened = open_encoder(encoder, weights, guard=Workspace(Path(root)).guard)
    if state_hash(opened.net) != weights_hash:
        raise InvalidDataError(
            f"The weights of {encoder} here are not those that the features were made with. Compute them again."
        )
    pixels = np.frombuffer(sys.stdin.buffer.read(), np.uint8).reshape(1, int(side), int(side), 3)
    yield from map(float, open_engine(opened, int(side), engine=TORCH)(pixels)[0])


def answer_words(encoder: str, weights: str, words: str) -> Iterator[float]:
    """What CLIP makes of words."""
    yield from map(float, text.read_words(encoder, Path(weights), words))
