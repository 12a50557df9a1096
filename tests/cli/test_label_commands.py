"""``semiprune sample``, ``semiprune labels`` and ``semiprune classes``."""

import json

import numpy as np
import pytest

from semiprune_core import cli
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from tests.support.fake_model import give_model


@pytest.fixture
def project(class_folder, import_into):
    return import_into(SourceSpec("folder", str(class_folder)))[0]


@pytest.fixture
def run(capsys):
    def run(*words):
        code = cli.main([*words, "--json"])
        said = capsys.readouterr()
        value = json.loads(said.out) if said.out else {}
        return code, said.err if code != 0 and "problems" not in value else value

    return run


def test_sample_draws_and_extends(run, project):
    code, first = run("sample", project.name)
    assert (code, first["images"], first["of"], first["uniform"], first["extends"]) == (0, 2, 20, True, None)
    ids = open_store(project).drawings.latest().ids
    _, more = run("sample", project.name, "--fraction", "0.5")
    assert (more["images"], more["extends"]) == (10, first["drawing"])
    assert open_store(project).drawings.latest().ids[:2].tolist() == ids.tolist()
    assert run("sample", project.name, "--count", "20", "--seed", "3")[1]["images"] == 20


def test_a_coverage_drawing_is_not_uniform(run, project):
    assert run("sample", project.name, "--count", "5", "--method", "coverage")[1]["uniform"] is False


def test_the_models_doubts_are_drawn_once_it_has_seen_this_pool(run, project):
    code, said = run("sample", project.name, "--count", "2", "--method", "uncertainty")
    assert code == 1 and "Train one first" in said
    pool = project.pool()
    give_model(project, pool_hash="of another pool")
    assert run("sample", project.name, "--count", "2", "--method", "uncertainty")[0] == 1
    give_model(project, pool_hash=pool.hash)
    assert run("sample", project.name, "--count", "2", "--method", "uncertainty")[1]["uniform"] is False
    assert open_store(project).drawings.latest().ids.tolist() == pool.ids[[-1, -2]].tolist()


def test_coverage_looks_through_the_models_eyes(run, project):
    """The model sees two kinds of pictures, the pixels do not: of each kind comes one."""
    pool = project.pool()
    kinds = np.arange(len(pool)) == 7
    give_model(project, pool_hash=pool.hash, features=np.column_stack([100.0 * kinds, kinds]))
    run("sample", project.name, "--count", "2", "--method", "coverage")
    assert int(pool.ids[7]) in open_store(project).drawings.latest().ids.tolist()


@pytest.mark.parametrize("words", [("--fraction", "0"), ("--fraction", "1.5"), ("--count", "21"), ("--overlap", "2")])
def test_a_drawing_out_of_range_is_refused(run, project, words):
    code, said = run("sample", project.name, *words)
    assert code == 1
    assert "must be" in said
    assert open_store(project).drawings.latest() is None


def test_reference_labels_go_out_and_come_back(run, project, tmp_path):
    run("sample", project.name, "--fraction", "1")
    assert run("labels", "reference", project.name)[1]["saved"] == 20
    for name in ("labels.csv", "labels.json"):
        file = str(tmp_path / name)
        assert run("labels", "export", project.name, file)[1]["rows"] == 20
        code, back = run("labels", "import", project.name, file, "--annotator", "reference")
        assert (code, back["rows"], back["unchanged"], back["problems"]) == (0, 20, 20, [])


def test_unknown_paths_and_classes_are_listed(run, project, tmp_path):
    path = project.pool().path(0)
    (tmp_path / "in.csv").write_text(f"path,label\n{path},newt\nnowhere.png,cat\n")
    _, said = run("labels", "import", project.name, str(tmp_path / "in.csv"))
    assert [problem["code"] for problem in said["problems"]] == ["UNKNOWN_CLASS", "UNKNOWN_PATH"]
    _, said = run("labels", "import", project.name, str(tmp_path / "in.csv"), "--create-classes")
    assert (said["saved"], said["new_classes"][0]) == (1, "newt")


@pytest.mark.parametrize(
    "words, reason",
    [
        (("import", "{name}"), "needs a file"),
        (("import", "{name}", "nothing.csv"), "cannot be read"),
        (("export", "{name}", "no/such/folder/x.csv"), "folder does not exist"),
        (("reference", "{name}", "x.csv"), "takes no file"),
        (("reference", "{name}"), "No images were drawn yet"),
        (("reference", "nobody"), "There is no project"),
    ],
)
def test_a_mistake_is_one_sentence(run, project, words, reason):
    code, said = run("labels", *(word.format(name=project.name) for word in words))
    assert code == 1
    assert reason in said
    assert said.count("\n") == 1


def test_classes_are_added_renamed_merged_ordered_and_removed(run, project):
    def names(*words):
        code, value = run("classes", project.name, *words)
        assert code == 0, value
        return [row["name"] for row in value["classes"]]

    assert names() == [] and names("add", "cat", "dog", "owl", "wolf") == ["cat", "dog", "owl", "wolf"]
    assert names("rename", "owl", "eagle") == ["cat", "dog", "eagle", "wolf"]
    assert names("merge", "wolf", "dog") == ["cat", "dog", "eagle"]
    assert names("order", "eagle") == ["eagle", "cat", "dog"]
    assert names("remove", "2") == ["cat", "dog"]
    rows = run("classes", project.name, "set", "cat", "--key", "x", "--colour", "#102030")[1]["classes"]
    assert (rows[0]["key"], rows[0]["colour"], rows[0]["labels"]) == ("x", "#102030", 0)


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["rename", "cat"], "Write: semiprune classes"),
        (["rename", "bird", "owl"], "There is no class 'bird'. Classes: cat, dog."),
        (["rename", "cat", "dog"], "There is already a class 'dog'. Choose another name, or merge the two classes."),
        (["merge", "cat", "cat"], "A class cannot be merged into itself."),
        (["remove", "cat"], "The class 'cat' has labels. Merge it into another class instead."),
        (["set", "cat"], "--key K --colour #rrggbb"),
        (["add", "owl", "--key", "o"], "--key and --colour belong to: semiprune classes NAME set CLASS"),
    ],
)
def test_what_cannot_be_done_with_classes_is_said_as_on_the_page(run, project, words, sentence):
    run("sample", project.name, "--fraction", "1")
    run("labels", "reference", project.name)
    code, said = run("classes", project.name, *words)
    assert code == 1 and sentence in said
