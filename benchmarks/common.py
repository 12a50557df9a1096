"""What every benchmark shares: its flags, rounds, kept results with their machine, one JSON line at the end."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results")
PLACES = ("--home", "--work", "--data", "--photos", "--pool")
"""Options that name a place on this machine."""
sys.path.insert(0, str(ROOT))

from semiprune_core import files  # noqa: E402
from semiprune_core.labeling import open_store  # noqa: E402
from semiprune_core.labeling.import_labels import take_reference  # noqa: E402
from semiprune_core.project import artifacts  # noqa: E402
from semiprune_core.project.workspace import Project  # noqa: E402


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    return {"cpu": model, "cores": os.cpu_count(), "memory_gb": round(memory / 2**30), "system": platform.platform()}


def label_a_tenth(project: Project, seed: int = 0, *, annotator: str = "benchmark") -> None:
    """Draw a tenth of the pool at random, once; the reference labels stand in for a person."""
    store, pool = open_store(project), project.pool()
    if store.drawings.latest() is not None:
        return
    store.drawings.draw(
        pool_hash=pool.hash,
        ids=pool.ids,
        duplicate_of=pool.duplicate_of,
        fraction=0.1,
        seed=seed,
        annotator=annotator,
    )
    take_reference(store, pool)


def rounds(n: int, *sides: Callable[[], float]) -> list[list[float]]:
    """Measure the sides in turn, ``n`` times, so that a busy machine is busy for all of them."""
    measured: list[list[float]] = [[] for _ in sides]
    for _ in range(n):
        for place, side in zip(measured, sides, strict=True):
            place.append(side())
    return measured


def spread(values: list[float]) -> dict[str, Any]:
    """Median, ends and count, to four digits behind the point."""
    ends = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {**{name: round(value, 4) for name, value in ends.items()}, "n": len(values)}


def benchmark_parser(description: str | None, *, small: str) -> argparse.ArgumentParser:
    """A parser with the two flags of every benchmark; ``small`` says what a small run does."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help=f"{small}; only to see that it runs")
    parser.add_argument(
        "--keep", action="store_true", help="write the result to benchmarks/results/ (small runs: results/small/)"
    )
    return parser


def results_folder(args: argparse.Namespace) -> Path | None:
    """Where this run writes its result; None without ``--keep``. Small runs never touch the real results."""
    return output_folder(args, RESULTS) if args.keep else None


def output_folder(args: argparse.Namespace, work: Path) -> Path:
    """Where a study that grows row by row writes: the results with ``--keep``, else its ``work`` folder."""
    folder = RESULTS if args.keep else work
    folder = folder / "small" if args.small else folder
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_result(folder: Path, name: str, keys: Mapping[str, Any], details: Mapping[str, Any]) -> None:
    """Write a result with command, time, machine, load and versions."""
    files.write_json(
        folder / f"{name}.json",
        {
            **keys,
            "details": details,
            "command": " ".join([f"benchmarks/{Path(sys.argv[0]).name}", *_without_places(sys.argv[1:])]),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "load_average": [round(load, 1) for load in os.getloadavg()],
            "versions": artifacts.versions(),
        },
    )


def finish(args: argparse.Namespace, name: str, keys: Mapping[str, Any], details: Mapping[str, Any]) -> None:
    """Print the keys as the last line; with ``--keep`` write the result first."""
    if folder := results_folder(args):
        write_result(folder, name, keys, details)
    print(json.dumps(keys))


def _without_places(words: Sequence[str]) -> list[str]:
    """A command's words without where on this machine it worked.

    >>> _without_places(["--n", "5", "--home", "/somewhere", "--small"])
    ['--n', '5', '--small']
    """
    return [word for before, word in zip(["", *words], words) if word not in PLACES and before not in PLACES]
