"""The lock files: complete, with hashes, without the address of an index."""

import platform
import re
import sys

import pytest

from tests import make_lock
from tests.make_lock import CASES, ROOT, SYSTEMS, canonicalize_name, listed, marker_of

LOCKS = ("requirements.lock", "requirements-dev.lock")
ENTRY = re.compile(r"^([a-z0-9-]+)==(\S+)((?: ; [^\\]+)?)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def locked():
    """Versions by package."""
    return {name: version for lock in LOCKS for name, version, _, _ in ENTRY.findall((ROOT / lock).read_text())}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_nothing_but_versions_and_hashes(lock):
    rest = [line for line in ENTRY.sub("", (ROOT / lock).read_text()).splitlines() if line and not line.startswith("#")]
    assert rest == (["-r requirements.lock"] if "dev" in lock else [])


def test_what_is_asked_for_is_locked_in_that_version(locked):
    for requirement in listed(ROOT / "requirements-dev.txt"):
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier, "run `make lock`"


def test_everything_that_is_needed_here_is_locked(locked, monkeypatch):
    case = (f"3.{sys.version_info.minor}", sys.platform, platform.machine())
    if case not in CASES:
        pytest.skip(f"no lock is made for {case}")
    monkeypatch.setattr(make_lock, "CASES", (case,))
    lock = make_lock.Lock()
    lock.walk([*listed(ROOT / "requirements-dev.txt"), make_lock.BUILD])
    assert len(lock.versions) > 80
    assert {name: str(version) for name, version in lock.versions.items()}.items() <= locked.items(), "run `make lock`"


@pytest.mark.parametrize(
    "needed, marker",
    [
        (lambda python, system, machine: True, ""),
        (lambda python, system, machine: system == "win32", 'sys_platform == "win32"'),
        (lambda python, system, machine: python < "3.13", 'python_version < "3.13"'),
        (lambda python, system, machine: python >= "3.14", 'python_version >= "3.14"'),
        (
            lambda python, system, machine: machine == "aarch64" and python == "3.11",
            'sys_platform == "linux" and platform_machine == "aarch64" and python_version < "3.12"',
        ),
        (
            lambda python, system, machine: machine in ("x86_64", "AMD64"),
            'sys_platform == "linux" and platform_machine == "x86_64" or sys_platform == "win32"',
        ),
    ],
)
def test_a_marker_says_where_a_package_is_needed_and_nowhere_else(needed, marker):
    cases = {case for case in CASES if needed(*case)}
    assert marker_of(cases) == marker
    said = make_lock.Requirement(f"x ; {marker}" if marker else "x")
    assert {case for case in CASES if make_lock.wanted_in(said, case)} == cases


def test_a_wheel_for_an_older_python_is_left_out():
    served = {
        name: make_lock.File(f"x-1.0-{name}.whl", "", "").serves
        for name in (
            "cp310-cp310-win_amd64",
            "cp311-cp311-win_amd64",
            "cp38-abi3-win_amd64",
            "py3-none-any",
            "pp311-pypy311_pp73-any",
        )
    }
    assert [name for name, serves in served.items() if not serves] == [
        "cp310-cp310-win_amd64",
        "pp311-pypy311_pp73-any",
    ]
    assert len(SYSTEMS) * 4 == len(CASES)
