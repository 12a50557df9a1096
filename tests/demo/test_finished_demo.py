"""The finished demo: proven before it appears, full on every page, a project like any other."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import jobs, steps, training
from semiprune_core.copies import copy_project
from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.demo import finished as finished_demo
from semiprune_core.errors import InvalidDataError, WorkspaceError
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.progress import Collected, Stopped
from semiprune_core.project import artifacts
from semiprune_core.project.pool import PoolSettings
from semiprune_core.project.workspace import Workspace
from semiprune_core.refresh import freshness
from semiprune_core.results import latest_pseudo, latest_scores, made_from
from semiprune_core.selection import AIMS
from semiprune_core.trust.review import label_images
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The finished demo, opened once."""
    workspace = Workspace.open(tmp_path_factory.mktemp("finished"))
    project = workspace.create(finished_demo.TITLE, name=finished_demo.NAME)
    finished_demo.unpack(project, Collected())
    return workspace.project(project.name)


@pytest.fixture
def project(unpacked, workspace):
    """A copy of it in this test's own workspace."""
    shutil.copytree(unpacked.folder, workspace.root / unpacked.name)
    return workspace.project(unpacked.name)


def manifest():
    with zipfile.ZipFile(finished_demo.ARCHIVE) as packed:
        return json.loads(packed.read(finished_demo.MANIFEST)), list(finished_demo.differences(packed, _said(packed)))


def _said(packed):
    return json.loads(packed.read(finished_demo.MANIFEST))


def test_the_archive_is_what_its_manifest_says_and_small_enough():
    said, differences = manifest()
    assert differences == [] and said["schema"] == finished_demo.SCHEMA
    assert finished_demo.ARCHIVE.stat().st_size <= 8_000_000
    kinds = {name.rsplit("-", 1)[0] for name in said["artifacts"]}
    assert {"pseudo", "trajectory", "scores", "map", "coreset"} <= kinds and "pool" not in kinds


def test_wrong_labels_have_a_lower_aum_and_clean_coresets_have_half_of_their_share(project):
    aum, pseudo = latest_scores(project).table()["aum"], latest_pseudo(project).labels()
    wrong = pseudo.labels != project.pool().reference_labels
    assert aum[~wrong].mean() - aum[wrong].mean() >= 0.2
    usual, clean = (build_coreset(project, CoresetRequest(pruning_ratio=0.7, aim=aim)) for aim in AIMS)
    assert wrong[clean.coreset().indices].mean() <= wrong.mean() / 2
    assert wrong[usual.coreset().indices].mean() > wrong.mean(), (
        "hard images are kept for accuracy, wrong ones with them"
    )


def test_it_was_really_trained():
    assert not manifest()[0]["settings"]["ssl"] and not manifest()[0]["settings"]["dynamics"]


def test_the_line_is_done_at_every_step(unpacked):
    expected = {step.key: "done" for step in steps.STEPS}
    if unpacked.latest("evaluation") is None:
        expected["evaluate"] = "next"
    assert {place.step.key: place.state for place in steps.standing(unpacked)} == expected
    assert freshness.out_of_date(unpacked) == []


def test_every_artifact_and_export_verifies(unpacked):
    found = verify(unpacked.folder, Collected())
    assert first_difference(found) is None
    assert {artifact.id for artifact in unpacked.artifacts()} <= {*found}
    assert unpacked.pool().hash == manifest()[0]["pool"]  # the pool was imported here, not shipped


def test_labels_are_events_with_their_times(unpacked):
    store = open_store(unpacked)
    events = store.events()
    assert len(events) == len(store.drawings.latest()) == 600
    assert max(row["saved_ms"] for row in events) / 1000 < finished_demo.ARCHIVE.stat().st_mtime + 86_400 * 365
    assert training.labels_are(unpacked, latest_pseudo(unpacked).artifact.inputs["labels"], store.snapshot())


def test_its_runs_can_be_read_and_repeated(unpacked):
    runs = training.list_runs(unpacked)
    assert [run.status.state for run in runs] == [jobs.DONE] and runs[0].job is not None
    assert training.run_curves(runs[0]).lines["loss"]


def test_opening_it_again_only_opens_it(project, workspace):
    assert finished_demo.open_finished_demo(workspace) is None
    assert workspace.names() == [finished_demo.NAME]


def test_a_project_of_ones_own_under_its_name_is_left_alone(project, workspace):
    project.update(finished_demo=False)
    before = sorted(path.name for path in project.artifacts_folder.iterdir())
    with pytest.raises(WorkspaceError, match="of your own"):
        finished_demo.open_finished_demo(workspace)
    assert sorted(path.name for path in project.artifacts_folder.iterdir()) == before
    assert jobs.list_jobs(project, finished_demo.KIND) == []


def test_a_stop_in_the_middle_can_be_gone_on_from(project):
    with pytest.raises(Stopped):
        finished_demo.unpack(project, Collected(stop_after=2))
    shutil.rmtree(project.artifact("coreset-0003").folder)
    finished_demo.unpack(project, Collected())
    assert artifacts.differences(project.artifact("coreset-0003").folder) == []


def repacked(path, change):
    """The archive with some of its files changed."""
    with zipfile.ZipFile(finished_demo.ARCHIVE) as packed, zipfile.ZipFile(path, "w") as out:
        for name in packed.namelist():
            out.writestr(name, change(name, packed.read(name)))
    return path


