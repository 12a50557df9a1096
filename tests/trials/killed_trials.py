"""Run by test_kill_trials.py: a job of many trials whose process is killed (SIGKILL) at random points, and resumed.

Usage: killed_trials.py FOLDER KILLS SEED, where FOLDER/whole and FOLDER/killed hold one workspace with one queued job
each. Prints one JSON object.
"""

import json
import os
import random
import signal
import sys
from pathlib import Path

import pandas as pd
import torch

from semiprune_core.jobs import list_jobs
from semiprune_core.jobs.context import JobContext
from semiprune_core.jobs.kinds import load_kind
from semiprune_core.project.workspace import Workspace
from semiprune_core.trials import BOOK
from semiprune_core.trials import run as trial_run
from tests.learning.killed_runs import child

TIMES = ["minutes"]


class Watched(JobContext):
    """Tells the parent of every report."""

    pipe = 0

    def report(self, done, total, /, **facts):
        super().report(done, total, **facts)
        os.write(self.pipe, b".")


def work(folder, pipe):
    """Run the job of this workspace; its table, without the times, as text. Every training that begins is noted."""
    torch.set_num_threads(1)
    train = trial_run.train_trial

    def noted(*args, **kwargs):
        with open(folder / "trained", "a") as file:
            file.write("x")
        return train(*args, **kwargs)

    trial_run.train_trial = noted
    (job,) = list_jobs(Workspace.open(folder))
    context = Watched(job)
    context.pipe = pipe
    result = load_kind(job.kind)(context)
    table = pd.read_parquet(job.project.artifact(result["artifact"]).path("trials.parquet"))
    return table.drop(columns=TIMES, errors="ignore").to_csv(index=False)


def n_results(folder):
    return sum(len(path.read_bytes().splitlines()) for path in folder.rglob(BOOK))


def main(root, n_kills, seed):
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)  # loads what every child would load again
    (job,) = list_jobs(Workspace.open(root / "whole"))
    load_kind(job.kind)
    whole, killed = root / "whole", root / "killed"
    assert child(whole, None, work) == 0
    rng = random.Random(seed)
    dead = {"write": 0, "step": 0}
    kept = []
    for k in range(n_kills):
        before = n_results(killed)  # a trial that is in the book is reported twice and passed over
        step = ("step", 2 * before + rng.randrange(1, 9))
        kill = ("write", rng.randrange(1, 9), rng.random() < 0.5) if k % 2 else step
        dead[kill[0]] += child(killed, kill, work) == -signal.SIGKILL
        kept.append(n_results(killed) >= before)
    assert child(killed, None, work) == 0
    (job,) = list_jobs(Workspace.open(killed))
    found = {
        "killed": dead,
        "kept": all(kept),
        "same": (whole / "digest").read_text() == (killed / "digest").read_text(),
        "n_artifacts": len([one for one in job.project.artifacts() if one.facts.get("run") == job.id]),
        "n_trained": len((whole / "trained").read_text()),
        "n_trained_killed": len((killed / "trained").read_text()),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
