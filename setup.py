"""The wheel: the package, and inside it the app, which stands beside it in a checkout (see pyproject.toml)."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
APP = ("app.py", ".streamlit/config.toml", "pages", "assets")
FOLDER = Path("semiprune_core") / "studio"


class BuildWithApp(build_py):
    """Also copies the app's files; an editable install finds them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in APP:
            source, target = ROOT / name, Path(self.build_lib) / FOLDER / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(source, target)


setup(cmdclass={"build_py": BuildWithApp})
