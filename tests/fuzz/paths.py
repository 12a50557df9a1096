"""Names and paths that a person may type: of sources, projects, classes and annotators."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from random import Random

from semiprune_core.errors import SemiPruneError
from semiprune_core.importing.allowing import place_of
from semiprune_core.importing.sources import parse_source
from semiprune_core.labeling.classes import class_name
from semiprune_core.labeling.events import check_annotator
from semiprune_core.paths import PathGuard, check_can_be_allowed, has_hidden_part, normal_relative, open_beneath
from semiprune_core.project.workspace import Workspace
from tests.fuzz.mutations import hostile_name, hostile_number
from tests.fuzz.running import Said, TryOne
from tests.fuzz.sources import fresh, taken_in


def paths(base: Path) -> TryOne:
    workspace = Workspace.open(base / "home")
    allowed = base / "allowed"
    guard = PathGuard((allowed,), closed=workspace.root)

    def hostile_path(rng: Random) -> str:
        parts = [
            rng.choice((hostile_name(rng), hostile_number(rng), "..", "input", "link"))
            for _ in range(rng.choice((1, 2, 5)))
        ]
        return rng.choice(("", f"{allowed}/", f"{base}/", "~", "zip:", "npz:", "manifest:")) + rng.choice("//\\").join(
            parts
        )

    def resolve(text: str) -> None:
        real = guard.resolve(text, base=allowed)
        assert real == allowed or allowed in real.parents, real
        assert not has_hidden_part(real.relative_to(allowed)), real

    def relative(text: str) -> None:
        spelled = normal_relative(text)
        assert spelled == normal_relative(spelled) and not spelled.startswith("/") and ".." not in spelled.split("/")

    def beneath(text: str) -> None:
        with contextlib.suppress(OSError):  # reading gives it its name
            os.close(open_beneath(str(allowed), os.path.join(allowed, guard.resolve(text, base=allowed))))

    def allow(text: str) -> None:
        if (place := place_of(parse_source(text))) is not None:
            check_can_be_allowed(place)

    def create(text: str) -> None:
        made = workspace.create(text)
        assert made.folder.parent == workspace.root
        made.folder.rename(base / "scratch" / f"gone-{made.name}-{os.urandom(4).hex()}")

    def take_in(text: str) -> None:
        taken_in(parse_source(text), base)

    calls = (resolve, relative, beneath, allow, create, workspace.project, class_name, check_annotator, take_in)

    def try_one(rng: Random) -> list[Said]:
        folder = fresh(base)
        (folder / "link").symlink_to(rng.choice(("../../outside", "/", "link", "..")))
        text = hostile_path(rng)
        said = []
        for call in calls:
            try:
                call(text)
            except SemiPruneError as error:
                said.append((error.code, str(error)))
        return said

    return try_one