def test_a_damaged_archive_is_refused_and_named(project, tmp_path):
    bad = repacked(tmp_path / "bad.zip", lambda name, data: data[:-1] if name.endswith("predicted.npy") else data)
    with pytest.raises(WorkspaceError, match="predicted.npy was changed"):
        finished_demo.unpack(project, Collected(), bad)


def test_a_changed_artifact_is_refused_even_if_the_archive_agrees(project, tmp_path):
    """Somebody changed an artifact's settings and wrote the archive's manifest anew."""

    def change(name, data):
        if name == "artifacts/scores-0001/manifest.json":
            return change.bad
        if name == finished_demo.MANIFEST:
            said = json.loads(data)
            said["files"]["artifacts/scores-0001/manifest.json"] = finished_demo.hashlib.sha256(change.bad).hexdigest()
            return json.dumps(said).encode()
        return data

    own = json.loads(project.artifact("scores-0001").path("manifest.json").read_text("utf-8"))
    change.bad = json.dumps({**own, "settings": {**own["settings"], "gamma": 0.5}}).encode()
    bad = repacked(tmp_path / "bad.zip", change)
    shutil.rmtree(project.artifact("scores-0001").folder)
    with pytest.raises(InvalidDataError, match="scores-0001 of the finished demo cannot be verified"):
        finished_demo.unpack(project, Collected(), bad)
    assert project.latest("scores") is None and not list(project.artifacts_folder.glob(".*"))


def open_on(workspace, source, **pool):
    """The finished demo, opened where a pool is already."""
    project = workspace.create(finished_demo.TITLE, name=finished_demo.NAME)
    settings = ImportSettings(source=source.to_json(), pool=PoolSettings(**pool).to_json())
    import_source(project, settings, Collected())
    finished_demo.unpack(workspace.project(project.name), Collected())
    return workspace.project(project.name)


def test_the_same_images_in_other_bytes_are_as_good(workspace, unpacked):
    project = open_on(workspace, SourceSpec("demo"), size=32, channels=1)
    assert project.pool().hash != unpacked.pool().hash
    assert first_difference(verify(project.folder, Collected())) is None
    assert freshness.out_of_date(project) == [] and steps.next_step(project) == steps.next_step(unpacked)
    for mine, theirs in zip(project.artifacts("coreset"), unpacked.artifacts("coreset"), strict=True):
        assert (
            mine.hash != theirs.hash
            and mine.path("indices.npy").read_bytes() == theirs.path("indices.npy").read_bytes()
        )
        assert made_from(project, mine, "scores").id == "scores-0001"
    assert jobs.list_jobs(project, "dynamics")[0].pins["pool"] == project.pool().hash


def test_other_images_are_refused_with_the_way_out(workspace, class_folder):
    with pytest.raises(InvalidDataError, match="make demo-artifacts") as caught:
        open_on(workspace, SourceSpec("folder", str(class_folder)))
    assert caught.value.code == "OTHER_POOL"


def test_packing_it_again_gives_the_same_archive(project, tmp_path):
    finished_demo.write_archive(project, tmp_path / "again.zip", settings=manifest()[0]["settings"])
    assert (tmp_path / "again.zip").read_bytes() == finished_demo.ARCHIVE.read_bytes()


def test_a_copy_goes_its_own_way(project, workspace):
    copy = copy_project(workspace, project.name, "My own demo")
    assert copy.name == "my-own-demo" and copy.title == "My own demo"
    assert [a.hash for a in copy.artifacts()] == [a.hash for a in project.artifacts()]
    assert first_difference(verify(copy.folder, Collected(), images=False)) is None
    store, first = open_store(copy), open_store(project)
    assert store.snapshot().hash == first.snapshot().hash and store.last_seq == first.last_seq
    open_image = next(i for i in copy.pool().ids.tolist() if i not in {*store.labels().ids.tolist()})
    label_images(store, [open_image], store.classes.names()[0], annotator="ada")
    assert len(store.labels().ids) == len(first.labels().ids) + 1
    assert freshness.out_of_date(copy) and not freshness.out_of_date(project)


def test_a_copy_that_cannot_be_finished_leaves_nothing(project, workspace, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("semiprune_core.copies.projects.copy_labels", full)
    with pytest.raises(Exception, match="disk is full"):
        copy_project(workspace, project.name, "Half")
    assert workspace.names() == [project.name]


@pytest.mark.parametrize("page", ["home", *steps.BY_KEY])
def test_every_page_is_full(project, page):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    app.run()
    app = app if page == "home" else app.switch_page(f"{page}.py").run()
    assert not app.exception
    assert page == "pseudo" or not app.error  # there a red light speaks as an error
    assert not [one.value for one in app.info if "first" in one.value or "No project" in one.value]
    if page == "home":
        assert any("all steps are done" in one.value for one in app.caption)


def test_the_tour_goes_through_it_where_no_project_is_open(project):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE).run()
    app.button(key="tour_start").click().run()
    app.button(key="tour_next").click().run()
    assert not app.exception and app.session_state["project"] == project.name
    assert not [one.value for one in app.info if "No project" in one.value]


@pytest.mark.slow
def test_one_click_on_the_first_page_brings_it(workspace):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE).run()
    next(button for button in app.button if button.label == "Open the finished demo").click().run()
    assert not app.exception
    job = jobs.list_jobs(workspace.project(finished_demo.NAME), finished_demo.KIND)[0]
    assert jobs.wait(job, 300).state == jobs.DONE
    app.run()
    assert not app.exception and app.header[0].value == "Pool"
