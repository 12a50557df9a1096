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
