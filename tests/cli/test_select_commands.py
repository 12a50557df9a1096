"""dynamics, scores, select and export by the command line."""

import csv
import json

import pyarrow.parquet as pq
import pytest

from semiprune_core import cli, refresh
from semiprune_core.coresets import more_ratios
from semiprune_core.results import open_coreset
from tests.support.scored_projects import add_pseudo, make_pool, make_scored


@pytest.fixture
def run(capsys):
    def run(*words):
        code = cli.main([*words, "--json"])
        said = capsys.readouterr()
        return code, json.loads(said.out)

    return run


@pytest.fixture
def scored(workspace, tmp_path):
    return make_scored(workspace, tmp_path, n=50)


def test_dynamics_ends_in_scores(run, workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=24)
    add_pseudo(project)
    code, said = run("dynamics", project.name, "--epochs", "2", "--device", "cpu")
    assert code == 0 and said["scores"] == "scores-0001" and said["trajectories"] == ["trajectory-0001"]
    assert project.latest("scores").settings["window"] == 2


def test_scores_as_csv_and_parquet(run, scored, tmp_path):
    for name in ("s.csv", "s.parquet"):
        code, said = run("scores", scored.name, "--out", str(tmp_path / "out" / name))
        assert code == 0 and said["n_images"] == 50
    with open(tmp_path / "out" / "s.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    table = pq.read_table(tmp_path / "out" / "s.parquet")
    assert [row["image_id"] for row in rows] == table["image_id"].to_pylist()
    assert [float(row["aum"]) for row in rows] == table["aum"].to_pylist()
    code, said = run("scores", scored.name, "--T", "11")
    assert said["settings"]["dual_epochs"] == 11 and said["scores"] == "scores-0002"
    assert run("scores", scored.name, "--out", "x.txt")[1]["code"] == "INVALID_SETTING"


def test_select_writes_a_coreset_and_its_files(run, scored):
    words = ("select", scored.name, "--method", "semi_dual_beta", "--ratio", "0.9", "--c-d", "4", "--seed", "2")
    code, said = run(*words, "--gamma", "0.5", "--T", "11", "--keep-human")
    assert code == 1 and "labeled by a person" in said["error"]
    code, said = run(*words, "--gamma", "0.5", "--T", "11")
    assert code == 0 and said["n_kept"] == 5 and said["seed"] == 2
    assert said["settings"]["knobs"]["c_d"] == 4
    with open(said["files"]["kept"], newline="") as file:
        assert len(list(csv.DictReader(file))) == 5
    assert run(*words, "--gamma", "0.5", "--T", "11")[1]["hash"] == said["hash"]
    code, again = run("export", scored.name, "--coreset", said["coreset"], "--format", "csv")
    assert code == 0 and again["exports"][0]["files"] == said["files"]


def test_clean_labels_are_an_aim_that_stays_with_the_coreset(run, scored):
    words = ("select", scored.name, "--ratio", "0.7")
    usual, clean = (run(*words, "--aim", aim)[1] for aim in ("accuracy", "clean"))
    assert clean["settings"]["knobs"]["cutoff"] > usual["settings"]["knobs"]["cutoff"]
    saved = open_coreset(scored, clean["coreset"])
    assert saved.aim == "clean" and refresh.request_of(scored, saved).aim == "clean"
    (other,) = more_ratios(scored, saved, (0.5,))
    assert other.aim == "clean"
    given = run(*words, "--aim", "clean", "--cutoff", "0.2")[1]["settings"]["knobs"]
    assert given == {**usual["settings"]["knobs"], "cutoff": 0.2}


def test_knobs_of_another_method_are_refused(run, scored):
    code, said = run("select", scored.name, "--method", "random", "--ratio", "0.5", "--cutoff", "0.2")
    assert code == 1 and "has no setting 'cutoff'" in said["error"]


def test_what_is_missing_is_named(run, workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=8, name="Bare")
    for words in (("dynamics",), ("scores",), ("select", "--ratio", "0.5"), ("export",)):
        code, said = run(words[0], project.name, *words[1:])
        assert code == 1 and said["code"] == "MISSING_STEP"
