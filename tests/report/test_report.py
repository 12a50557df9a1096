"""The report: whole without a network, honest about what is missing, deaf to what users typed."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from semiprune_core import cli
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.report import build_report, write_report
from semiprune_core.results import PseudoRun
from semiprune_core.workspace import Workspace
from tests.scored_projects import make_pool, make_scored

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


class Seen(HTMLParser):
    """The tags and attributes of a page, and what it says."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(page)
        self.text = " ".join(self.words)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data.strip())


@pytest.fixture
def project(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=60)
    for ratio in (0.5, 0.8):
        build_coreset(project, CoresetRequest(pruning_ratio=ratio))
    return project


def test_it_asks_for_nothing_from_anywhere(project):
    page = build_report(project)
    seen = Seen(page)
    for tag, attributes in seen.tags:
        assert tag not in ("script", "link", "iframe", "object")
        assert attributes.get("src", "data:").startswith("data:image/") if tag == "img" else "src" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in page and "@import" not in page and "http" not in re.sub(r"http-equiv", "", page)


def test_it_tells_the_whole_story(project):
    seen = Seen(build_report(project))
    headings = [words for words in seen.words if words]
    for title in ("The pool", "Labeling", "Pseudo-labels", "Scores", "Coresets", "Evaluation", "Cost receipt"):
        assert title in headings
    assert "Nested: every coreset is part of the next larger one." in seen.text
    assert "coreset-0001: Semi-AUM" in seen.text and "coreset-0002: Semi-AUM" in seen.text
    assert [tag for tag, _ in seen.tags].count("svg") >= 6
    assert 24 * 3 <= [tag for tag, _ in seen.tags].count("img") <= 24 * 5
    assert "Nobody has labeled in this project yet." in seen.text


def test_the_same_project_gives_the_same_file(project):
    assert write_report(project) == write_report(project)
    assert len(list(project.exports_folder.glob("report-*.html"))) == 1


def test_quality_comes_with_its_intervals(project, monkeypatch):
    share = {"right": 18, "n": 20, "value": 0.9, "low": 0.699, "high": 0.972}
    quality = {"accuracy": share, "per_class": [share, None, share, share], "measured_on": "held-out labels"}
    monkeypatch.setattr(PseudoRun, "quality", lambda self: quality)
    seen = Seen(build_report(project))
    assert "69.9% to 97.2%" in seen.text and "too few" in seen.text and "20 human labels" in seen.text


def test_what_people_typed_is_shown_and_never_run(project, monkeypatch):
    project = Workspace(project.folder.parent).project(project.name).update(title=EVIL)
    monkeypatch.setattr(PseudoRun, "class_names", (EVIL, "b", "c", "d"))
    seen = Seen(build_report(project))
    assert not [tag for tag, _ in seen.tags if tag == "script"]
    assert not [1 for tag, attributes in seen.tags if tag == "img" and attributes["src"] == "x"]
    assert EVIL in seen.words


def test_a_project_with_a_pool_alone_says_what_is_missing(workspace, tmp_path):
    seen = Seen(build_report(make_pool(workspace, tmp_path, n=12)))
    assert "No model has been trained yet." in seen.text and "No coreset has been selected" in seen.text


def test_the_command_writes_a_copy(project, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("semiprune_core.commands.base.signal.signal", lambda *_: None)
    out = tmp_path / "out" / "report.html"
    assert cli.main(["report", project.name, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == str(out)
    assert out.read_text("utf-8").startswith("<!doctype html>")
    assert np.all([path.read_bytes() == out.read_bytes() for path in project.exports_folder.glob("report-*.html")])
