"""The wheel in a clean environment, as somebody meets it who never saw the repository (``SEMIPRUNE_FULL=1``).

pip takes the dependencies from wherever it is set up to; ``SEMIPRUNE_WHEEL_PYTHON`` names the Python of an environment
that has them already, such as one at the lower end of the ranges, and then nothing but our wheel is installed there.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect, sync_playwright

from tests.browser.serving import LET_IN, TOKEN, free_port
from tests.support.effort import FULL
from tests.support.waiting import PATIENCE
from tests.support.wheels import build_wheel

pytestmark = pytest.mark.skipif(not FULL, reason="installs everything anew: SEMIPRUNE_FULL=1")
GIVEN = "SEMIPRUNE_WHEEL_PYTHON"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Installed:
    """An environment with our wheel, and a home far from the checkout."""

    def __init__(self, folder, wheel):
        self.home, self.folder = folder / "home", folder / "elsewhere"
        self.folder.mkdir()
        given = os.environ.get(GIVEN)
        if given is None:
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.python = Path(given) if given else folder / "venv" / "bin" / "python"
        pip = [self.python, "-m", "pip", "--disable-pip-version-check"]
        again = ["--no-deps", "--force-reinstall"] if given else []
        subprocess.run([*pip, "install", "--quiet", *again, wheel], check=True, env=self.environment)
        subprocess.run([*pip, "check"], check=True, env=self.environment)

    @property
    def environment(self):
        """What a person has: nothing of the tests', of the checkout, of settings."""
        ours = ("SEMIPRUNE", "PYTHON", "OMP", "NUMBA")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return {**clean, "SEMIPRUNE_HOME": str(self.home), "SEMIPRUNE_TOKEN": TOKEN}

    @property
    def command(self):
        return str(self.python.with_name("semiprune"))

    def run(self, *words):
        done = subprocess.run(
            [self.command, *words, "--json"], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    return Installed(folder, build_wheel(folder / "build"))


@pytest.fixture
def pictures(tmp_path):
    """120 pictures of two kinds in class folders."""
    rng = np.random.default_rng(0)
    for name, colour in (("sea", (30, 80, 200)), ("wood", (40, 140, 60))):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(60):
            pixels = np.clip(rng.normal(colour, 40, (40, 48, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{number:02d}.png")
    return tmp_path / "pictures"


@pytest.fixture
def served(installed):
    port = free_port()
    process = subprocess.Popen(
        [installed.command, "serve", "--port", str(port)],
        cwd=installed.folder,
        env=installed.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = []
    for line in process.stdout:
        said.append(line)
        if f"http://127.0.0.1:{port}/?token={TOKEN}" in line:
            break
    assert process.poll() is None, "".join(said)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    rest, _ = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in "".join(said) + rest, rest


def test_nothing_of_the_checkout_is_seen(installed):
    code = "import semiprune_core as s, importlib.util as u; assert not u.find_spec('tests'); print(s.__file__)"
    done = subprocess.run(
        [installed.python, "-c", code], cwd=installed.folder, env=installed.environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "site-packages" in done.stdout


def test_the_finished_demo_opens_in_a_browser(installed, served):
    assert installed.run("open", "demo")["new"] is True
    assert installed.run("open", "demo")["new"] is False
    assert installed.run("verify", "finished-demo")["ok"] is True
    browser = os.environ.get("SEMIPRUNE_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=FLAGS)
        page = chromium.new_page(viewport={"width": 1400, "height": 900})
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_default_timeout(1000 * PATIENCE)
        expect.set_options(timeout=1000 * PATIENCE)
        page.goto(f"{served}/?token={TOKEN}&project=finished-demo")
        expect(page.get_by_text("Finished demo").first).to_be_visible()
        for name, text in (("scores", "AUM"), ("select", "Pruning ratio"), ("export", "Export")):
            page.goto(f"{served}/{name}?project=finished-demo")
            expect(page.get_by_text(text).first).to_be_visible()
            expect(page.get_by_test_id("stException")).to_have_count(0)
        chromium.close()
    assert errors == []


def test_a_folder_becomes_a_coreset_in_a_csv(installed, served, pictures):
    made = installed.run("new", "Seas", "--from", str(pictures), "--size", "32")
    assert made["n_images"] == 120
    installed.run("sample", "seas", "--fraction", "0.3")
    installed.run("labels", "reference", "seas")
    installed.run("train", "seas", "--start", "frozen")
    installed.run("dynamics", "seas")
    chosen = installed.run("select", "seas", "--ratio", "0.5")
    csv = Path(chosen["files"]["kept"]).read_text().splitlines()
    assert len(csv) == 61 and csv[0].startswith("image_id,path,kept")
    exported = installed.run("export", "seas", "--format", "parquet")
    assert exported["format"] == "parquet"
    request = urllib.request.Request(f"{served}/?project=seas", headers=LET_IN)
    assert urllib.request.urlopen(request).status == 200


def test_the_demo_pool_comes_with_it(installed):
    assert installed.run("new", "Clothes", "--from", "demo", "--no-features")["n_images"] == 8_000
