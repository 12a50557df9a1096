"""The report: whole without a network, honest about what is missing, deaf to what users typed."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from semiprune_core import cli
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.dynamics.scoring import score_runs
from semiprune_core.maps.embedding_map import MapSettings
from semiprune_core.project.workspace import Workspace
from semiprune_core.report import build_report, write_report
from semiprune_core.results import PseudoRun
from tests.support.scored_projects import add_trajectory, make_pool, make_scored
from tests.support.trial_tables import fake_evaluation, table

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
    for title in ("The pool", "Labeling", "Pseudo-labels", "Scores", "Coresets", "Evaluation", "Cost and gain"):
        assert title in headings
    assert "Nested: every coreset is part of the next larger one." in seen.text
    assert "coreset-0001: Semi-AUM" in seen.text and "coreset-0002: Semi-AUM" in seen.text
    assert [tag for tag, _ in seen.tags].count("svg") >= 6
    assert 24 * 3 <= [tag for tag, _ in seen.tags].count("img") <= 24 * 5
    assert "No image has been labeled yet." in seen.text


def test_the_same_project_gives_the_same_file(project):
    assert write_report(project) == write_report(project)
    assert len(list(project.exports_folder.glob("report-*.html"))) == 1


def test_quality_comes_with_its_intervals(project, monkeypatch):
    share = {"right": 18, "n": 20, "value": 0.9, "low": 0.699, "high": 0.972}
    quality = {"accuracy": share, "per_class": [share, None, share, share], "measured_on": "held-out labels"}
    monkeypatch.setattr(PseudoRun, "quality", lambda self: quality)
    seen = Seen(build_report(project))
    assert "69.9 to 97.2%" in seen.text and "too few" in seen.text and "Measured on held-out labels" in seen.text
    assert "70 to 97%" in seen.words


def test_the_story_comes_first_and_the_verdict_with_its_reasons(project):
    seen = Seen(build_report(project))
    assert seen.text.index("coresets of 12 to 30 images.") < seen.text.index("The pool")
    assert "Good enough to prune with?" in seen.words
    assert "Random selection is safer here" in seen.text  # no label was held out, so nothing is known


def test_settings_are_a_table_and_not_code(project):
    words = [word for word in Seen(build_report(project)).words if word]
    said = words[words.index("Settings and versions") :]
    assert float(said[said.index("knobs.cutoff") + 1]) >= 0
    assert not [word for word in said if "{" in word or "None" in word or word == "null"]


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


def add_map(project):
    points = np.random.default_rng(0).normal(size=(len(project.pool()), 2)).astype(np.float32)
    points[3] = np.nan
    settings = MapSettings(method="pca")
    with project.draft("map", settings=settings.to_json(), inputs={"pool": project.pool().hash}, seed=0) as draft:
        np.save(draft.path("points.npy"), points, allow_pickle=False)
        draft.facts.update(n_images=len(points), n_placed=len(points) - 1)


def paths_of(page):
    seen = Seen(page)
    return [attributes for tag, attributes in seen.tags if tag == "path"]


def test_the_map_has_a_dot_for_every_placed_image_in_its_class_colour(project):
    add_map(project)
    paths = paths_of(build_report(project))
    assert len(paths) == 4 and len({path["stroke"] for path in paths}) == 4
    assert sum(path["d"].count("h0") for path in paths) == 59
    assert "coloured by label" in build_report(project)


def test_a_map_of_many_classes_is_coloured_by_score(project, monkeypatch):
    add_map(project)
    monkeypatch.setattr(PseudoRun, "class_names", tuple(f"class {n}" for n in range(11)))
    monkeypatch.setattr(PseudoRun, "class_ids", tuple(range(11)))
    page = build_report(project)
    assert len(paths_of(page)) == 5 and "coloured by AUM" in page


def test_a_large_map_is_thinned(project, monkeypatch):
    add_map(project)
    monkeypatch.setattr("semiprune_core.report.write.N_POINTS", 20)
    page = build_report(project)
    assert sum(path["d"].count("h0") for path in paths_of(page)) == 20
    assert "20 of 59 images, drawn at random." in page


TRIALS = [
    ("full", 0.0, 0, 0.90),
    ("full", 0.0, 1, 0.92),
    ("random", 0.5, 0, 0.80),
    ("random", 0.5, 1, 0.82),
    ("semi_aum_cutoff", 0.5, 0, 0.85),
    ("semi_aum_cutoff", 0.5, 1, 0.87),
    ("random", 0.9, 0, 0.70),
    ("semi_aum_cutoff", 0.9, 0, 0.60),
]


def add_evaluation(project, rows):
    with project.draft("evaluation", settings={}, inputs={"pool": project.pool().hash}) as draft:
        table(*rows).to_parquet(draft.path("trials.parquet"))
        draft.facts.update(truth="reference", test="held out", n_test=100, full_epochs=90)
        draft.facts.update(methods={"random": "Random", "semi_aum_cutoff": "Semi-AUM+Cutoff"})


def test_the_evaluation_is_a_table_with_the_best_in_bold(project):
    add_evaluation(project, TRIALS)
    page = build_report(project)
    assert '<figure class="plot"><svg viewBox' in page and page.count("10.0 points below random") == 2  # and in short
    assert "<b>86.0% ± 1.4</b>" in page and "<b>70.0%</b>" in page  # the best at 50% and at 90%
    assert "81.0% ± 1.4" in page and "<b>81.0%" not in page
    assert "All images: 91.0% ± 1.4." in page and "trained with reference labels and tested on 100 images" in page
    assert "At 90% pruning Semi-AUM+Cutoff keeps 66% of full accuracy, 10.0 points below random, from one seed" in page


def test_an_evaluation_of_earlier_scores_is_said_to_be_one(project, tmp_path):
    fake_evaluation(project, inputs={"scores": project.latest("scores").hash})
    assert "was made before" not in build_report(project)
    score_runs(project, [add_trajectory(project, tmp_path, seed=1)])
    assert build_report(project).count("evaluation-0001 was made before scores-0002 were made") == 2  # and in short


def test_an_evaluation_of_nothing_but_the_full_data_is_no_error(project):
    add_evaluation(project, TRIALS[:2])
    assert "No run of the evaluation has finished yet." in build_report(project)


def test_every_method_is_listed_and_pictured(project):
    for ratio in (0.3, 0.5, 0.6, 0.7, 0.8, 0.9):
        build_coreset(project, CoresetRequest(method="random", pruning_ratio=ratio))
    text = Seen(build_report(project)).text
    assert "coreset-0002: Semi-AUM" in text and "coreset-0008: Random" in text
    assert "coreset-0001: Semi-AUM" not in text  # listed, not pictured
    assert "Random. " in text and "Semi-AUM+Cutoff. Nested" in text
