"""select, export and verify from the command line, the job, and several ratios at once."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from semiprune_core import cli, jobs, steps
from semiprune_core.coresets import CoresetRequest, build_coresets, nesting
from semiprune_core.coresets import build as coresets
from semiprune_core.errors import InvalidSettingError, UnknownNameError
from semiprune_core.exporting import list_exports, submit_export
from semiprune_core.jobs.context import run_job
from semiprune_core.results import CoresetRun
from semiprune_core.selection.defaults import Defaults


@pytest.fixture
def run(capsys, project):
    def command(*words):
        code = cli.main([*words, "--json"])
        said = capsys.readouterr()
        return code, json.loads(said.out)

    return command


def ids(path):
    with open(path, newline="") as file:
        return {row["image_id"] for row in csv.DictReader(file)}


def test_several_ratios_at_once_are_nested_where_the_selector_allows_it(run):
    code, said = run("select", "test", "--ratios", "0.9,0.3,0.5", "--nested")
    assert code == 0 and said["nesting"].startswith("Nested")
    kept = [ids(one["files"]["kept"]) for one in said["coresets"]]
    assert [len(one) for one in kept] == [28, 20, 4]
    assert kept[0] > kept[1] > kept[2]
    code, said = run("export", "test", "--ratios", "0.3,0.9", "--format", "paths,parquet")
    assert (code, len(said["exports"])) == (0, 4)


def test_ratios_are_those_of_one_method(run, select):
    wanted = select(0.5, method="semi_aum_cutoff")
    select(0.5, method="random")
    code, said = run("export", "test", "--ratios", "0.5", "--method", "semi_aum_cutoff")
    assert (code, said["exports"][0]["coreset"], said["nesting"]) == (0, wanted.artifact.id, None)
    select(0.9, method="semi_aum_cutoff")
    code, said = run("export", "test", "--ratios", "0.5,0.9")  # the method of the latest coreset
    assert [one["coreset"] for one in said["exports"]][0] == wanted.artifact.id


def test_a_selector_that_draws_anew_says_so(run, select):
    code, said = run("select", "test", "--method", "semi_dual_beta", "--ratios", "0.3,0.9,0.5")
    assert code == 0 and "chooses anew for each ratio" in said["nesting"]
    others = [select(0.5, method="semi_dual_beta", seed=1), select(0.8, method="semi_dual_beta", seed=2)]
    assert nesting(others).startswith("Not nested") and "chooses anew for each ratio" in nesting(others)
    code, said = run("select", "test", "--method", "semi_dual_beta", "--ratios", "0.3,0.9", "--nested")
    assert code == 1 and "never nested" in said["error"]


def test_held_knobs_nest_what_the_defaults_of_each_ratio_do_not(project, monkeypatch):
    cutoffs = {0.3: 0.0, 0.5: 0.4}
    by_ratio = lambda method, ratio, basis: Defaults({"cutoff": cutoffs[ratio]})  # noqa: E731
    monkeypatch.setattr(coresets, "default_knobs", by_ratio)
    apart = build_coresets(project, CoresetRequest(), (0.3, 0.5))
    assert [one.artifact.settings["knobs"]["cutoff"] for one in apart] == [0.0, 0.4]
    assert nesting(apart).startswith("Not nested: 8 of the 20 images") and "hold the knobs" in nesting(apart)
    held = build_coresets(project, CoresetRequest(), (0.3, 0.5), nested=True)
    assert [one.artifact.settings["knobs"]["cutoff"] for one in held] == [0.0, 0.0]
    assert nesting(held).startswith("Nested")


def test_no_ratio_is_refused(project):
    with pytest.raises(InvalidSettingError, match="at least one pruning ratio"):
        build_coresets(project, CoresetRequest(), ())


def test_export_writes_the_latest_coreset_and_verify_proves_it(run, project, select):
    select()
    code, said = run("export", "test", "--format", "jsonl")
    [said] = said["exports"]
    assert said["warnings"] == []
    human = np.load(project.latest("pseudo").path("human_mask.npy"))
    n_human = int(human[CoresetRun(project.latest("coreset")).coreset().indices].sum())
    assert (code, said["format"], said["n_human"], said["n_pseudo"]) == (0, "jsonl", n_human, 20 - n_human)
    assert n_human > 0
    code, proof = run("verify", said["files"]["manifest"])
    assert (code, proof["ok"]) == (0, True)
    path = said["files"]["kept"]
    with open(path, "a") as file:
        file.write("{}\n")
    code, proof = run("verify", path)
    assert (code, proof["ok"]) == (1, False)
    assert list(proof["differences"]) == [path.rsplit("/", 1)[1]]


def test_an_export_goes_where_it_is_told_and_is_proven_there(run, project, select, tmp_path):
    select()
    out = tmp_path / "new" / "folder"
    code, said = run("export", "test", "--format", "csv", "--absolute", "--out", str(out))
    files = said["exports"][0]["files"]
    assert code == 0 and {Path(path).parent for path in files.values()} == {out}
    assert not list(project.exports_folder.glob("*"))
    with open(files["kept"], newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(Path(row["file"]).is_file() and row["file"].endswith(row["path"]) for row in rows)
    code, proof = run("verify", str(out))
    assert (code, proof["ok"]) == (0, True)
    code, said = run("export", "test", "--out", files["kept"])
    assert code == 1 and "is a file" in said["error"]


def test_the_warnings_of_an_export_are_in_its_json(run, select):
    select(0.95)
    code, said = run("export", "test", "--format", "imagefolder,csv")
    first, second = said["exports"]
    assert code == 0 and "has no image in this coreset" in first["warnings"][0] and second["warnings"] == []


@pytest.mark.parametrize(
    "words, said",
    [
        (("--format", "cvs"), "Did you mean 'csv'"),
        (("--ratios", "0.25"), "no coreset of semi_aum_cutoff at ratio 0.25"),
        (("--coreset", "scores-0001"), "is not a coreset"),
        (("--format", "imagefolder", "--images", "reference"), "reference"),
        (
            ("--format", "csv,indices,lightly", "--absolute"),
            "is for csv, jsonl, parquet, paths, not for ind",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused_in_words(words, said, run, project, select):
    select()
    code, answer = run("export", "test", *words)
    assert code == 1 and said in answer["error"]
    assert list(project.exports_folder.iterdir()) == []


def test_the_job_writes_every_coreset_in_every_format(project, select):
    runs = [select(0.5), select(0.9)]
    names = [one.artifact.id for one in runs]
    assert not steps.is_done(project, steps.BY_KEY["export"])
    job = submit_export(project, names, ["csv", "indices"], immediate=True)
    assert job.status().state == jobs.DONE, job.log_tail()
    assert sorted(job.result()["exports"]) == sorted(one.path.name for one in list_exports(project))
    assert {(one.manifest["coreset"], one.format) for one in list_exports(project)} == {
        (name, form) for name in names for form in ("csv", "indices")
    }
    assert steps.is_done(project, steps.BY_KEY["export"])


def test_a_coreset_that_is_another_one_by_now_is_not_exported(project, select):
    chosen = select(0.5).artifact
    job = submit_export(project, [chosen.id], ["csv"])
    shutil.rmtree(chosen.folder)
    other = select(0.9).artifact
    assert other.id == chosen.id and other.hash != chosen.hash
    status = run_job(jobs.JobContext(job))
    assert (status.state, status.error_code) == (jobs.FAILED, "PINS_CHANGED")
    assert status.message == f"{chosen.id} has changed since this job was queued. Start a new one."
    assert list_exports(project) == []


def test_a_job_without_a_coreset_is_refused(project):
    with pytest.raises(InvalidSettingError, match="at least one coreset"):
        submit_export(project, [], ["csv"])


def test_a_misspelt_kind_is_still_refused_in_words_once_a_kind_was_loaded(project, select):
    submit_export(project, [select().artifact.id], ["indices"], immediate=True)
    with pytest.raises(UnknownNameError, match="Did you mean 'export'"):
        jobs.submit(project, "exprot", {})
