"""Make demo_pool.npz from Fashion-MNIST as Debian's package dataset-fashion-mnist installs it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

SOURCE = Path("/usr/share/datasets/fashion-mnist")
NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
N_POOL, N_TEST, SEED = 6000, 2000, 0


def read_idx(name: str) -> np.ndarray:
    """An IDX file: four bytes of magic (the last one the number of dimensions), the dimensions, the values."""
    raw = gzip.decompress((SOURCE / name).read_bytes())
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def main() -> None:
    rng = np.random.default_rng(SEED)
    images, labels, split, paths = [], [], [], []
    for part, count, folder, name in (("train", N_POOL, "train", "pool"), ("t10k", N_TEST, "test", "test")):
        all_images, all_labels = read_idx(f"{part}-images-idx3-ubyte.gz"), read_idx(f"{part}-labels-idx1-ubyte.gz")
        chosen = np.sort(rng.choice(len(all_images), count, replace=False))
        images.append(all_images[chosen])
        labels.append(all_labels[chosen])
        split += [name] * count
        paths += [f"{folder}/{number:05d}.png" for number in chosen]
    np.savez_compressed(
        Path(__file__).with_name("demo_pool.npz"),
        images=np.concatenate(images),
        labels=np.concatenate(labels).astype(np.int16),
        class_names=np.array(NAMES),
        split=np.array(split),
        paths=np.array(paths),
    )


if __name__ == "__main__":
    main()
