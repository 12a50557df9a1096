"""A tenth of the bundled demo pool."""

from pathlib import Path

import numpy as np

from semiprune_core.importing.sources.demo import DEMO


def write_tenth(folder: Path) -> Path:
    """Every tenth picture of the bundled pool (600 to prune, 200 for testing), as a file of the same kind."""
    path = folder / DEMO.name
    with np.load(DEMO) as columns:
        n = len(columns["labels"])
        np.savez(path, **{name: column[::10] if len(column) == n else column for name, column in columns.items()})
    return path


def clothes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 28, 28) pictures of the bundled pool, three kinds of clothes in turn, and what they are (n,) as text."""
    with np.load(DEMO) as columns:
        images, labels, names = columns["images"], np.asarray(columns["labels"]), columns["class_names"]
    kinds = labels if labels.dtype.kind == "U" else np.asarray(names)[labels]
    rows = [np.flatnonzero(kinds == kind)[: n // 3 + 1] for kind in ("Trouser", "Bag", "Sneaker")]
    chosen = np.stack([row[: min(map(len, rows))] for row in rows], axis=1).ravel()[:n]
    return images[chosen], kinds[chosen]
