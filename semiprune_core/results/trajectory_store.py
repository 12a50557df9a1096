"""A trajectory on disk: one ``.npy`` file per column, (T, N), written epoch by epoch and read memory-mapped.

    trajectory.json                  schema, n_epochs (planned), n_images, epochs_done
    target_prob.npy, margin.npy, el2n.npy     float32 (T, N)
    correct.npy                      bool (T, N)
    last_entropy_00200.npy           float32 (N,), of the epoch in its name

13 bytes per image and epoch: for C = 100 classes 1/30 of the float32 logits, for ImageNet (C = 1000) 1/300.

Why float32 and not float16: what is stored lies in [-1, 1] or [0, sqrt 2], so both are bounded, but not alike. Near 1
neighbouring float16 numbers are 2^-11 = 5e-4 apart: a probability of 0.9998 becomes 1, the whole easy half of a pool
gets DUAL = 0, and the order the selectors live from is gone. float32 is 6e-8 apart there. An AUM over any number of
epochs is then off by at most 3e-8 and a window's deviation by at most 4e-8 (a rounding error of e per value moves a
mean by at most e and a deviation by at most e sqrt(J / (J - 1))), below what two batch orders do to the training.

Why (T, N) and not (N, T): the training pass ends an epoch with one row for all images, so a row is one contiguous
write. Scores want all epochs of some images; they read blocks of 32,768 images, which are contiguous pieces of 128 KB.

A row counts only when ``trajectory.json`` says so, and it says so after the row is on the disk. A crash in the middle
of an epoch therefore loses that epoch and nothing else, and a run that was stopped and resumed leaves the same bytes
as one that was not.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semiprune_core import files
from semiprune_core.checks import check_range
from semiprune_core.errors import DiskFullError, InvalidDataError, WorkspaceError
from semiprune_core.records import FloatArray, Trajectory

SCHEMA = 1
META = "trajectory.json"
COLUMNS: dict[str, type[np.generic]] = {
    "target_prob": np.float32,
    "margin": np.float32,
    "correct": np.bool_,
    "el2n": np.float32,
}
BYTES_PER_CELL = sum(np.dtype(kind).itemsize for kind in COLUMNS.values())


class TrajectoryWriter:
    """Writes a trajectory into ``folder``, one epoch at a time.

    A new folder starts empty; a folder with a trajectory of the same size is continued after ``epochs_done``.
    """

    def __init__(self, folder: str | Path, n_epochs: int, n_images: int) -> None:
        check_range("n_epochs", n_epochs, low=1)
        check_range("n_images", n_images, low=1)
        self.folder = Path(folder)
        self.n_epochs = n_epochs
        self.n_images = n_images
        if (self.folder / META).is_file():
            self.epochs_done = _continued(self.folder, n_epochs, n_images)
            self._forget_other_entropies()
        else:
            self._create()

    def append(
        self,
        *,
        target_prob: FloatArray,
        margin: FloatArray,
        correct: npt.NDArray[np.bool_],
        el2n: FloatArray,
        entropy: FloatArray | None = None,
    ) -> None:
        """Add the next epoch: (N,) arrays in pool order. When this returns, the epoch is on the disk."""
        if self.epochs_done >= self.n_epochs:
            raise InvalidDataError(f"This trajectory is complete: it has all {self.n_epochs} epochs.")
        epoch = self.epochs_done + 1
        rows = {"target_prob": target_prob, "margin": margin, "correct": correct, "el2n": el2n}
        checked = {name: self._checked(name, row, COLUMNS[name], epoch) for name, row in rows.items()}
        ending = None if entropy is None else self._checked("entropy", entropy, np.float32, epoch)
        with files.named_disk_errors(self.folder):
            for name, row in checked.items():
                with open(self.folder / f"{name}.npy", "r+b") as file:
                    file.seek(_data_start(self.folder / f"{name}.npy") + self.epochs_done * row.nbytes)
                    file.write(row.tobytes())
                    file.flush()
                    os.fsync(file.fileno())
            if ending is not None:
                with files.open_atomic(_entropy_path(self.folder, epoch)) as file:
                    np.lib.format.write_array(file, ending, allow_pickle=False)
        self._commit(epoch)
        self._forget_other_entropies()

    def truncate(self, epochs: int) -> None:
        """Go back to the first ``epochs`` epochs, as when training resumes from an older checkpoint."""
        check_range("epochs", epochs, low=0, high=self.epochs_done)
        self._commit(epochs)
        self._forget_other_entropies()

    def _create(self) -> None:
        needed = BYTES_PER_CELL * self.n_epochs * self.n_images
        with files.named_disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self.folder).free
            if free < needed:
                raise DiskFullError(
                    f"A trajectory of {self.n_epochs} epochs and {self.n_images} images needs {needed / 1e6:.0f} MB, "
                    f"but {self.folder} has {free / 1e6:.0f} MB left. Free some space, or train fewer epochs."
                )
            for name, kind in COLUMNS.items():  # full length from the start; rows not yet written are holes in the file
                with open(self.folder / f"{name}.npy", "wb") as file:
                    np.lib.format.write_array_header_1_0(
                        file,
                        {
                            "descr": np.lib.format.dtype_to_descr(np.dtype(kind)),
                            "fortran_order": False,
                            "shape": (self.n_epochs, self.n_images),
                        },
                    )
                    file.truncate(file.tell() + self.n_epochs * self.n_images * np.dtype(kind).itemsize)
                    file.flush()
                    os.fsync(file.fileno())
        self._commit(0)

    def _commit(self, epochs: int) -> None:
        facts = {"schema": SCHEMA, "n_epochs": self.n_epochs, "n_images": self.n_images, "epochs_done": epochs}
        files.write_json(self.folder / META, facts)
        self.epochs_done = epochs

    def _forget_other_entropies(self) -> None:
        for path in self.folder.glob("last_entropy_*.npy"):
            if path != _entropy_path(self.folder, self.epochs_done):
                path.unlink()

    def _checked(self, name: str, row: np.ndarray, kind: type[np.generic], epoch: int) -> np.ndarray:
        row = np.asarray(row)
        if row.shape != (self.n_images,):
            raise InvalidDataError(f"{name} of epoch {epoch} has shape {row.shape}, expected ({self.n_images},).")
        if kind is not np.bool_ and not np.isfinite(row).all():
            raise InvalidDataError(
                f"{name} of epoch {epoch} is not finite for {int((~np.isfinite(row)).sum())} images: the training "
                "diverged. Lower the learning rate and start again."
            )
        return np.ascontiguousarray(row, dtype=kind)


def open_trajectory(folder: str | Path, n_epochs: int | None = None) -> Trajectory:
    """The trajectory in ``folder``, memory-mapped and read-only; with ``n_epochs`` its first T epochs only.

    Rows that were planned but not yet written are never shown. ``last_entropy`` is there when it was recorded for
    the last epoch shown.
    """
    folder = Path(folder)
    facts = _facts(folder)
    done, n_images = int(facts["epochs_done"]), int(facts["n_images"])
    if done == 0:
        raise WorkspaceError(f"{folder} has no finished epoch yet. Let the dynamics run finish at least one.")
    shown = done if n_epochs is None else n_epochs
    check_range("n_epochs", shown, low=1, high=done)
    columns = {name: _open_column(folder, name, kind, n_images)[:shown] for name, kind in COLUMNS.items()}
    entropy_path = _entropy_path(folder, shown)
    entropy = np.load(entropy_path, allow_pickle=False) if entropy_path.is_file() else None
    return Trajectory(**columns, last_entropy=entropy)


def _open_column(folder: Path, name: str, kind: type[np.generic], n_images: int) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        column = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{path} is missing or damaged ({error}). Repeat the dynamics run.") from error
    if column.dtype != np.dtype(kind) or column.ndim != 2 or column.shape[1] != n_images:
        raise WorkspaceError(
            f"{path} holds {column.dtype} {column.shape}, expected {np.dtype(kind)} for {n_images} images. "
            "Repeat the dynamics run."
        )
    return column


def _continued(folder: Path, n_epochs: int, n_images: int) -> int:
    facts = _facts(folder)
    if (facts["n_epochs"], facts["n_images"]) != (n_epochs, n_images):
        raise WorkspaceError(
            f"{folder} holds a trajectory of {facts['n_epochs']} epochs and {facts['n_images']} images, not of "
            f"{n_epochs} and {n_images}. Start a new run instead of resuming this one."
        )
    return int(facts["epochs_done"])


def _facts(folder: Path) -> dict[str, int]:
    if not (folder / META).is_file():
        raise WorkspaceError(f"{folder} holds no trajectory: it has no {META}. Start the dynamics run first.")
    facts = files.read_json(folder / META)
    if facts.get("schema") != SCHEMA:
        raise WorkspaceError(
            f"{folder} was written by another version (trajectory schema {facts.get('schema')}, this one reads "
            f"{SCHEMA}). Update SemiPrune Studio."
        )
    return facts


def _data_start(path: Path) -> int:
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        return file.tell()


def _entropy_path(folder: Path, epoch: int) -> Path:
    return folder / f"last_entropy_{epoch:05d}.npy"
