"""Which trackers follow the runs of a workspace: ``SEMIPRUNE_TRACKERS``, else what the page or ``--track`` wrote down.

It is kept in the workspace and not in a project: a project that comes from elsewhere names nobody to be told.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping

from semiprune_core import files
from semiprune_core.errors import InvalidSettingError
from semiprune_core.project.workspace import Workspace
from semiprune_core.tracking.base import TRACKERS

VARIABLE = "SEMIPRUNE_TRACKERS"
FILE = "trackers.json"
OFF = "off"
SCHEMES = ("http://", "https://")


def parse_trackers(text: str) -> dict[str, str]:
    """``tensorboard,mlflow=http://127.0.0.1:5000`` as {name: address}; ``off`` and "" are none."""
    words = [word.strip() for word in text.split(",") if word.strip() and word.strip() != OFF]
    chosen = {name.strip(): address.strip() for name, _, address in (word.partition("=") for word in words)}
    check_trackers(chosen)
    return chosen


def check_trackers(chosen: Mapping[str, str]) -> None:
    """Refuse an unknown tracker, one whose package is missing, and an address that is missing or of another kind."""
    for name, address in chosen.items():
        example = str(TRACKERS.facts(name)["address"])
        if problem := lacking(name):
            raise InvalidSettingError(problem)
        if bool(example) != bool(address):
            wanted = f"needs an address: {name}={example}" if example else f"takes no address, got '{address}'"
            raise InvalidSettingError(f"{TRACKERS.title(name)} {wanted}.")
        if address and not address.startswith(SCHEMES):
            kinds = " or ".join(SCHEMES)
            raise InvalidSettingError(f"The address of {TRACKERS.title(name)} begins with {kinds}; got '{address}'.")


def lacking(name: str) -> str | None:
    """What to install before a tracker can be used, in a sentence; None where it is there."""
    needed = str(TRACKERS.facts(name)["needs"])
    if importlib.util.find_spec(needed) is not None:
        return None
    return f"{TRACKERS.title(name)} needs the package {needed}, which is not installed: pip install {needed}."


def set_outside() -> bool:
    """Whether the environment says it, so that nobody else does."""
    return VARIABLE in os.environ


def chosen_trackers(workspace: Workspace) -> dict[str, str]:
    """{name: address}; empty by default."""
    if set_outside():
        return parse_trackers(os.environ[VARIABLE])
    path = workspace.root / FILE
    return dict(files.read_json(path)["trackers"]) if path.is_file() else {}


def keep_trackers(workspace: Workspace, chosen: Mapping[str, str]) -> None:
    """Follow all runs from now on with ``chosen``."""
    if set_outside():
        raise InvalidSettingError(f"{VARIABLE} says which trackers follow the runs. Change it there.")
    files.write_json(workspace.root / FILE, {"trackers": dict(chosen)})
