"""The Scores and Select pages for a project that has scores."""

import dataclasses
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import coresets, jobs
from semiprune_core.baselines.evidence import EvidenceRequest, stored_evidence
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.errors import ConflictError
from semiprune_core.labeling import open_store
from semiprune_core.progress import Collected
from semiprune_core.trust import review
from tests.support.scored_projects import add_pseudo, call_labels_done, make_pool, make_scored
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")


@pytest.fixture(autouse=True)
def labels_are_done(monkeypatch):
    """These projects were given their pseudo-labels; nobody labeled."""
    call_labels_done(monkeypatch)


def opened(page, project):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    app.run()
    app.switch_page(f"{page}.py").run()
    assert not app.exception, app.exception
    return app


def metric(app, label):
    return next(one.value for one in app.metric if one.label == label)


def test_scores_offers_the_run_when_there_is_none(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=12)
    add_pseudo(project)
    app = opened("scores", project)
    assert [button.label for button in app.button if "score" in button.label] == ["Train and score every image"]
    assert any("how long it takes is shown as soon as it runs" in caption.value for caption in app.caption)


def test_scores_says_how_long_the_run_takes_where_a_net_was_trained_before(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, n=12)
    add_pseudo(project)
    job = jobs.submit(project, "ssl", {"start": "scratch"})
    with job.lease():
        job.write_status(dataclasses.replace(job.stored_status(), state=jobs.DONE, facts={"images_per_s": 2.0}))
    app = opened("scores", project)
    assert any("takes about 3 min" in caption.value for caption in app.caption)  # 30 epochs of 12 images
    assert app.button(key="next_page").disabled  # nothing to select from yet


def test_scores_shows_every_score_with_its_direction(workspace, tmp_path):
    app = opened("scores", make_scored(workspace, tmp_path))
    said = " ".join(caption.value for caption in app.caption)
    for title in ("AUM", "DUAL", "EL2N", "Forgetting", "Mean probability", "Variability", "Entropy"):
        assert f"**{title}**" in said
    assert "Higher is easier." in said and "Higher is harder." in said
    assert metric(app, "Images") == "120"


