"""``python -m tests.fuzz SEED [KIND [NUMBER]]``: all inputs of a seed, those of a kind, or one."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from semiprune_core.importing import workers
from semiprune_core.project.workspace import Workspace
from tests.fuzz.running import DONE, KINDS, faults, new_base
from tests.server.test_labels import make_project


def main(seed: str, *rest: str) -> int:
    workers.START_METHOD = "forkserver"
    numbers = [int(rest[1])] if len(rest) > 1 else range(2000 // len(KINDS))
    n_faults = 0
    for kind in rest[:1] or KINDS:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
            base = new_base(Path(folder))
            make_project(Workspace.open(base / "home"), "one")
            for number, fault in faults(kind, int(seed), numbers, base):
                n_faults += number != DONE
                what = f"{seed}/{number}" if number != DONE else f"{len(numbers)} inputs"
                sys.stdout.write(f"{kind} {what}: {fault}\n")
    sys.stdout.write(f"{n_faults} faults\n")
    return min(n_faults, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
