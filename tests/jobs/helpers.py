"""Waiting on conditions, and processes that supervise like an app that was just started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUPERVISOR = """
import sys, time
from semiprune_core.jobs import launch, list_jobs, supervise
from semiprune_core.project.workspace import Workspace
launch.WORKER_MODULE = "tests.jobs.worker"
workspace, seconds = Workspace.open(sys.argv[1]), float(sys.argv[2])
deadline = time.monotonic() + seconds
while True:
    supervise(workspace)
    print("pass", flush=True)
    if time.monotonic() > deadline or all(job.status().is_over for job in list_jobs(workspace)):
        break
    time.sleep(0.005)
"""


def fresh_supervisor(root: Path, seconds: float) -> subprocess.Popen[str]:
    """A new process that supervises for ``seconds``, or until every job is over."""
    return subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, os.fspath(root), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.fspath(ROOT)},
    )


def spans(project_folder: Path) -> dict[str, list[tuple[float, float]]]:
    """From the notes of the kind "count": for each job the (start, end) of every run it had."""
    begun: dict[str, list[float]] = {}
    ended: dict[str, list[float]] = {}
    for name, times in (("starts.txt", begun), ("ends.txt", ended)):
        for line in (project_folder / "runs" / name).read_text().splitlines():
            job_id, _, moment = line.split()
            times.setdefault(job_id, []).append(float(moment))
    return {job_id: list(zip(begun[job_id], ended.get(job_id, []))) for job_id in begun}
