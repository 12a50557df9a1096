"""Write requirements.lock and requirements-dev.lock: every package with its version and the hashes of its files.

``make lock`` installs what requirements-dev.txt asks for and then runs this. Versions are those that are installed here
and thus tested together; what only other systems need is taken in its newest fitting version. A package that not every
Python or system needs gets a marker. Hashes are those of all wheels, so a lock serves every system; the address of the
index is not written down.
"""

from __future__ import annotations

import os
import re
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urljoin

from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST = 11
SYSTEMS = {
    ("linux", "x86_64"): {"platform_system": "Linux", "os_name": "posix"},
    ("linux", "aarch64"): {"platform_system": "Linux", "os_name": "posix"},
    ("darwin", "arm64"): {"platform_system": "Darwin", "os_name": "posix"},
    ("win32", "AMD64"): {"platform_system": "Windows", "os_name": "nt"},
}
Case = tuple[str, str, str]
"""A Python on a system: version, platform, machine."""
CASES: tuple[Case, ...] = tuple((python, *system) for python in PYTHONS for system in SYSTEMS)
BUILD = Requirement("setuptools")
"""What builds our own package."""
HEAD = "# Made by `make lock`. Installed by `make install`, which refuses a file with any other hash."


def environment(case: Case) -> dict[str, str]:
    python, platform, machine = case
    return {
        **SYSTEMS[platform, machine],
        "sys_platform": platform,
        "platform_machine": machine,
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "implementation_version": f"{python}.0",
        "platform_release": "",
        "platform_version": "",
    }


def wanted_in(requirement: Requirement, case: Case, extras: Iterable[str] = ("",)) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**environment(case), "extra": extra}) for extra in extras)


def listed(path: Path) -> list[Requirement]:
    """The requirements of a file and of those that it includes."""
    found = []
    for line in path.read_text().splitlines():
        text = line.partition(" #")[0].strip()
        if text.startswith("-r "):
            found += listed(path.parent / text[3:].strip())
        elif text and not text.startswith("#"):
            found.append(Requirement(text))
    return found


# --- the index -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A file of a package in the index."""

    name: str
    address: str
    sha256: str

    @property
    def version(self) -> Version:
        return parse_wheel_filename(self.name)[1] if self.is_wheel else parse_sdist_filename(self.name)[1]

    @property
    def is_wheel(self) -> bool:
        return self.name.endswith(".whl")

    @property
    def serves(self) -> bool:
        """Whether a Python that we support can use it."""
        if not self.is_wheel:
            return True
        tags = parse_wheel_filename(self.name)[3]
        return any(tag.abi == "abi3" or _new_enough(tag.interpreter) for tag in tags)


def _new_enough(interpreter: str) -> bool:
    number = re.fullmatch(r"cp3(\d+)", interpreter)
    return interpreter.startswith("py3") if number is None else int(number[1]) >= OLDEST


@cache
def files_of(name: str) -> tuple[File, ...]:
    with urllib.request.urlopen(f"{INDEX.rstrip('/')}/{name}/", timeout=60) as answer:
        page, base = answer.read().decode(), answer.url
    found = []
    for address, digest in re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', unescape(page)):
        file = File(unquote(address.rpartition("/")[2]), urljoin(base, address), digest)
        try:
            file.version  # noqa: B018 - asks whether its name can be read
        except ValueError:
            continue
        found.append(file)
    return tuple(found)


def hashes_of(name: str, version: Version) -> list[str]:
    """The hashes of all wheels that can be used; of the source only where there is no wheel."""
    of_version = [file for file in files_of(name) if file.version == version and file.serves]
    chosen = [file for file in of_version if file.is_wheel] or of_version
    if not chosen:
        raise SystemExit(f"The index has no files of {name} {version}.")
    return sorted({file.sha256 for file in chosen})


# --- what needs what -------------------------------------------------------------------------------------------------


