"""Whatever is imported, posted or typed: a result or a sentence, little time and memory, nothing else touched."""

import pytest

from semiprune_core.project.workspace import Workspace
from tests.fuzz.running import DONE, KINDS, faults, new_base
from tests.server.test_labels import make_project
from tests.support.effort import FULL

SEED = 0
INPUTS = (2000 if FULL else 300) // len(KINDS) + 1


WATCHED = {
    "raises": "an error without a name",
    "says nothing": "no sentence",
    "names nothing": "names nothing",
    "dies": "the process ended (-11)",
    "writes": "it changed what lies around the workspace",
    "writes elsewhere": "it left its folder: open",
    "calls": "it left its folder: a connection",
    "behaves": "",
}
if FULL:  # 6 s of computing, 600 MB
    WATCHED |= {"hangs": "the process ended (-24)", "grows": "memory grew by"}


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    base = new_base(tmp_path_factory.mktemp("fuzz"))
    make_project(Workspace.open(base / "home"), "one")
    return base


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_inputs_are_answered_in_words(base, kind):
    found = [
        f"{kind} {SEED}/{number}: {fault}"
        for number, fault in faults(kind, SEED, range(INPUTS), base)
        if number != DONE
    ]
    assert not found, "\n".join([*found, f"Repeat one with: python -m tests.fuzz {SEED} {kind} NUMBER"])


@pytest.mark.parametrize("what", WATCHED)
def test_the_watch_sees(tmp_path, what):
    base = new_base(tmp_path)
    (base / "allowed" / "what").write_text(what)
    found = [fault for number, fault in faults("misbehaving", SEED, [0], base) if number != DONE]
    assert len(found) == (what != "behaves") and WATCHED[what] in "".join(found), found
