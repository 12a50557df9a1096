"""After an import the features follow by themselves, unless somebody said no."""

import json

import pytest

from semiprune_core import jobs
from semiprune_core.cli import main
from semiprune_core.copies import copy_project, delete_project
from semiprune_core.importing import ImportSettings, features_are_on, queue_features
from semiprune_core.importing.follow_up import VARIABLE
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.jobs import supervisor


@pytest.fixture(autouse=True)
def switched_on(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(supervisor, "start_if_free", lambda *_: None)  # queued is enough to see here


def import_job(project, folder, **settings):
    spec = SourceSpec("folder", str(folder)).to_json()
    wanted = ImportSettings(source=spec, n_workers=1, **settings).to_json()
    job = jobs.submit(project, "import", wanted, immediate=True)
    assert job.status().state == jobs.DONE, job.status().message
    return job


def waiting(project):
    return [job for job in jobs.list_jobs(project, "features") if job.status().state == jobs.QUEUED]


def test_an_import_queues_the_features_and_so_do_more_images(workspace, make_photos):
    project = workspace.create("Photos")
    job = import_job(project, make_photos())
    assert [queued.id for queued in waiting(project)] == [job.result()["features_job"]]
    import_job(project, make_photos("more", n=2, first=12))
    assert len(waiting(project)) == 2


def test_who_says_no_once_is_not_asked_again(workspace, make_photos):
    project = workspace.create("Photos")
    assert import_job(project, make_photos(), features=False).result()["features_job"] is None
    import_job(project, make_photos("more", n=2, first=12))
    assert not waiting(project) and not features_are_on(workspace.project("photos"))
    assert not features_are_on(copy_project(workspace, "photos", "Copy"))
    assert queue_features(workspace.project("photos"), True) is not None


@pytest.mark.parametrize("word", ["off", "0", "No"])
def test_the_environment_switches_it_off_for_all(word, workspace, make_photos, monkeypatch):
    monkeypatch.setenv(VARIABLE, word)
    project = workspace.create("Photos")
    import_job(project, make_photos())
    assert not waiting(project)


def test_a_new_project_on_the_command_line_has_them_too(workspace, make_photos, capsys):
    folder = str(make_photos())
    assert main(["new", "one", "--from", folder, "--workers", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["features_job"] == waiting(workspace.project("one"))[0].id
    assert main(["new", "two", "--from", folder, "--workers", "1", "--no-features"]) == 0
    assert not waiting(workspace.project("two")) and "background" not in capsys.readouterr().out


def test_a_project_can_be_deleted_while_its_features_wait(workspace, make_photos):
    project = workspace.create("Photos")
    import_job(project, make_photos())
    delete_project(workspace, "photos")
    assert "photos" not in workspace
