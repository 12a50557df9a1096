"""From the last label to coresets, a map and a report in one run, on real features of small pictures."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import cli
from semiprune_core.commands import finish as commands_finish
from semiprune_core.errors import InvalidDataError
from semiprune_core.finish import KIND, STAGES, FinishSettings, go_on_with_features, submit_finish, why_not
from semiprune_core.finish import job as finish_job
from semiprune_core.jobs import DONE, FAILED, QUEUED, STOPPED, follow_here, list_jobs, supervise
from semiprune_core.labeling import open_store
from semiprune_core.progress import Collected, Stopped
from semiprune_core.results import CoresetRun, latest_pseudo
from semiprune_core.training import AUTO, FROZEN
from semiprune_core.training import auto as auto_start
from tests.support.pools import NAMES
from tests.support.training_projects import label, label_drawn, small_project
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")

SHORT = FinishSettings(
    training={"start": FROZEN}, methods=("semi_aum_cutoff",), ratios=(0.3, 0.7), search_seeds=(0,), map_method="pca"
)


@pytest.fixture
def project(with_features):
    """A labeled project whose features are there."""
    yield label_drawn(with_features)
    for job in list_jobs(with_features):
        job.kill()


def start(project, settings=SHORT):
    return submit_finish(project, settings, immediate=True)


def finish(project, settings=SHORT):
    job = start(project, settings)
    assert job.status().state == DONE, (job.status().message, job.log_tail())
    return job.result()


def test_one_run_makes_everything_and_says_how_long_each_stage_took(project):
    result = finish(project)
    assert list(result["seconds"]) == list(STAGES) and result["notes"] == []
    coresets = [CoresetRun(project.artifact(name)) for name in result["artifacts"]["select"]]
    assert [run.artifact.facts["n_kept"] for run in coresets] == [42, 18]
    assert {project.artifact(name).kind for name in result["artifacts"]["search"]} == {"search"}
    assert project.artifact(result["artifacts"]["map"][0]).settings["features"] == "originals"
    files = {path.name for path in project.exports_folder.iterdir()}
    assert result["report"] in files
    assert all(any(name.startswith(f"{run.artifact.id}-kept-") for name in files) for run in coresets)
    assert latest_pseudo(project).start == FROZEN


def test_what_is_up_to_date_is_taken_as_it_is_and_new_labels_make_it_anew(project):
    first, second = finish(project), finish(project)
    assert second["artifacts"] == first["artifacts"]
    pool, store = project.pool(), open_store(project)
    unlabeled = [position for position in range(len(pool)) if pool.ids[position] not in store.snapshot().ids]
    label(project, {unlabeled[0]: NAMES[0]})
    third = finish(project)
    assert not {*third["artifacts"]["learn"]} & {*first["artifacts"]["learn"]}
    assert not {*third["artifacts"]["select"]} & {*first["artifacts"]["select"]}
    assert third["artifacts"]["map"] == first["artifacts"]["map"]  # the pictures are the same


def test_stopped_after_every_stage_it_goes_on_to_the_same_end(project, monkeypatch):
    def stopping_after(work):
        def stopped(self, record):
            work(self, record)
            raise Stopped

        return stopped

    job = None
    for stage in STAGES:
        with monkeypatch.context() as patch:
            patch.setattr(finish_job.Finish, f"_{stage}", stopping_after(getattr(finish_job.Finish, f"_{stage}")))
            if job is None:
                job = start(project)
            else:
                job.resume()
                with pytest.raises(Stopped):
                    follow_here(job, Collected(), tell=lambda status: None)
        assert job.status().state == STOPPED and job.status().facts["step"] == stage
    job.resume()
    assert follow_here(job, Collected(), tell=lambda status: None).state == DONE
    counts = {kind: len(project.artifacts(kind)) for kind in ("pseudo", "scores", "search", "coreset", "map")}
    assert counts == {"pseudo": 1, "scores": 1, "search": 1, "coreset": 2, "map": 1}


def test_a_failure_inside_is_named_and_the_rest_goes_on_after_a_retry(project, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(finish_job, "write_report", refuse)
        job = start(project)
    assert job.status().state == FAILED and "No room" in job.status().message
    job.resume()
    assert follow_here(job, Collected(), tell=lambda status: None).state == DONE
    assert len(project.artifacts("pseudo")) == 1


def refuse(*args):
    raise InvalidDataError("No room for the report.")


def test_who_does_not_wait_for_a_net_goes_on_with_features(project, monkeypatch):
    auto = SHORT.replace(training={"start": AUTO, "budget": 1e9})

    def impatient(task, facts):
        assert "From scratch is tried too" in facts["plan"] and not task.context.should_stop()
        (job,) = list_jobs(project, KIND)
        go_on_with_features(job)
        assert task.context.should_stop()
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(auto_start, "_from_scratch", impatient)
        result = finish(project, auto)
    assert latest_pseudo(project).start == FROZEN and len(result["artifacts"]["select"]) == 2
    assert "A net from scratch was not waited for" in result["notes"][0]


def test_one_run_at_a_time(project):
    waiting = submit_finish(project, SHORT)
    assert submit_finish(project, SHORT).id == waiting.id


def test_without_labels_it_says_what_is_missing(workspace, tmp_path):
    bare = small_project(workspace, tmp_path, reference=False)
    assert "at least two classes" in why_not(bare)
    with pytest.raises(InvalidDataError) as caught:
        submit_finish(bare)
    assert caught.value.code == "LABELS"


def test_the_command_lists_the_coresets_and_the_seconds(project, capsys, monkeypatch):
    monkeypatch.setattr(commands_finish, "FinishSettings", lambda **values: SHORT)
    monkeypatch.setenv("SEMIPRUNE_HOME", str(project.workspace.root))
    code = cli.main(["finish", project.name, "--json"])
    value = json.loads(capsys.readouterr().out)
    assert code == 0 and list(value["seconds"]) == list(STAGES) and len(value["artifacts"]["select"]) == 2


def label_page(project, monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_HOME", str(project.workspace.root))
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"], app.session_state["annotator"] = project.name, "ada"
    app.run()
    app.switch_page("label.py").run()
    assert not app.exception
    return app


def test_the_label_page_offers_it_when_the_subset_is_complete_and_shows_what_came_of_it(project, monkeypatch):
    app = label_page(project, monkeypatch)
    (button,) = [button for button in app.button if button.label == "Finish"]
    button.click().run()
    (job,) = list_jobs(project, KIND)
    assert job.status().state == QUEUED and not app.exception
    app.run()
    assert any("Step 1 of 6: learn, waiting for its turn" in text for text in words_of(app))
    job.stop()
    supervise(project.workspace)
    app.run()
    assert any("Finish was stopped." in element.value for element in app.info)
    assert [button.label for button in app.button if button.label in ("Finish", "Resume")] == ["Resume", "Finish"]
    finish(project)
    app.run()
    assert any(text.startswith(":green[:material/check_circle:] **Finished** in ") for text in words_of(app))
    (table,) = [element.value for element in app.dataframe]
    assert list(table["Kept"]) == ["42", "18"] and table["CSV"].str.contains("-kept-").all()


def words_of(app):
    progress = [element.proto.text for element in app.get("progress")]
    return [element.value for element in app.markdown] + progress
