"""What a case is, and the good pictures around the bad ones."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from semiprune_core.importing.sources.base import SourceSpec

Ending = Literal["stop", "listed"]


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[Path], SourceSpec]
    code: str
    ending: Ending


def adding_to(cases: list[Case]) -> Callable[[str, Ending], Any]:
    """A decorator ``case(code, ending)`` that makes a case of a builder and adds it to ``cases``."""

    def case(code: str, ending: Ending) -> Callable[[Callable[[Path], SourceSpec]], Any]:
        def add(build: Callable[[Path], SourceSpec]) -> Callable[[Path], SourceSpec]:
            cases.append(Case(build.__name__, build, code, ending))
            return build

        return add

    return case


def picture(seed: int = 0, shape: tuple[int, ...] = (12, 16, 3)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def encoded(kind: str = "PNG", pixels: np.ndarray | None = None, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture() if pixels is None else pixels).save(buffer, kind, **options)
    return buffer.getvalue()


GOOD = encoded()


def outside(folder: Path) -> Path:
    """A picture that no import of ``folder`` may reach."""
    secret = folder.parent.parent / "outside" / "secret.png"
    secret.parent.mkdir(exist_ok=True)
    secret.write_bytes(encoded(pixels=picture(99)))
    return secret
