"""Real colour photographs, small: pieces of the two that scikit-learn brings along."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project.pool import PoolSettings

SIDE = 64
"""What the encoders of these tests see: enough for real features, and quick."""


def pieces(n, size=(180, 140)):
    """``n`` pieces of two photographs in turn, each from another place: (height, width, 3) uint8."""
    photos = load_sample_images().images
    rng = np.random.default_rng(0)
    for number in range(n):
        photo = photos[number % 2]
        top, left = (int(rng.integers(0, limit - side)) for limit, side in zip(photo.shape, reversed(size)))
        yield np.ascontiguousarray(photo[top : top + size[1], left : left + size[0]])


@pytest.fixture
def make_photos(tmp_path):
    """A folder with ``n`` JPEG pieces in the class folders temple and flower, from number ``first`` on."""

    def make(name="photos", n=12, first=0, kind="jpg"):
        for number, piece in enumerate(pieces(first + n)):
            if number >= first:
                folder = tmp_path / name / ("flower" if number % 2 else "temple")
                folder.mkdir(parents=True, exist_ok=True)
                Image.fromarray(piece).save(folder / f"{number:03d}.{kind}", quality=92)
        return tmp_path / name

    return make


@pytest.fixture
def photos(make_photos, import_into):
    """A project of twelve photographs."""
    spec = SourceSpec("folder", str(make_photos()))
    return import_into(spec, pool=PoolSettings(size=32, channels=3).to_json())[0]
