"""Run by test_kill.py: train in child processes that are killed (SIGKILL) at many points, and resume until done.

The children are forked before torch has started any thread, so each costs a moment instead of an import.
Usage: killed_runs.py FOLDER KILLS SEED. Prints one JSON object.
"""

import hashlib
import json
import os
import random
import signal
import sys
from pathlib import Path

import numpy as np
import torch

from semiprune_core import files
from semiprune_core.learning.checkpoints import Checkpoints
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.learning.supervised_run import train_supervised
from tests.support.pools import NAMES, make_pool, ssl_settings, supervised_settings


class FileRecorder:
    """A trajectory as one file per epoch."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def epochs_done(self):
        return len(list(self.folder.glob("epoch-*.npy")))

    def append(self, *, target_prob, margin, correct, el2n, entropy=None):
        with files.open_atomic(self.folder / f"epoch-{self.epochs_done:04d}.npy") as file:
            np.save(file, np.stack([target_prob, margin, correct.astype(np.float32), el2n]))

    def truncate(self, epochs):
        for path in sorted(self.folder.glob("epoch-*.npy"))[epochs:]:
            path.unlink()


class ToPipe:
    """Tells the parent of every step."""

    def __init__(self, pipe):
        self.pipe = pipe

    def report(self, done, total, /, **facts):
        os.write(self.pipe, b".")

    def should_stop(self):
        return False


def work(folder, pipe):
    """A semi-supervised run, then a supervised one on its labels; the digest of all they found."""
    torch.set_num_threads(1)
    images, truth = make_pool(40)
    labels = np.where(np.arange(40) < 20, truth, -1)
    semi = train_ssl(
        images,
        labels,
        class_names=NAMES,
        settings=ssl_settings(algorithm="flexmatch", epochs=5, checkpoint_every=2),
        seed=0,
        progress=ToPipe(pipe),
        folder=folder / "ssl",
    )
    record = FileRecorder(folder / "trajectory")
    train_supervised(
        images,
        semi.labels,
        n_classes=3,
        settings=supervised_settings(epochs=7, checkpoint_every=2),
        seed=0,
        progress=ToPipe(pipe),
        folder=folder / "dynamics",
        record=record,
    )
    digest = hashlib.sha256(semi.labels.tobytes() + semi.confidence.tobytes() + semi.features.tobytes())
    for path in sorted(record.folder.glob("epoch-*.npy")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def die_in_write(call, after):
    """Kill this process at its ``call``-th flush or rename of a file, before or after it happens."""
    count = 0

    def dying(original):
        def wrapped(*args):
            nonlocal count
            count += 1
            if count == call and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*args)
            if count == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapped

    files.os.fsync, files.os.replace = dying(os.fsync), dying(os.replace)


def child(folder, kill, work=work):
    """Fork a process that works, and end it as ``kill`` says: ("write", call, after), ("step", n) or None."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        code = 1
        try:
            if kill and kill[0] == "write":
                die_in_write(*kill[1:])
            (folder / "digest").write_text(work(folder, writing))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    seen = 0
    while os.read(reading, 1):
        seen += 1
        if kill and kill[0] == "step" and seen == kill[1]:
            os.kill(pid, signal.SIGKILL)
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def unreadable(folder):
    """Checkpoints that exist and cannot be read."""
    count = 0
    for head in folder.rglob("checkpoint-*.json"):
        step = json.loads(head.read_text())["step"]
        one = Checkpoints(head.parent, json.loads(head.read_text())["fingerprint"])
        count += one.load() is None or bool(one.notes) or step not in one.steps()
    return count


def main(folder, n_kills, seed):
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)  # loads what every child would load again
    rng = random.Random(seed)
    kills = [
        ("write", rng.randrange(1, 14), rng.random() < 0.5) if k % 2 else ("step", rng.randrange(1, 6))
        for k in range(n_kills)
    ]
    assert child(folder / "whole", None) == 0
    killed, bad = {"write": 0, "step": 0}, 0
    for kill in kills:
        if child(folder / "killed", kill) == -signal.SIGKILL:
            killed[kill[0]] += 1
        bad += unreadable(folder / "killed")
    assert child(folder / "killed", None) == 0
    same = (folder / "whole" / "digest").read_text() == (folder / "killed" / "digest").read_text()
    sys.stdout.write(json.dumps({"killed": killed, "unreadable": bad, "same": same}) + "\n")


if __name__ == "__main__":
    root = Path(sys.argv[1])
    for name in ("whole", "killed"):
        (root / name).mkdir()
    main(root, int(sys.argv[2]), int(sys.argv[3]))