@cache
def installed(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def newest(name: str, specifier: SpecifierSet) -> File:
    """The newest fitting wheel of a package that is not installed here."""
    fitting = [file for file in files_of(name) if file.is_wheel and file.serves and file.version in specifier]
    return max((file for file in fitting if not file.version.is_prerelease), key=lambda file: file.version)


def chosen_version(requirement: Requirement) -> Version:
    here = installed(requirement.name)
    return Version(here.version) if here else newest(requirement.name, requirement.specifier).version


@cache
def needs(name: str, version: Version) -> tuple[Requirement, ...]:
    here = installed(name)
    if here:
        return tuple(map(Requirement, here.requires or ()))
    wheel = newest(name, SpecifierSet(f"=={version}"))
    with urllib.request.urlopen(f"{wheel.address}.metadata", timeout=60) as answer:
        return tuple(Metadata.from_email(answer.read(), validate=False).requires_dist or ())


@dataclass
class Lock:
    """Which package in which version, and where it is needed."""

    versions: dict[str, Version] = field(default_factory=dict)
    cases: dict[str, set[Case]] = field(default_factory=lambda: defaultdict(set))

    def walk(self, requirements: Iterable[Requirement]) -> None:
        for case in CASES:
            seen: set[tuple[str, str]] = set()
            waiting = [requirement for requirement in requirements if wanted_in(requirement, case)]
            while waiting:
                waiting += self._take(waiting.pop(), case, seen)

    def _take(self, requirement: Requirement, case: Case, seen: set[tuple[str, str]]) -> Iterator[Requirement]:
        name = canonicalize_name(requirement.name)
        version = self.versions.setdefault(name, chosen_version(requirement))
        if not requirement.specifier.contains(version, prereleases=True):
            raise SystemExit(f"{name} {version} is installed, {requirement} is needed. Run `make lock`.")
        self.cases[name].add(case)
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                yield from (need for need in needs(name, version) if wanted_in(need, case, (extra,)))

    def entries(self) -> list[str]:
        """For each package its version, where it is needed, and its hashes."""
        entries = []
        for name, version in sorted(self.versions.items()):
            marker = marker_of(self.cases[name])
            first = f"{name}=={version}" + (f" ; {marker}" if marker else "")
            entries.append(
                " \\\n    ".join([first, *(f"--hash=sha256:{digest}" for digest in hashes_of(name, version))])
            )
        return entries


def marker_of(cases: set[Case]) -> str:
    """The shortest marker that says these cases and no others.

    >>> marker_of({case for case in CASES if case[1] == "win32"})
    'sys_platform == "win32"'
    """
    by_system = {system: tuple(python for python in PYTHONS if (python, *system) in cases) for system in SYSTEMS}
    clauses: dict[str, str] = {}
    for platform in dict.fromkeys(platform for platform, _ in SYSTEMS):
        machines = {machine: by_system[platform, machine] for at, machine in SYSTEMS if at == platform}
        if len(set(machines.values())) == 1:
            clauses[f'sys_platform == "{platform}"'] = _pythons(next(iter(machines.values())))
        else:
            for machine, pythons in machines.items():
                clauses[f'sys_platform == "{platform}" and platform_machine == "{machine}"'] = _pythons(pythons)
    kept = {place: pythons for place, pythons in clauses.items() if pythons != "never"}
    if len(kept) == len(clauses) and len(set(kept.values())) == 1:
        return next(iter(kept.values()))
    return " or ".join(f"{place} and {pythons}" if pythons else place for place, pythons in kept.items())


def _pythons(pythons: tuple[str, ...]) -> str:
    if not pythons:
        return "never"
    if pythons == PYTHONS:
        return ""
    if pythons == PYTHONS[: len(pythons)]:
        return f'python_version < "{PYTHONS[len(pythons)]}"'
    if pythons == PYTHONS[-len(pythons) :]:
        return f'python_version >= "{pythons[0]}"'
    return " or ".join(f'python_version == "{python}"' for python in pythons)


def lock_of(name: str) -> list[str]:
    lock = Lock()
    lock.walk([*listed(ROOT / name), BUILD])
    return lock.entries()


def write(name: str, lines: list[str]) -> None:
    (ROOT / name).write_text("\n".join([HEAD, *lines, ""]))
    sys.stderr.write(f"{name}: {len(lines)} lines\n")


def main() -> None:
    app = lock_of("requirements.txt")
    more = [entry for entry in lock_of("requirements-dev.txt") if entry not in app]
    write("requirements.lock", app)
    write("requirements-dev.lock", ["-r requirements.lock", *more])


if __name__ == "__main__":
    main()
