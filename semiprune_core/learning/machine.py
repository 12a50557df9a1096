"""What this machine can train with, found out in a process of its own: the app never loads torch.

``python -m semiprune_core.learning.machine`` writes it as one line of JSON.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from semiprune_core.errors import InvalidSettingError
from semiprune_core.jobs.launch import own_modules

SECONDS = 180
REMEDY = "Run `make install` to install matching versions of torch and torchvision."


@dataclass(frozen=True)
class Device:
    """One place to compute: ``name`` as torch says it, ``memory`` in bytes."""

    name: str
    title: str
    memory: int


@dataclass(frozen=True)
class NetFacts:
    name: str
    title: str
    about: str


@dataclass(frozen=True)
class Machine:
    """``problem`` is a sentence where torch or torchvision cannot be used; ``devices`` the best one first."""

    devices: tuple[Device, ...]
    nets: tuple[NetFacts, ...]
    torch: str | None
    n_cores: int
    problem: str | None = None

    @property
    def can_train(self) -> bool:
        return self.torch is not None

    @property
    def recommended_preset(self) -> str:
        return "standard" if self.devices and self.devices[0].name != "cpu" else "quick"

    @property
    def n_gpus(self) -> int:
        return sum(device.name.startswith("cuda") for device in self.devices)


@functools.lru_cache(maxsize=1)
def look() -> Machine:
    """Look once per process; takes as long as loading torch does, and no time where it is loaded already."""
    if "torch" in sys.modules:
        return explore()
    environment = {**os.environ, **own_modules()}
    command = [sys.executable, "-m", "semiprune_core.learning.machine"]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
        )
        report = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return _without_torch(f"torch could not be tested ({type(error).__name__}). {REMEDY}")
    devices = tuple(Device(**values) for values in report.pop("devices"))
    return Machine(devices=devices, nets=tuple(NetFacts(**values) for values in report.pop("nets")), **report)


def devices_for(device: str, nproc: int = 1) -> str:
    """The devices a run occupies, as jobs write them: ``auto`` is the best one, several GPUs are counted from 0."""
    if device == "cpu":
        return device
    here = look()
    if device == "auto":
        device = here.devices[0].name if here.devices else "cpu"
    names = [place.name for place in here.devices]
    if device == "cuda" and "cuda:0" in names:
        device = "cuda:0"
    if device not in names:
        raise InvalidSettingError(f"device '{device}' is not available here. Available: auto, {', '.join(names)}.")
    if nproc > 1 and device.startswith("cuda"):
        if nproc > here.n_gpus:
            raise InvalidSettingError(f"nproc {nproc} needs {nproc} GPUs; this machine has {here.n_gpus}.")
        return ",".join(f"cuda:{number}" for number in range(nproc))
    return device


def _without_torch(problem: str) -> Machine:
    cpu = Device("cpu", "CPU", int(psutil.virtual_memory().total))
    return Machine((cpu,), (), None, _n_cores(), problem)


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def explore() -> Machine:
    """Load torch and see: in a process of its own, or in one that trains anyway."""
    try:
        torch: Any = importlib.import_module("torch")
    except (ImportError, OSError, RuntimeError) as error:
        return _without_torch(f"torch cannot be loaded ({_first_line(error)}). {REMEDY}")
    from semiprune_core.learning.nets import NETS

    problem = None
    try:
        importlib.import_module("torchvision")
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        problem = (
            f"torchvision does not work with torch {torch.__version__} ({_first_line(error)}), so its networks "
            f"cannot be used. {REMEDY}"
        )
    ram = int(psutil.virtual_memory().total)
    devices = []
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        facts = torch.cuda.get_device_properties(number)
        devices.append(Device(f"cuda:{number}", str(facts.name), int(facts.total_memory)))
    if torch.backends.mps.is_available():
        devices.append(Device("mps", "Apple GPU", ram))
    devices.append(Device("cpu", f"CPU, {_n_cores()} cores", ram))
    nets = tuple(NetFacts(name, NETS.title(name), str(NETS.facts(name).get("about", ""))) for name in NETS)
    return Machine(tuple(devices), nets, str(torch.__version__), _n_cores(), problem)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0][:160] if text else type(error).__name__


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(explore())) + "\n")
