"""Every page opens, for nobody's project, for an empty one and for one with images."""

import ast
import contextlib
import sqlite3
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import jobs, steps
from semiprune_core.demo.figures import figures
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import Event, checking, look_after_labels, open_store
from semiprune_core.labeling.store import store_file
from tests.support.job_runs import run_queued
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")
PAGES = ["home", "new", "present", *steps.BY_KEY]


def opened(page, project=None):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    if project is not None:
        app.session_state["project"] = project.name
    app.run()
    return app.switch_page(f"{page}.py").run() if page != "home" else app


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_a_project(page):
    app = opened(page)
    assert not app.exception
    if page in steps.BY_KEY:
        assert "No project is open" in app.info[0].value


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_for_a_project_without_images(page, workspace):
    app = opened(page, workspace.create("Empty"))
    assert not app.exception
    if page in steps.BY_KEY and page != "pool":
        assert "needs the step Pool first" in app.info[0].value


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_for_a_project_with_images(page, class_folder, import_into):
    app = opened(page, import_into(SourceSpec("folder", str(class_folder)))[0])
    assert not app.exception


def test_where_a_project_stands_is_asked_once_for_a_page(class_folder, import_into, monkeypatch):
    app, asked, standing = opened("pool", import_into(SourceSpec("folder", str(class_folder)))[0]), [], steps.standing
    monkeypatch.setattr(steps, "standing", lambda project: asked.append(project.name) or standing(project))
    app.run()
    assert not app.exception and len(asked) == 1


def test_every_page_leads_to_the_next_one_or_says_what_it_waits_for(class_folder, import_into):
    app = opened("pool", import_into(SourceSpec("folder", str(class_folder)))[0])
    assert app.button(key="next_page").label == "Next: Label"
    app.button(key="next_page").click().run()
    assert not app.exception and app.button(key="next_page").label == "Next: Train"
    assert app.button(key="next_page").disabled
    assert any("Train needs the step Label first" in caption.value for caption in app.caption)


def test_a_project_that_went_away_is_no_error(workspace):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = "gone"
    assert not app.run().exception


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": 1}', '{"schema": 1, "name": 1, "title": "A", "pool": 3}'])
def test_a_damaged_project_is_named_beside_the_others_and_can_be_restored(workspace, content):
    (workspace.create("Broken").folder / "project.json").write_text(content)
    workspace.create("Fine")
    app = opened("home")
    assert not app.exception
    assert "damaged" in app.error[0].value
    assert app.button(key="go_fine")
    app.button(key="restore_broken").click().run()
    assert not app.error and app.button(key="go_broken")


def test_damaged_labels_are_named_beside_the_other_projects_and_can_be_restored(workspace, class_folder, import_into):
    project = import_into(SourceSpec("folder", str(class_folder)))[0]
    workspace.create("Zoo")
    store = open_store(project)
    store.classes.add(["cat", "dog"], annotator="ana")
    image = int(project.pool().ids[0])
    store.append([Event(event_id="one", annotator="ana", action="label", image_id=image, class_id=0)])
    look_after_labels(workspace)
    with contextlib.closing(sqlite3.connect(store_file(project))) as connection, connection:
        connection.execute("UPDATE label_events SET class_id = 1")
    checking.forget(store_file(project))
    app = opened("home", project)
    assert not app.exception and app.button(key="go_zoo")
    assert "event 2" in app.error[0].value and "label by ana" in app.error[0].value
    app.button(key=f"restore_{project.name}").click().run()
    assert not app.error and "Nothing is lost" in app.success[0].value
    assert open_store(project).labels().class_ids.tolist() == [0]


def test_a_project_with_damaged_pictures_hides_no_other_and_can_be_archived(workspace, class_folder, import_into):
    project = import_into(SourceSpec("folder", str(class_folder)))[0]
    workspace.create("Zoo")
    (project.artifacts_folder / "pool-0001" / "manifest.json").write_text('{"schema": 1}')
    app = opened("home", project)
    assert not app.exception and app.button(key="go_zoo")
    assert all("damaged" in error.value for error in app.error)
    app.button(key=f"archive_{project.name}").click().run()
    assert not app.error and workspace.names() == ["zoo"]
    assert list((workspace.root / ".archive").glob(f"{project.name}-*/artifacts/pool-0001/manifest.json"))


def test_a_damaged_job_is_shown_on_its_projects_card_and_can_be_deleted(workspace):
    project = workspace.create("Jobs")
    job = jobs.submit(project, "import", {})
    (job.folder / "job.json").write_text("{}")
    app = opened("home")
    assert not app.exception and "'id' is missing" in app.warning[0].value
    app.button(key=f"delete_{job.id}").click().run()
    assert not app.warning and not job.folder.exists()


@pytest.mark.parametrize("way", ["upload", "folder", "zip", "manifest", "torchvision"])
def test_every_way_to_choose_a_source_opens(way):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE).run().switch_page("new.py")
    app.session_state["new_way"] = way
    assert not app.run().exception


@pytest.mark.parametrize(
    "key, way, text, words",
    [
        ("new_folder", "folder", "/etc", "lies outside the allowed folders"),
        ("new_folder", "folder", "https://example.com/pictures", "is an address, not a local path"),
        ("new_zip", "zip", "{tmp}/missing.zip", "is not a file on this server"),
        ("new_table", "manifest", "{tmp}/empty.csv", "empty"),
        ("new_root", "torchvision", "/etc", "lies outside the allowed folders"),
    ],
)
def test_a_bad_source_is_refused_in_words_on_the_page(tmp_path, key, way, text, words):
    (tmp_path / "empty.csv").write_text("")
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE).run().switch_page("new.py")
    app.session_state["new_way"] = way
    app.session_state[key] = text.format(tmp=tmp_path)
    app.run()
    assert not app.exception
    assert words in app.error[0].value.replace("\\", "")
    assert app.button[-1].disabled


