"""Where a benchmark ran, for the file its results go to."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from semiprune_core.artifacts import versions

RESULTS = Path(__file__).parent / "results"


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def machine() -> dict[str, Any]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"cpu": cpu_name(), "cores": os.cpu_count(), "load_1min": load, "system": platform.system()}


def keep(name: str, found: dict[str, Any]) -> None:
    """Write results with machine, versions and command beside them to ``results/<name>.json``."""
    RESULTS.mkdir(exist_ok=True)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    command = " ".join(["benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]])
    full = {**found, "command": command, "when": when, "machine": machine(), "versions": versions()}
    (RESULTS / f"{name}.json").write_text(json.dumps(full, indent=2) + "\n")
