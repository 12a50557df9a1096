"""Real images for the experiments: pools of any size, cut at random from a data set, with its test images."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FASHION = Path("/usr/share/datasets/fashion-mnist")  # where Debian's dataset-fashion-mnist puts it
FASHION_CLASSES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


@dataclass(frozen=True, eq=False)
class Data:
    """``images`` (N, H, W[, C]) uint8 and true ``labels`` (N,), and the same for testing."""

    name: str
    images: np.ndarray
    labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    class_names: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        return len(self.class_names)

    def taken(self, kept: np.ndarray, tests: np.ndarray) -> Data:
        """The images at positions ``kept``, to be tested on those at ``tests`` of the test images."""
        chosen = (self.images[kept], self.labels[kept], self.test_images[tests], self.test_labels[tests])
        return Data(self.name, *chosen, self.class_names)


def open_data(dataset: str, n_images: int | None = None, *, n_test: int | None = None, seed: int = 0) -> Data:
    """``fashion`` (Debian's package) or an .npz of images, labels, class_names and split, cut to sizes at random."""
    data = fashion() if dataset == "fashion" else npz_file(Path(dataset))
    rng = np.random.default_rng(seed)
    kept = rng.permutation(len(data.labels))[:n_images]
    return data.taken(kept, rng.permutation(len(data.test_labels))[:n_test])


def fashion() -> Data:
    if not FASHION.is_dir():
        raise SystemExit("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist.")
    arrays = []
    for part in ("train", "t10k"):
        with gzip.open(FASHION / f"{part}-images-idx3-ubyte.gz") as file:
            arrays.append(np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28))
        with gzip.open(FASHION / f"{part}-labels-idx1-ubyte.gz") as file:
            arrays.append(np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64))
    return Data("fashion", *arrays, FASHION_CLASSES)


def npz_file(path: Path) -> Data:
    with np.load(path, allow_pickle=False) as file:
        images, labels, test = file["images"], file["labels"].astype(np.int64), file["split"] == "test"
        names = tuple(map(str, file["class_names"]))
    return Data(path.stem, images[~test], labels[~test], images[test], labels[test], names)
