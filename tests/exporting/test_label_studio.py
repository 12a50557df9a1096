"""There and back through Label Studio 1.23.2: files it wrote, and the real one where it is installed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

from semiprune_core.errors import InvalidSettingError
from semiprune_core.exporting import ExportOptions, export_coreset
from semiprune_core.labeling import Event, open_store
from semiprune_core.labeling.agreement import agreement
from semiprune_core.labeling.exchange.csv_files import csv_columns, is_label_studio
from semiprune_core.labeling.import_labels import import_csv, import_label_studio
from semiprune_core.project.workspace import Workspace
from tests.exporting.conftest import add_scores, imported, select_in
from tests.exporting.label_studio import CLASSES, FORMS, SOURCE, expected, make_project, names_now, planned, send
from tests.support.effort import FULL
from tests.tools import label_studio as tool

WRITTEN = Path(__file__).parent / "written_by_label_studio"
"""Its exports of the two projects below, made by ``test_the_real_one`` with SEMIPRUNE_KEEP=1."""


@pytest.fixture(scope="module")
def _made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("label_studio")
    project = make_project(folder)
    return project, send(project, folder)


@pytest.fixture
def sent(_made):
    return _made[1]


@pytest.fixture
def store(_made, tmp_path):
    return copied_labels(_made[0], tmp_path / "copy")


def copied_labels(project, home):
    """The labels and the pool of a fresh copy of the project."""
    shutil.copytree(project.folder, home / project.folder.name)
    copy = Workspace.open(home).project(project.name)
    return open_store(copy), copy.pool()


def take_in(store, pool, data, form, **options):
    read = import_csv if form == "CSV" else import_label_studio
    return read(store, pool, data, annotator="eve", **options)


@pytest.mark.parametrize("form", list(FORMS))
def test_exactly_what_was_corrected_confirmed_or_changed_comes_back(form, sent, store):
    check_coreset(*store, sent, (WRITTEN / f"coreset.{FORMS[form]}").read_bytes(), form)


def check_coreset(store, pool, sent, data, form):
    plan, before, kappa = planned(sent.tasks), names_now(store), agreement(store)
    result = take_in(store, pool, data, form)
    assert (result.n_saved, list(result.problems), result.warnings) == (3, [], ())
    assert names_now(store) == expected(before, plan)
    new = [row for row in store.events() if row["actor"] == "eve"]
    assert {(row["source"], row["annotator"]) for row in new} == {("review", "label-studio 1")} and len(new) == 3
    assert agreement(store) == kappa
    again = take_in(store, pool, data, form)
    assert (again.n_saved, list(again.problems)) == (0, [])


@pytest.mark.parametrize("form", list(FORMS))
def test_answers_come_back_under_the_names_they_went_out_with(form, sent, store):
    check_answers(*store, sent, (WRITTEN / f"answers.{FORMS[form]}").read_bytes(), form)


def check_answers(store, pool, sent, data, form):
    """One of ada's answers was corrected; all others are as they went out, so nobody is invented."""
    before, plan = names_now(store), answers_plan(sent.answers)
    result = take_in(store, pool, data, form)
    assert (result.n_saved, list(result.problems)) == (1, [])
    assert names_now(store) == expected(before, plan)
    assert {held.holder for held in store.held() if held.round == "label"} == {"ada", "ben"}


def answers_plan(tasks):
    task = next(task for task in tasks if len(task["annotations"]) == 1)["data"]
    return {task["image_id"]: ("correct", "NA" if task["human_label"] != "NA" else "+1")}


def test_tasks_that_never_went_through_label_studio_say_nothing_new(sent, store):
    data = json.dumps(sent.tasks).encode()
    assert take_in(*store, data, "JSON").n_saved == 0


def test_an_older_export_without_our_facts_takes_nothing_for_a_blind_label(sent, store):
    """Its tasks name image and source only; predictions come back as numbers."""
    tasks = json.loads((WRITTEN / "coreset.json").read_bytes())
    for task in tasks:
        task["data"] = {key: task["data"][key] for key in ("image", "image_id", "label_source", "rank")}
    labels, pool = store
    before = names_now(labels)
    result = import_label_studio(labels, pool, json.dumps(tasks).encode(), annotator="eve")
    assert [problem.code for problem in result.problems] == ["ALREADY_LABELED"] and result.n_saved == 2
    assert {row["source"] for row in labels.events() if row["actor"] == "eve"} == {"review"}
    assert before.items() <= names_now(labels).items()


def test_a_correction_of_a_label_that_changed_meanwhile_is_listed(sent, store):
    labels, pool = store
    data = (WRITTEN / "coreset.csv").read_bytes()
    take_in(labels, pool, data, "CSV")
    corrected = next(iter(planned(sent.tasks)))
    text = f"image_id,label,label_source,pseudo_label\n{corrected},a/b,human,NA\n"
    assert import_csv(labels, pool, text.encode(), annotator="ann", replace=True).n_saved == 1
    result = take_in(labels, pool, data, "CSV")
    assert [problem.code for problem in result.problems] == ["ALREADY_LABELED"] and result.n_saved == 0