def test_scores_of_older_pseudo_labels_say_so(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    add_pseudo(project, seed=4)
    app = opened("scores", project)
    assert "newer pseudo-labels" in app.warning[0].value


def test_select_moves_with_the_slider_and_builds(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    app = opened("select", project)
    assert metric(app, "Kept") == "36"
    app.slider(key="select_ratio").set_value(0.9).run()
    assert not app.exception and metric(app, "Kept") == "12"
    next(button for button in app.button if button.label == "Build coreset").click().run()
    assert not app.exception
    assert project.latest("coreset").facts["n_kept"] == 12
    assert len(list(project.exports_folder.glob("coreset-0001-kept-*.csv"))) == 1
    app.selectbox(key="select_method").set_value("semi_dual_beta").run()
    next(button for button in app.button if button.label == "Build coreset").click().run()
    assert not app.exception and len(project.artifacts("coreset")) == 2
    assert any("are kept by none" in caption.value for caption in app.caption)


def test_a_built_coreset_is_confirmed_beside_the_button_and_offers_its_export(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    app = opened("select", project)
    assert not app.success
    next(button for button in app.button if button.label == "Build coreset").click().run()
    assert "coreset-0001** is saved: 36 images" in app.success[0].value
    assert any("(#saved-coresets)" in text.value for text in app.markdown)
    app.slider(key="select_ratio").set_value(0.9).run()
    assert not app.success  # that one is not built
    app.slider(key="select_ratio").set_value(0.7).run()
    app.button(key="built_export").click().run()
    assert not app.exception and app.multiselect(key="export_coresets").value == ["coreset-0001"]


def test_all_saved_coresets_are_listed(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    for percent in range(10, 24):
        build_coreset(project, CoresetRequest(method="random", pruning_ratio=percent / 100))

    def listed(app):
        return sum(button.label == "Annotate" for button in app.button)

    app = opened("select", project)
    assert listed(app) == 14
    (folded,) = (box for box in app.expander if box.label == "9 earlier coresets")
    assert sum(button.label == "Annotate" for button in folded.button) == 9


def test_select_starts_elsewhere_for_clean_labels(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    app = opened("select", project)
    usual = next(caption.value for caption in app.caption if caption.value.startswith("Cutoff"))
    app.session_state["select_aim"] = "clean"
    app.run()
    assert not app.exception
    clean = next(caption.value for caption in app.caption if caption.value.startswith("Cutoff"))
    assert float(clean.split()[1].rstrip(".")) > float(usual.split()[1].rstrip("."))
    next(button for button in app.button if button.label == "Build coreset").click().run()
    assert not app.exception and project.latest("coreset").facts["aim"] == "clean"


def test_an_impossible_choice_is_explained(workspace, tmp_path):
    app = opened("select", make_scored(workspace, tmp_path))
    app.checkbox(key="select_keep_human").set_value(True).run()
    app.slider(key="select_ratio").set_value(0.95).run()
    assert not app.exception and "labeled by a person" in app.error[0].value


def test_a_coreset_that_cannot_be_built_is_explained_inside_the_fragment(workspace, tmp_path, monkeypatch):
    project = make_scored(workspace, tmp_path, n=60)

    def refuse(*args, **kwargs):
        raise ConflictError("The pool has changed. Score it anew.", code="POOL_CHANGED")

    app = opened("select", project)
    monkeypatch.setattr(coresets, "build_coreset", refuse)
    next(button for button in app.button if button.label == "Build coreset").click().run()
    assert not app.exception and "The pool has changed" in app.error[0].value


@pytest.mark.parametrize("method", ["cutoff", "top", "stratified", "random", "semi_dual_beta"])
def test_every_method_has_its_controls(workspace, tmp_path, method):
    app = opened("select", make_scored(workspace, tmp_path, n=60))
    app.selectbox(key="select_method").set_value(method).run()
    if [one for one in app.toggle if one.key == "select_own"]:
        app.toggle(key="select_own").set_value(True).run()
    assert not app.exception and not app.error


def test_a_baseline_is_offered_once_its_evidence_is_there(workspace, tmp_path):
    project = make_scored(workspace, tmp_path, n=60)
    app = opened("select", project)
    assert "ZCore" not in app.selectbox(key="select_method").options
    settings = {"encoder": "pixels", "n_samples": 100}
    kept = stored_evidence("zcore", EvidenceRequest(project, Collected(), settings=settings))
    app = opened("select", project)
    shown = app.selectbox(key="select_method").options
    assert "ZCore" in shown and shown.index("ZCore") > shown.index("Semi-DUAL+Beta") and "ELFS" not in shown
    app.selectbox(key="select_method").set_value("zcore").run()
    assert not app.exception and not app.error
    next(button for button in app.button if button.label == "Build coreset").click().run()
    assert not app.exception and project.latest("coreset").inputs["evidence"] == kept.artifact.hash


def test_a_coreset_opens_as_a_labeling_queue_and_back(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    store = open_store(project)
    store.classes.add(project.pool().class_names, annotator="ada")
    run = build_coreset(project, CoresetRequest(pruning_ratio=0.9))
    review.label_images(store, project.pool().ids[run.coreset().indices[:3]].tolist(), "0", annotator="ada")
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"], app.session_state["annotator"] = project.name, "ada"
    app.run()
    app.switch_page("select.py").run()
    app.button(key="annotate_coreset-0001").click().run()
    assert not app.exception
    assert app.header[0].value == "Annotate coreset-0001"
    said = app.get("progress")[0].proto.text
    assert "ratio 0\\.9" in said and "3 of 12 labels are human" in said and "9 to go" in said
    app.button(key="coreset_leave").click().run()
    assert not app.exception and "Annotate" not in app.header[0].value


def test_a_coreset_of_another_project_is_no_error_on_the_label_page(workspace, tmp_path):
    project = make_scored(workspace, tmp_path)
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"], app.session_state["annotator"] = project.name, "ada"
    app.session_state["label_coreset"] = "coreset-0077"
    app.run()
    app.switch_page("label.py").run()
    assert not app.exception and app.header[0].value == "Label"
