"""Our wheel, built from a copy of what a checkout holds, without an index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("semiprune_core", "pages", "assets", ".streamlit", "app.py")
ABOUT = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md")


def build_wheel(folder: Path) -> Path:
    """Build it below ``folder``; the checkout stays as it is."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    for name in (*NEEDED, *ABOUT):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, tree / name)
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    words += ["--disable-pip-version-check", "--wheel-dir", str(folder / "dist"), str(tree)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel
