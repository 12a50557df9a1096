"""The page Export: choose, see what it will be, write it, prove it."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import jobs, steps
from semiprune_core.exporting import export_csv, list_exports, submit_verify
from tests.support.scored_projects import call_labels_done
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")


@pytest.fixture(autouse=True)
def labels_are_done(monkeypatch):
    """These projects were given their pseudo-labels; nobody labeled."""
    call_labels_done(monkeypatch)


@pytest.fixture
def supervised(monkeypatch):
    """Jobs run in this process, as soon as they are submitted."""
    submit = jobs.submit

    def at_once(*args, **options):
        return submit(*args, **{**options, "immediate": True})

    monkeypatch.setattr("semiprune_core.jobs.submit", at_once)
    monkeypatch.setattr("semiprune_core.jobs.supervise", lambda workspace: None)


def opened(project):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    app.run()
    app.switch_page("export.py").run()
    assert not app.exception, app.exception
    return app


def press(app, words):
    next(button for button in app.button if words in button.label).click().run()
    assert not app.exception, app.exception
    return app


def test_without_a_coreset_the_page_says_what_is_missing(project):
    assert "needs the step Select first" in opened(project).info[0].value


def test_it_says_how_many_labels_are_human_and_how_large_it_gets(project, select):
    select()
    app = opened(project)
    numbers = {metric.label: metric.value for metric in app.metric}
    assert numbers == {"Kept": "20", "Human labels": "3", "Pseudo-labels": "17", "Classes kept": "3 of 3"}
    assert (
        next(button.label for button in app.button if button.label.startswith("Export"))
        == "Export 1 coreset, about 13 kB"
    )
    assert len(app.dataframe[0].value) == 5 and list(app.dataframe[0].value)[:2] == ["image_id", "path"]


def test_export_and_verify_from_the_page(project, select, supervised):
    select()
    app = press(opened(project), "Export 1 coreset")
    [export] = list_exports(project)
    assert any(f"of {export.manifest['coreset']}" in text.value for text in app.markdown)
    sums = app.dataframe[-1].value
    assert sums["SHA-256"].tolist() == [entry["sha256"] for entry in export.manifest["files"].values()]
    app = press(app, "Verify")
    assert app.success[0].value.startswith("Verified: ")
    export.files["kept"].write_text("tampered")
    app = press(app, "Verify")
    assert app.error[0].value.startswith("Differs.") and "was changed" in app.error[0].value
    assert [place.state for place in steps.standing(project) if place.step.key == "export"] == ["done"]


def test_a_format_the_pool_cannot_give_is_explained_and_left_out(hostile):
    from tests.exporting.conftest import select_in

    select_in(hostile)
    app = opened(hostile)
    app.session_state["export_formats"] = ["lightly"]
    app.run()
    assert "packed" in app.warning[-1].value
    assert next(button for button in app.button if button.label == "Export").disabled


def test_a_vanished_class_is_warned_of(project, select):
    select(0.95)
    assert "vanished" in opened(project).warning[0].value


def test_several_ratios_from_the_page(project, select):
    select()
    app = opened(project)
    next(toggle for toggle in app.toggle if toggle.label == "Nested").set_value(True).run()
    app = press(app, "Build coresets")
    assert len(app.session_state["export_coresets"]) == 5
    assert any("every coreset is part of the next larger one" in info.value for info in app.info)
    assert "Export 5 coresets" in " ".join(button.label for button in app.button)


def test_a_proof_that_was_made_elsewhere_is_shown(project, select):
    export_csv(project, select())
    job = submit_verify(project, list_exports(project)[0], immediate=True)
    assert job.result()["difference"] is None, job.log_tail()
    assert opened(project).success[0].value.startswith("Verified: ")


def test_the_report_is_written_and_offered(project, select):
    select()
    app = press(opened(project), "Write report")
    assert len(list(project.exports_folder.glob("report-*.html"))) == 1
    assert any(button.label == "Write again" for button in app.button)
