"""Install the tools that our exports, models and trackers are for, and run the tests that open them.

    python -m tests.tools FOLDER [NAME ...]     (several GB and minutes; an environment that is there is used again)

Each tool has a virtual environment below FOLDER that also sees the packages of the Python that runs this.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.tools import NAMED, label_studio

ROOT = Path(__file__).resolve().parents[2]
DONE = "installed.txt"


@dataclass(frozen=True)
class Tool:
    """What pip installs, and the tests; ``alone`` where it must not see our packages and is only started."""

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    alone: bool = False


TOOLS = {
    "onnx": Tool(("onnx==1.23.2", "onnxscript==0.7.2", "onnxruntime==1.31.1"), ("tests/prediction/test_onnx.py",)),
    "trackers": Tool(("tensorboard==2.21.0", "mlflow==3.17.2"), ("tests/tracking/test_real_trackers.py",)),
    "tables": Tool(
        ("cleanlab==2.9.0", "polars==2.1.0", "duckdb==2.0.0"),
        ("tests/exporting/test_real_tables.py",),
    ),
    "fiftyone": Tool(("fiftyone==1.22.1",), ("tests/exporting/test_real_fiftyone.py",)),
    "lightly": Tool(("lightly-studio==1.2.0",), ("tests/exporting/test_real_lightly.py",)),
    "label_studio": Tool(
        (f"label-studio=={label_studio.VERSION}",), ("tests/exporting/test_label_studio.py",), alone=True
    ),
}


def python_of(folder: Path) -> Path:
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(tool: Tool, folder: Path) -> None:
    """Make the environment, once: whether it is there is said by the packages written down in it."""
    done = folder / DONE
    if done.is_file() and done.read_text() == "\n".join(tool.packages):
        return
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    if not tool.alone:
        inside = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
        Path(inside, "beside.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    pip = [python_of(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *tool.packages], check=True)
    done.write_text("\n".join(tool.packages))


def run_tests(name: str, tool: Tool, folder: Path) -> bool:
    """Whether the tool's tests pass: in its environment, or in ours where it is only started."""
    python = Path(sys.executable) if tool.alone else python_of(folder)
    environment = {**os.environ, NAMED: name, "SEMIPRUNE_FULL": "1", "PYTHONPATH": str(ROOT)}
    if tool.alone:
        environment[label_studio.ENVIRONMENT] = str(folder)
    words = [python, "-m", "pytest", "-p", "no:cacheprovider", *tool.tests]
    return subprocess.run(words, env=environment, cwd=ROOT).returncode == 0


def main(words: list[str]) -> str | None:
    if not words or set(words[1:]) - set(TOOLS):
        return f"{__doc__}\nTools: {', '.join(TOOLS)}"
    failed = []
    for name in words[1:] or TOOLS:
        folder = Path(words[0]).absolute() / name
        install(TOOLS[name], folder)
        if not run_tests(name, TOOLS[name], folder):
            failed.append(name)
    return f"Failed: {', '.join(failed)}" if failed else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
