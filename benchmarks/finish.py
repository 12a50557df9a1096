"""From the last label to coresets, map and report: the seconds of every stage, features given.

    .venv/bin/python benchmarks/finish.py --pool FILE [--home DIR] [--rounds 3] [--small] [--keep]

``--pool`` is anything to import that has reference labels, which stand in for people. The pool is imported and
embedded first, a tenth of it drawn and labeled; neither is counted, and a second call with the same --home finds them.
Every round takes a copy of that project, so that nothing is found again, and a fresh process, as a press of the button
does: its start is counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from common import benchmark_parser, finish, label_a_tenth, spread

from semiprune_core import jobs
from semiprune_core.copies import copy_project
from semiprune_core.features import submit_features
from semiprune_core.finish import STAGES, submit_finish
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.allowing import allow_named, place_of
from semiprune_core.importing.sources import parse_source
from semiprune_core.paths import ROOTS_VARIABLE
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Project, Workspace, slug_of
from semiprune_core.results import latest_pseudo


def prepared(home: Path, pool_file: str) -> Project:
    """A project with its images, features, and a labeled tenth."""
    os.environ[ROOTS_VARIABLE] = str(Path(pool_file).resolve().parent) if Path(pool_file).exists() else str(home)
    workspace = Workspace.open(home)
    name = slug_of(f"finish {Path(pool_file).stem}")
    if name in workspace:
        return workspace.project(name)
    project = workspace.create(name, name=name)
    spec = parse_source(pool_file)
    allow_named(workspace, place_of(spec))
    import_source(project, ImportSettings(source=spec.to_json()), Collected())
    project = workspace.project(project.name)
    jobs.follow(submit_features(project), Collected())
    label_a_tenth(project)
    return project


def one_round(project: Project, number: int) -> dict[str, Any]:
    copy = copy_project(project.workspace, project.name, f"Round {number} {time.time_ns()}")
    begun = time.monotonic()
    job = submit_finish(copy)
    jobs.follow(job, Collected())
    seconds = time.monotonic() - begun
    result = job.result() or {}
    right = latest_pseudo(copy).artifact.facts["reference"]
    return {
        "seconds": round(seconds, 2),
        "stages": result["seconds"],
        "coresets": len(result["artifacts"]["select"]),
        "start": latest_pseudo(copy).start,
        "right": right and round(right["value"], 4),
        "notes": result["notes"],
    }


def main() -> None:
    parser = benchmark_parser(__doc__, small="one round")
    parser.add_argument("--pool", default="demo", help="what to import (default: the bundled demo)")
    parser.add_argument("--home", type=Path, help="a workspace that is kept (default: a new one, removed at the end)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = prepared(args.home or Path(folder) / "home", args.pool)
        measured = [one_round(project, number) for number in range(1 if args.small else args.rounds)]
        stages = {stage: spread([entry["stages"][stage] for entry in measured]) for stage in STAGES}
        keys = {
            "images": len(project.pool()),
            "seconds": spread([entry["seconds"] for entry in measured]),
            "stages": stages,
        }
        finish(args, "finish", keys, {"pool": Path(args.pool).name, "rounds": measured})


if __name__ == "__main__":
    main()