def test_a_csv_of_label_studio_is_known_without_its_annotation_ids():
    table = pd.read_csv(WRITTEN / "answers.csv", dtype=str, keep_default_na=False)
    less = table.drop(columns=["annotation_id", "annotators", "answers", "id"]).to_csv(index=False).encode()
    assert is_label_studio(csv_columns(less))
    assert not is_label_studio(("path", "choice")) and not is_label_studio((*table.columns, "label"))


def test_copies_of_a_labeled_picture_come_back_as_they_went_out(tmp_path):
    """A copy goes out with the label of its twin, and that is nobody's new answer."""
    first = make_project(tmp_path / "one")
    source = tmp_path / "one" / SOURCE
    for path in sorted(source.rglob("*.png")):
        shutil.copy(path, path.with_name(f"copy of {path.name}"))
    project = add_scores(imported(tmp_path, "folder", source, tmp_path / "home-2"), CLASSES)
    assert len(project.pool()) == 2 * len(first.pool())
    labels, pool = open_store(project), project.pool()
    labels.classes.add(CLASSES, annotator="ada")
    labels.append([Event(event_id="a", annotator="ada", action="label", image_id=int(pool.ids[0]), class_id=0)])
    run = select_in(project, 0.0)
    for form, read in (("labelstudio", import_label_studio), ("csv", import_csv)):
        export = export_coreset(project, run, form, ExportOptions(exact=True))
        data = export.files["labelstudio" if form == "labelstudio" else "kept"].read_bytes()
        assert read(labels, pool, data, annotator="eve").n_saved == 0


def test_packed_pictures_are_handed_over_or_refused_in_words(hostile):
    run = select_in(hostile)
    with pytest.raises(InvalidSettingError, match="Hand them over with the tasks"):
        export_coreset(hostile, run, "labelstudio")
    folder = export_coreset(hostile, run, "labelstudio", ExportOptions(images="copy")).files["folder"]
    tasks = json.loads((folder / "labelstudio.json").read_text("utf-8"))
    names = {unquote(task["data"]["image"].removeprefix("/data/local-files/?d=images/")) for task in tasks}
    assert names == {path.name for path in (folder / "images").iterdir()} and len(names) == 6
    assert "LOCAL_FILES_DOCUMENT_ROOT" in (folder / "README.md").read_text("utf-8")


def test_the_readme_names_the_folders_to_set_up(sent, _made):
    project, _ = _made
    export = export_coreset(project, sent.run, "labelstudio")
    text = export.files["labelstudio-readme"].read_text("utf-8")
    root = Path(project.pool().segments[0].artifact.facts["root"])
    assert f'DOCUMENT_ROOT="{root.parent}"' in text and f"`{root}`" in text
    assert {task["data"]["image"].split("?d=")[1].split("/")[0] for task in sent.tasks} == {"Bilder%20%C3%BC%20%231%25"}


@pytest.mark.slow
@pytest.mark.skipif(not FULL or tool.installed() is None, reason=f"SEMIPRUNE_FULL=1 and {tool.ENVIRONMENT} run it")
def test_the_real_one(sent, _made, tmp_path, hostile):
    """Pictures shown, answers corrected, confirmed and changed, all three forms taken back."""
    project, program = _made[0], tool.installed()
    root = Path(project.pool().segments[0].artifact.facts["root"])
    found: dict[tuple[str, str], bytes] = {}
    with tool.running(program, tmp_path / "studio", root.parent) as studio:
        for name, tasks, plan in (
            ("coreset", sent.tasks, planned(sent.tasks)),
            ("answers", sent.answers, answers_plan(sent.answers)),
        ):
            number = studio.new_project(name, sent.config, tasks)
            studio.add_storage(number, root)
            there = studio.tasks(number)
            assert {studio.status(task["data"]["image"]) for task in there.values()} == {200}
            for image_id, (action, label) in plan.items():
                getattr(studio, action)(there[image_id], label)
            for form in FORMS:
                found[name, form] = studio.export(number, form)
    for (name, form), data in found.items():
        if os.environ.get("SEMIPRUNE_KEEP"):
            WRITTEN.mkdir(exist_ok=True)
            (WRITTEN / f"{name}.{FORMS[form]}").write_bytes(data)
        check = check_coreset if name == "coreset" else check_answers
        check(*copied_labels(project, tmp_path / f"{name}-{form}"), sent, data, form)
    folder = export_coreset(hostile, select_in(hostile), "labelstudio", ExportOptions(images="copy")).files["folder"]
    with tool.running(program, tmp_path / "studio", folder) as studio:
        tasks = json.loads((folder / "labelstudio.json").read_text("utf-8"))
        number = studio.new_project("packed", (folder / "labelstudio-config.xml").read_text("utf-8"), tasks)
        studio.add_storage(number, folder / "images")
        assert {studio.status(task["data"]["image"]) for task in tasks} == {200}