def test_a_table_with_other_column_names_gets_a_chooser(tmp_path, class_folder):
    (tmp_path / "t.csv").write_text("where;what\ncat/001.png;cat\n")
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE).run().switch_page("new.py")
    app.session_state["new_way"] = "manifest"
    app.session_state["new_table"] = str(tmp_path / "t.csv")
    app.run()
    assert not app.exception
    assert app.dataframe[0].value.to_dict("records") == [{"where": "cat/001.png", "what": "cat"}]
    chosen = {box.label: box.options for box in app.selectbox if box.label.endswith("column")}
    assert chosen["Path column"] == ["where", "what"]
    assert chosen["Label column"] == ["(none)", "where", "what"]


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "not a table by its name"),
        ("history.txt", "path\na.png\n", "not a table by its name"),
        ("keys.csv", "user,key\nana,s3cret\nbob,geheim\n", "names no images"),
        (".hidden/t.csv", "path\na.png\n", "is hidden"),
        ("home/secret", "s3cret", "lies in the workspace"),
    ],
)
def test_only_tables_of_images_are_previewed(tmp_path, name, content, words):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE).run().switch_page("new.py")
    app.session_state["new_way"] = "manifest"
    app.session_state["new_table"] = str(tmp_path / name)
    app.run()
    assert not app.exception and not app.dataframe
    assert words in app.error[0].value.replace("\\", "")


def new_from_folder(folder):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE).run().switch_page("new.py")
    app.session_state["new_way"] = "folder"
    app.session_state["new_folder"] = str(folder)
    return app.run()


def press(app, label):
    next(button for button in app.button if button.label == label).click().run()


def test_labels_of_a_source_are_a_reference_or_those_of_a_person_as_chosen(workspace, class_folder):
    app = new_from_folder(class_folder)
    assert app.radio(key="new_labels").value == "reference"
    app.radio(key="new_labels").set_value("human").run()
    app.text_input(key="new_annotator").set_value("reference").run()
    press(app, "Import")
    assert "Choose another" in app.error[0].value and not workspace.names()
    app.text_input(key="new_annotator").set_value("ada").run()
    next(box for box in app.checkbox if box.key == "new_features").uncheck().run()
    press(app, "Import")
    assert not app.exception
    project = workspace.project(*workspace.names())
    for _ in range(2):  # the import, then what follows it
        run_queued(workspace)
    held = open_store(project).held()
    assert {label.holder for label in held} == {"ada"} and len(held) == len(project.pool())


def test_folders_that_give_no_labels_leave_nothing_to_choose(class_folder):
    app = new_from_folder(class_folder)
    next(box for box in app.checkbox if "folder_labels" in box.key).uncheck().run()
    assert not app.exception and not [radio for radio in app.radio if radio.key == "new_labels"]


def test_a_folder_is_asked_for_once_and_remembered(workspace, class_folder, monkeypatch):
    monkeypatch.delenv("SEMIPRUNE_ROOTS")
    monkeypatch.setenv("HOME", str(class_folder.parent))  # folders below a home may be allowed
    app = new_from_folder(class_folder)
    assert not app.exception and "Allow it once" in app.info[0].value
    app.button(key="new_allow").click().run()
    assert not any("Allow it" in info.value for info in app.info)
    assert not app.error and workspace.allowed_folders() == (class_folder,)
    app.button(key="new_remove_0").click().run()
    assert "Allow it once" in app.info[0].value and workspace.allowed_folders() == ()


def test_where_others_come_in_nobody_allows_a_folder_by_a_click(class_folder, monkeypatch):
    monkeypatch.delenv("SEMIPRUNE_ROOTS")
    monkeypatch.setenv("SEMIPRUNE_PASSWORD", "correct horse battery")
    app = new_from_folder(class_folder)
    assert "lies outside the allowed folders" in app.error[0].value and not app.info


def fragments_and_dialogs():
    for path in sorted((Path(MAIN).parent).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
            if any(mark.startswith(("st.fragment", "st.dialog")) for mark in marks):
                yield f"{path.stem}.{node.name}", marks


def test_no_fragment_lets_a_core_error_out_as_a_traceback():
    found = dict(fragments_and_dialogs())
    assert len(found) > 10
    assert {name for name, marks in found.items() if marks[-1] != "errors.shown()"} == set()


def test_the_empty_home_says_what_the_demo_measured(workspace):
    app = opened("home")
    shown = {metric.label: metric.value for metric in app.metric}
    measured = figures()
    assert shown["Accuracy, coreset"] == f"{measured.coreset.mean:.1%}"
    assert shown["Accuracy, all images"] == f"{measured.full.mean:.1%}"
    assert shown["Labels not needed"] == f"{measured.labels_saved:,}"
    assert measured.coreset.n > 1 and measured.coreset.mean > measured.random.mean


def test_a_project_is_renamed_put_aside_and_brought_back_on_its_card(workspace):
    workspace.create("Zoo")
    workspace.create("Ants")
    app = opened("home")
    app.text_input(key="title_zoo").set_value("Beasts").run()
    app.button(key="rename_zoo").click().run()
    assert workspace.project("zoo").title == "Beasts"
    app.button(key="archive_zoo").click().run()
    assert not app.exception and workspace.names() == ["ants"]
    (back,) = (button for button in app.button if button.label == "Bring back")
    back.click().run()
    assert not app.exception and workspace.names() == ["ants", "zoo"]
    app.selectbox(key="home_sort").set_value("title").run()
    assert [button.key for button in app.button if button.key and button.key.startswith("go_")] == ["go_ants", "go_zoo"]
