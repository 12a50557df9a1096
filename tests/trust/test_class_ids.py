"""A class is a number: what a rename, a new order, a merge, an addition and a removal do to results made before."""

import dataclasses

import numpy as np
import pytest

from semiprune_core.exporting.content import labels_now
from semiprune_core.labeling import open_store
from semiprune_core.labeling.checking import CHECKPOINT
from semiprune_core.labeling.import_labels import take_reference
from semiprune_core.refresh.freshness import out_of_date
from semiprune_core.results import PseudoRun, latest_pseudo
from semiprune_core.server.queues import next_cards
from semiprune_core.training import changes_since, keep_snapshot, reference_on
from semiprune_core.trust import quality_report, review
from tests.support.pseudo_runs import fake_pseudo, label_share
from tests.support.training_projects import small_project


@pytest.fixture(params=[False, True], ids=["by number", "by name, as older versions"])
def project(request, workspace, tmp_path):
    """Sixty images of the classes a, b and c, half of them labeled, with pseudo-labels."""
    project = small_project(workspace, tmp_path, reference=False)
    label_share(project, 0.5)
    store, by_name = open_store(project), request.param
    store.classes.add(["spare"], annotator="ada")
    snapshot = store.snapshot()
    keep_snapshot(project, dataclasses.replace(snapshot, class_ids=()) if by_name else snapshot)
    fake_pseudo(project, wrong=0.3, held_out=0.9, by_name=by_name)
    return project


def number_of(project, name):
    return next(entry.class_id for entry in open_store(project).classes.all() if entry.name == name)


def seen(project):
    """What the pages say of the newest run, without any name."""
    run, store = latest_pseudo(project), open_store(project)
    report = quality_report.report(project.pool(), run, store=store)
    return (
        report.held_out.accuracy,
        report.reference.accuracy,
        report.reference.confusion.tolist(),
        review.human_labels(project.pool(), run, store).tolist(),
        next_cards("doubt", store, project.pool(), "ada", 9).suggestions,
        labels_now(project, project.pool(), run)[0].labels.tolist(),
    )


def test_a_rename_changes_nothing_but_the_name(project):
    before, store = seen(project), open_store(project)
    pinned = latest_pseudo(project).artifact.inputs["labels"]
    store.classes.rename(number_of(project, "b"), "bee", annotator="ada")
    assert out_of_date(project) == [] and changes_since(project, pinned, store.snapshot()) is None
    assert latest_pseudo(project).class_names == ("a", "bee", "c", "spare")
    assert latest_pseudo(project).recorded_names == ("a", "b", "c", "spare")
    assert labels_now(project, project.pool(), latest_pseudo(project))[0].class_names == ("a", "bee", "c", "spare")
    assert seen(project) == before


def test_two_classes_that_swap_their_names_are_not_taken_for_each_other(project):
    before, classes = seen(project), open_store(project).classes
    a, b = number_of(project, "a"), number_of(project, "b")
    for number, name in ((a, "x"), (b, "a"), (a, "b")):
        classes.rename(number, name, annotator="ada")
    if latest_pseudo(project).artifact.facts["class_ids"]:
        assert latest_pseudo(project).class_names[:2] == ("b", "a")
        assert seen(project) == before
        assert out_of_date(project) == []
    pool, store = project.pool(), open_store(project)
    found = reference_on(store.snapshot(), pool)
    assert found.tolist() == pool.reference_labels.tolist()  # by number, though each has the other's name
    take_reference(store, pool)
    assert (store.snapshot().on_pool(pool.ids, pool.duplicate_of)[0] == pool.reference_labels)[: len(pool)].any()


def test_another_order_changes_nothing(project):
    before, classes = seen(project), open_store(project).classes
    pinned = latest_pseudo(project).artifact.inputs["labels"]
    classes.reorder([entry.class_id for entry in reversed(classes.all())], annotator="ada")
    assert changes_since(project, pinned, open_store(project).snapshot()) is None
    assert out_of_date(project) == [] and seen(project) == before


def test_classes_without_labels_come_and_go(project):
    before, classes = seen(project), open_store(project).classes
    classes.add(["new"], annotator="ada")
    spare = number_of(project, "spare")
    classes.remove(spare, annotator="ada")
    after = seen(project)
    assert out_of_date(project) == [] and [*after[:4], after[5]] == [*before[:4], before[5]]
    assert spare not in {class_id for class_id, _ in after[4].values()}  # an answer that nobody could accept


def test_after_a_merge_it_is_out_of_date_and_nothing_is_given_the_merged_class(project):
    store = open_store(project)
    a, b = number_of(project, "a"), number_of(project, "b")
    store.classes.merge(b, a, annotator="ada")
    assert [stale.artifact.kind for stale in out_of_date(project)] == ["pseudo"]
    run = latest_pseudo(project)
    labels, _ = labels_now(project, project.pool(), run)
    assert "b" not in {labels.class_names[label] for label in np.unique(labels.labels)}
    suggested = {class_id for class_id, _ in next_cards("doubt", store, project.pool(), "ada", 60).suggestions.values()}
    assert a in suggested and b not in suggested


def test_reference_labels_find_a_class_by_its_former_name(project):
    store = open_store(project)
    store.classes.rename(number_of(project, "b"), "bee", annotator="ada")
    pool = project.pool()
    found = reference_on(store.snapshot(), pool)
    assert (found >= 0).all() and (found == pool.reference_labels).all()
    take_reference(store, pool)
    assert store.classes.names() == ("a", "bee", "c", "spare")  # and no second b was added


def test_a_run_in_a_folder_without_labels_keeps_its_names(project):
    run = latest_pseudo(project)
    for name in ("labels.sqlite", CHECKPOINT):
        (project.folder / name).unlink()
    assert PseudoRun(run.artifact).class_names == run.recorded_names
