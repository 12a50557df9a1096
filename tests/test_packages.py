"""Scores and the rest from installed packages: found, shown with where they come from, left out where broken."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scored_projects import make_scored

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "extending.md"


def install(site, package, group, entries, **modules):
    """What pip leaves behind: the package's modules and its dist-info."""
    (site / package.replace("-", "_")).mkdir(parents=True)
    for name, code in modules.items():
        (site / package.replace("-", "_") / f"{name}.py").write_text(code)
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {package.replace('-', '_')}.{module}" for name, module in entries.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (code,) = [
        code
        for code in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        if "scores/late_margin.py" in code
    ]
    install(folder, "late-scores", "semiprune.scores", {"late_margin": "late_margin"}, late_margin=code)
    return folder


WALK = """
import contextlib, io, json, sys
from pathlib import Path
from semiprune_core.cli import main
said = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    said.append([code, out.getvalue(), err.getvalue()])
from streamlit.testing.v1 import AppTest
app = AppTest.from_file(str(Path("pages/main.py").resolve()), default_timeout=120)
app.session_state["project"] = sys.argv[2]
app.run()
app.switch_page("scores.py").run()
assert not app.exception, app.exception
left_out = [one.value for one in app.warning if "is left out" in one.value]
page = {"captions": [one.value for one in app.caption], "left_out": left_out}
Path(sys.argv[3]).write_text(json.dumps({"said": said, "page": page}))
"""


@pytest.fixture
def walk(workspace, tmp_path):
    """Commands, then the Scores page, in one process that has the packages of ``site`` installed."""

    def start(project, *commands, site=None):
        path = os.pathsep.join([str(ROOT), *([str(site)] if site else [])])
        env = {**os.environ, "PYTHONPATH": path, "SEMIPRUNE_HOME": str(workspace.root)}
        words = [sys.executable, "-c", WALK, json.dumps(commands), project.name, str(tmp_path / "answer.json")]
        done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answer = json.loads((tmp_path / "answer.json").read_text())
        assert [code for code, _, _ in answer["said"]] == [0] * len(commands), answer["said"]
        return answer

    return start


def test_a_score_from_a_package_is_on_the_command_line_in_the_csv_and_on_the_page(walk, site, workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=60)
    before = project.latest("scores")
    name = project.name
    answer = walk(
        project,
        ["scores", name, "--json"],
        ["scores", name],
        ["scores", name, "--json", "--late-margin-share", "0.5"],
        ["select", name, "--json", "--method", "top", "--score", "late_margin", "--ratio", "0.5"],
        site=site,
    )
    (_, first, warned), (_, words, _), (_, other, _), (_, chosen, _) = answer["said"]
    first, other, chosen = json.loads(first), json.loads(other), json.loads(chosen)
    assert first["scores"] != before.id and "late_margin" in first["columns"] and not warned
    assert first["settings"] == {**before.settings, "late_margin_share": 0.25}
    assert words.startswith(first["scores"]) and "late_margin (late-scores)" in words  # the same table is found again
    assert other["scores"] != first["scores"] and other["settings"]["late_margin_share"] == 0.5
    header = Path(chosen["files"]["kept"]).read_text().splitlines()[0].split(",")
    assert header.index("late_margin") > header.index("rank") == 12
    assert any("Late margin (late-scores)" in caption for caption in answer["page"]["captions"])
    assert answer["page"]["left_out"] == []

    answer = walk(project, ["scores", name, "--json"])  # without the package everything it made still opens
    assert json.loads(answer["said"][0][1])["columns"] == other["columns"]
    assert not any("Late margin" in caption for caption in answer["page"]["captions"])


def test_what_is_broken_is_named_and_left_out(walk, site, workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=60)
    begin = "from semiprune_core.scores.base import SCORES\nadd = SCORES.register"
    bad = {
        "wrong": "import no_such_module\n",
        "twice": f"{begin}('aum', higher_is='easier', explain='Again.')(lambda trajectory: None)\n",
        "silent": f"{begin}('silent', explain='Which end is hard?')(lambda trajectory: None)\n",
        "half": f"{begin}('half', higher_is='easier', explain='.')(lambda trajectory: None)\nraise OSError('broke')\n",
    }
    install(site, "bad-scores", "semiprune.scores", {name: name for name in bad}, **bad)
    answer = walk(project, ["scores", project.name, "--json"], site=site)
    ((_, said, warned),) = answer["said"]
    columns = json.loads(said)["columns"]
    assert "late_margin" in columns and not {*bad} & {*columns}
    reasons = {"wrong": "no_such_module", "twice": "registered twice", "silent": "higher_is", "half": "broke"}
    for name, reason in reasons.items():
        (line,) = [line for line in warned.splitlines() if f"The score '{name}' of the package bad-scores" in line]
        assert "is left out" in line and reason in line
    assert len(answer["page"]["left_out"]) == len(bad)


REGISTRIES = """
import json
from semiprune_core.exporting import FORMATS
from semiprune_core.importing.sources.base import SOURCES
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.methods import METHODS
from semiprune_core.scores import SCORES
from semiprune_core.selection import SELECTORS
wanted = [("late_margin", SCORES), ("middle", SELECTORS), ("semi_late_middle", METHODS), ("rising", ALGORITHMS),
          ("textlist", SOURCES), ("tsv", FORMATS)]
print(json.dumps({name: name in registry and registry.title(name) for name, registry in wanted}))
"""
GROUPS = {
    "scores": "late_margin",
    "selectors": "middle",
    "methods": "semi_late_middle",
    "ssl": "rising",
    "sources": "textlist",
    "formats": "tsv",
}


def test_every_kind_of_thing_can_come_from_a_package(tmp_path):
    code = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        code[Path(re.match(r"# (\S+)\n", block).group(1)).stem] = block
    for group, name in GROUPS.items():
        install(tmp_path, f"more-{group}", f"semiprune.{group}", {name: name}, **{name: code[name]})
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    done = subprocess.run([sys.executable, "-c", REGISTRIES], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    titles = json.loads(done.stdout)
    for group, name in GROUPS.items():
        assert titles[name] and titles[name].endswith(f"(more-{group})"), titles
