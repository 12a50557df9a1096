"""A coreset's labels: annotated in the app, in Label Studio or in a spreadsheet, they come back and count as human."""

import csv
import io
import json

import numpy as np
import pytest

from semiprune_core.errors import UnknownNameError, WorkspaceError
from semiprune_core.exporting import export_coreset, open_content
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.labeling import Event, open_store
from semiprune_core.labeling.export_labels import choice
from semiprune_core.labeling.import_labels import import_csv, import_label_studio
from semiprune_core.progress import Collected
from semiprune_core.project.pool import read_id
from semiprune_core.results import PseudoRun
from semiprune_core.server.queues import next_cards
from semiprune_core.trust import review
from tests.exporting.conftest import CLASSES
from tests.support.pseudo_runs import label_share


@pytest.fixture
def run(project, select):
    """A coreset of 20 images, and a label store that knows the classes."""
    open_store(project).classes.add(CLASSES, annotator="ada")
    return select(0.5)


@pytest.fixture
def store(project, run):
    return open_store(project)


def classes_of(store):
    return {one.name: one.class_id for one in store.classes.all()}


def names_now(store):
    """Image id -> class name of every label that counts now."""
    names = {number: name for name, number in classes_of(store).items()}
    labels = store.labels()
    return {int(i): names[int(c)] for i, c in zip(labels.ids, labels.class_ids, strict=True)}


def other(name):
    return CLASSES[(CLASSES.index(name) + 1) % len(CLASSES)]


def test_the_queue_holds_the_coreset_alone_most_doubtful_first(project, run, store):
    pool, pseudo = project.everything(), PseudoRun(project.latest("pseudo"))
    cards = next_cards(f"coreset:{run.artifact.id}", store, pool, "ada", 500)
    positions = pool.positions(cards.ids)
    assert cards.round == "review" and sorted(positions) == sorted(run.coreset().indices)
    doubt = review.doubt(review.signals(project, pseudo)).score[positions]
    assert (np.diff(doubt) <= 1e-12).all()
    names = {number: name for name, number in classes_of(store).items()}
    for image_id, position in zip(cards.ids.tolist(), positions, strict=True):
        assert names[cards.suggestions[image_id][0]] == CLASSES[pseudo.predicted()[position]]


def test_what_was_answered_leaves_the_queue_and_is_counted(project, run, store):
    pool, name = project.pool(), f"coreset:{run.artifact.id}"
    first, second = next_cards(name, store, project.everything(), "ada", 2).ids.tolist()
    numbers = classes_of(store)
    label = {"annotator": "ada", "source": "review"}
    store.append([Event(event_id="a", action="label", image_id=first, class_id=numbers["owl"], **label)])
    store.append([Event(event_id="b", action="skip", image_id=second, **label)])
    found = review.coreset_labels(pool, run, store)
    assert (found.n_kept, found.n_human, found.n_skipped, found.n_left) == (20, 1, 1, 18)
    left = next_cards(name, store, project.everything(), "ada", 500).ids.tolist()
    assert len(left) == 18 and not {first, second} & {*left}


def test_nobody_is_asked_for_images_of_the_final_test(project, run, store):
    label_share(project, 0.5, final_test=0.5)
    final = store.final_test().ids
    pool = project.pool()
    indices = run.coreset().indices
    labeled, _ = store.snapshot().on_pool(pool.ids, pool.duplicate_of)
    n_final, n_human = int(np.isin(pool.ids[indices], final).sum()), int((labeled[indices] >= 0).sum())
    found = review.coreset_labels(pool, run, store)
    assert n_final and (found.n_final, found.n_human, found.n_left) == (n_final, n_human, 20 - n_final - n_human)
    left = next_cards(f"coreset:{run.artifact.id}", store, project.everything(), "ada", 500).ids
    assert len(left) == found.n_left and not np.isin(left, final).any()


def test_such_labels_never_serve_an_unbiased_estimate(project, run, store):
    label_share(project, 0.2)
    before = store.snapshot()
    image = next_cards(f"coreset:{run.artifact.id}", store, project.everything(), "ada", 1).ids[0]
    event = Event(event_id="r", annotator="ada", action="label", image_id=int(image), class_id=1, source="review")
    store.append([event])
    now = store.snapshot()
    assert len(now) == len(before) + 1 and now.uniform_mask.sum() == before.uniform_mask.sum()


@pytest.mark.parametrize("name", ["coreset", "drawn:coreset-0001", "coreset:"])
def test_a_queue_that_means_nothing_is_refused_in_words(project, run, store, name):
    with pytest.raises((UnknownNameError, WorkspaceError)):
        next_cards(name, store, project.everything(), "ada", 5)


