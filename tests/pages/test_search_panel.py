"""The search on the Select page: started, watched, stopped, its values used."""

import dataclasses

import pytest

from semiprune_core import jobs, search
from semiprune_core.learning import machine
from semiprune_core.project.workspace import Project
from semiprune_core.results import latest_scores
from semiprune_core.search import search_settings, submit_search
from semiprune_core.trials import BOOK, Trial, TrialBook
from tests.pages.test_scored_pages import labels_are_done, metric, opened  # noqa: F401 - a fixture
from tests.search.test_search import GOOD, keep, of_elfs, result, table
from tests.support.scored_projects import add_clusters, make_scored


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch):
    monkeypatch.setattr(machine, "devices_for", lambda device, nproc=1: "cpu")


@pytest.fixture
def project(workspace, tmp_path):
    return make_scored(workspace, tmp_path)


def said(app):
    elements = (*app.caption, *app.markdown, *app.info, *app.warning)
    return " ".join(element.value for element in elements).replace("\\", "")


def test_the_form_counts_trials_and_starts_a_search(project):
    app = opened("select", project)
    assert "84 trials, 21 to 45 epochs of compact each (cheap search: half the usual schedule)" in said(app)
    assert "Not searched at this ratio." in said(app)
    app.multiselect(key="search_ratios").set_value([0.5]).run()
    app.number_input(key="search_seeds").set_value(1).run()
    assert "7 trials" in said(app)
    app.multiselect(key="search_ratios").set_value([]).run()
    assert "ratios must list one or more" in app.error[0].value.replace("\\", "")
    app.multiselect(key="search_ratios").set_value([0.3, 0.5]).run()
    app.button(key="search_begin").click().run()
    assert not app.exception
    (job,) = jobs.list_jobs(project, "search")
    assert job.settings["ratios"] == [0.3, 0.5] and job.settings["seeds"] == [0] and job.settings["cheap"]
    assert "Search for Semi-AUM+Cutoff" in said(app)
    app.button(key=f"stop_{job.id}").click().run()
    assert job.status().state == jobs.STOPPED


def test_elfs_can_be_searched_once_its_clusters_are_there(project):
    app = opened("select", project)
    assert "ELFS" not in app.selectbox(key="search_method").options
    kept = add_clusters(project)
    of_elfs(project, kept)
    app = opened("select", project)
    assert "cutoff 0.2" in said(app).lower() and "search-0001" in said(app)
    app.selectbox(key="search_method").set_value("elfs").run()
    app.multiselect(key="search_ratios").set_value([0.5]).run()
    app.button(key="search_begin").click().run()
    assert not app.exception
    (job,) = jobs.list_jobs(project, "search")
    assert job.settings["method"] == "elfs" and job.settings["scores"] == kept.artifact.id
    job.stop()


def test_a_stopped_search_shows_what_it_has_and_goes_on(project):
    job = submit_search(project, search_settings(project, ratios=(0.5,)))
    book = TrialBook(job.work_folder / BOOK)
    book.add(Trial(method="random", pruning_ratio=0.5, seed=0), result(60))
    book.add(Trial(method="semi_aum_cutoff", pruning_ratio=0.5, seed=0, knobs={"cutoff": 0.1}), result(64))
    job.stop()
    job.write_status(dataclasses.replace(job.stored_status(), facts={"trials_total": 14}))
    app = opened("select", project)
    assert "2 finished trials of 14 saved" in said(app) and "Stopped." in said(app)
    app.button(key=f"resume_{job.id}").click().run()
    assert not app.exception and job.status().state == jobs.QUEUED
    assert "Dashed: Random" in said(app), "the picture so far stays"


def test_found_values_are_explained_and_can_be_used(project):
    settings = search.SearchSettings(ratios=(0.7,), scores=latest_scores(project).artifact.id)
    run = keep(project, table(GOOD), settings)
    app = opened("select", project)
    assert "Cutoff 0.2." in said(app)
    assert "Searched, 2 seeds: cutoff 0.2 beats Random by 10.5 ± 4.9 points." in said(app)
    assert ":green[beats Random]" in said(app)
    app.selectbox(key="select_method").set_value("random").run()
    app.slider(key="select_ratio").set_value(0.9).run()
    app.button(key=f"use_{run.artifact.id}_0.7").click().run()
    assert not app.exception
    assert app.selectbox(key="select_method").value == "semi_aum_cutoff" and app.slider(key="select_ratio").value == 0.7
    assert metric(app, "Kept") == "36"


def test_a_move_of_the_slider_lists_the_searches_once_above_and_once_in_the_panel(project, monkeypatch):
    keep(project, table(GOOD), search.SearchSettings(ratios=(0.7,), scores=latest_scores(project).artifact.id))
    app = opened("select", project)
    listed, artifacts = [], Project.artifacts

    def counting(project, kind=None):
        listed.extend(["search"] * (kind == "search"))
        return artifacts(project, kind)

    monkeypatch.setattr(Project, "artifacts", counting)
    app.slider(key="select_ratio").set_value(0.72).run()
    assert "Searched at ratio 0.7" in said(app) and len(listed) == 2


def test_it_says_plainly_when_nothing_beats_random(project):
    rows = [*GOOD[:2], *((("semi_aum_cutoff"), 0.7, seed, 0.1, None, right) for seed, right in ((0, 61), (1, 63)))]
    keep(project, table(rows), search.SearchSettings(ratios=(0.7,), scores=latest_scores(project).artifact.id))
    app = opened("select", project)
    assert "Nothing beats Random beyond chance at any of these ratios" in said(app)
    assert ":gray[may be chance]" in said(app) and "[beats Random]" not in said(app)
    assert "Searched, 2 seeds: cutoff 0.1, the only value, is 0.0 ± 12.7 points above Random" in said(app)