def test_label_studio_answers_come_back_for_the_right_images(project, run, store):
    """Our task file, annotated as Label Studio writes it: accepted, corrected, skipped, left alone."""
    tasks = json.loads(export_coreset(project, run, "labelstudio").files["labelstudio"].read_text("utf-8"))
    wanted = {}
    for number, task in enumerate(tasks[:9]):
        said = task["predictions"][0]["result"][0]["value"]["choices"][0]
        name = said if number % 2 else other(said)
        is_skipped = number == 4
        task["id"] = number + 1
        task["annotations"] = [
            {
                "id": 100 + number,
                "completed_by": 7,
                "result": [] if is_skipped else [{**choice(name), "id": "x9", "origin": "manual"}],
                "was_cancelled": is_skipped,
                "ground_truth": False,
                "lead_time": 2.5,
                "created_at": "2026-01-01T00:00:00Z",
            }
        ]
        if not is_skipped:
            wanted[read_id(task["data"]["image_id"])] = name
    result = import_label_studio(store, project.pool(), json.dumps(tasks).encode(), annotator="ada")
    human = [task for task in tasks[9:] if task["data"]["label_source"] == "human"]
    assert result.n_saved == 9 + len(human) and not result.problems
    now = names_now(store)
    assert {image: now[image] for image in wanted} == wanted
    events = [row for row in store.events() if row["annotator"] == "label-studio 7"]
    assert len(events) == 9 and {row["source"] for row in events} == {"review"}
    assert {row["lead_time_ms"] for row in events} == {2500}
    again = import_label_studio(store, project.pool(), json.dumps(tasks).encode(), annotator="ada")
    assert again.n_saved == 0 and not again.problems


def edited(export, change):
    """The coreset's CSV after somebody has worked on it in a spreadsheet."""
    rows = list(csv.DictReader(io.StringIO(export.files["kept"].read_text("utf-8"))))
    out = io.StringIO()
    table = csv.DictWriter(out, rows[0].keys(), lineterminator="\r\n")
    table.writeheader()
    table.writerows(change(number, dict(row)) for number, row in enumerate(rows))
    return rows, out.getvalue().encode()


def test_only_the_edited_rows_of_a_coreset_csv_are_a_persons(project, run, store):
    export = export_coreset(project, run, "csv")
    wanted = {}

    def change(number, row):
        if row["label_source"] == "pseudo" and len(wanted) < 3:
            row["label"] = other(row["label"])
            wanted[read_id(row["image_id"])] = row["label"]
        return row

    rows, data = edited(export, change)
    human = [row for row in rows if row["label_source"] == "human"]
    result = import_csv(store, project.pool(), data, annotator="bob")
    now = names_now(store)
    assert {image: now[image] for image in wanted} == wanted
    # a person's labels that this store does not know yet come along; the model's unchanged answers do not
    assert {*now} == {*wanted} | {read_id(row["image_id"]) for row in human}
    assert result.n_saved == len(now) and not result.problems
    assert {row["source"] for row in store.events()} == {"review"}


def test_a_persons_label_is_changed_by_an_import_only_when_asked(project, run, store):
    export = export_coreset(project, run, "csv")
    first = {}

    def flip(number, row):
        if number == 0:
            row["label"] = first.setdefault("label", other(row["label"]))
            first["image"] = read_id(row["image_id"])
        return row

    _, data = edited(export, flip)
    import_csv(store, project.pool(), data, annotator="bob")
    assert names_now(store)[first["image"]] == first["label"]
    first["label"] = other(first["label"])
    _, data = edited(export, flip)
    refused = import_csv(store, project.pool(), data, annotator="eve")
    assert [problem.code for problem in refused.problems] == ["ALREADY_LABELED"] and refused.n_saved == 0
    taken = import_csv(store, project.pool(), data, annotator="eve", replace=True)
    assert taken.n_saved == 1 and names_now(store)[first["image"]] == first["label"]


def test_the_export_counts_them_as_human_and_still_verifies(project, run, store):
    before = export_coreset(project, run, "csv")
    cards = next_cards(f"coreset:{run.artifact.id}", store, project.everything(), "ada", 500)
    review.label_images(store, cards.ids[:6].tolist(), "owl", annotator="ada")
    content = open_content(project, run)
    after = export_coreset(project, run, "csv", content=content)
    assert after.manifest["counts"]["n_human"] == 6 and after.id != before.id
    assert after.manifest["label_snapshot"] == store.snapshot().hash
    rows = list(csv.DictReader(io.StringIO(after.files["kept"].read_text("utf-8"))))
    by_people = {read_id(row["image_id"]): row["label"] for row in rows if row["label_source"] == "human"}
    assert by_people == dict.fromkeys(cards.ids[:6].tolist(), "owl")
    assert [row["image_id"] for row in rows] == [
        row["image_id"] for row in csv.DictReader(io.StringIO(before.files["kept"].read_text("utf-8")))
    ]
    assert first_difference(verify(after.path, Collected())) is None


def test_a_class_that_came_up_later_is_in_the_export(project, run, store):
    store.classes.add(["yak"], annotator="ada")
    image = next_cards(f"coreset:{run.artifact.id}", store, project.everything(), "ada", 1).ids.tolist()
    review.label_images(store, image, "yak", annotator="ada")
    content = open_content(project, run)
    assert content.class_names == (*CLASSES, "yak") and content.kept_per_class()["yak"] == 1
