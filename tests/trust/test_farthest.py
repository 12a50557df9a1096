"""Drawing where a class without labels may be: far from the labeled images, or beside the few of a class."""

import json

import numpy as np
import pytest

from semiprune_core import cli
from semiprune_core.labeling import Event, open_store
from semiprune_core.live import follow
from semiprune_core.server.queues import next_cards
from semiprune_core.trust.farthest import REST, directions, farthest_first, nearest_first
from tests.support.features import add_features, clouds_of
from tests.support.pools import NAMES
from tests.support.training_projects import label, small_project


def test_each_turn_takes_what_is_farthest_from_all_before():
    rng = np.random.default_rng(0)
    features, labeled = rng.normal(size=(30, 5)), np.array([0, 1])
    candidates = np.arange(4, 30)
    order = farthest_first(features, labeled, candidates, 6)
    rows = directions(features)
    taken = list(labeled)
    for turn in range(6):
        left = [place for place in candidates if place not in taken]
        best = max(left, key=lambda place: min(1 - rows[place] @ rows[other] for other in taken))
        assert order[best] == turn
        taken.append(best)
    assert (order == REST).sum() == 24


def test_fewer_candidates_than_wanted_are_all_taken():
    order = farthest_first(np.eye(5), np.array([0]), np.array([2, 3]), 20)
    assert sorted(np.flatnonzero(order < REST).tolist()) == [2, 3]


def test_images_like_the_examples_come_first():
    truth = np.arange(60) % 3
    order = nearest_first(clouds_of(truth, noise=0.3), np.array([1, 4]))
    assert (truth[np.argsort(order)[:20]] == 1).all()


@pytest.fixture
def project(workspace, tmp_path):
    """Sixty images of three classes in clouds; of c nothing is labeled."""
    project = small_project(workspace, tmp_path, reference=False)
    truth = project.pool().reference_labels
    open_store(project).classes.add(list(NAMES), annotator="ann")
    add_features(project, clouds_of(truth, noise=0.3))
    label(project, {int(place): NAMES[c] for c in (0, 1) for place in np.flatnonzero(truth == c)[:4]})
    return project


def sampled(project, capsys, *words):
    code = cli.main(["sample", project.name, *words, "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if code == 0 else said.err


def test_the_most_unlike_images_hold_the_missing_class(project, capsys):
    code, value = sampled(project, capsys, "--method", "unlike", "--count", "6")
    assert code == 0 and value["uniform"] is False and value["images"] == 6
    pool, drawing = project.pool(), open_store(project).drawings.latest()
    drawn = pool.positions(drawing.ids)
    assert pool.reference_labels[drawn[0]] == 2
    labels, _ = open_store(project).snapshot().on_pool(pool.ids, pool.duplicate_of)
    assert (labels[drawn] < 0).all()
    label(project, {int(place): NAMES[pool.reference_labels[place]] for place in drawn})
    assert not open_store(project).snapshot().uniform_mask.any()  # they train and never measure


def test_images_like_those_of_a_class_are_drawn_by_its_name(project, capsys):
    code, _ = sampled(project, capsys, "--near", "b", "--count", "5")
    pool, drawing = project.pool(), open_store(project).drawings.latest()
    assert code == 0 and drawing.method == "near"
    assert (pool.reference_labels[pool.positions(drawing.ids)] == 1).all()


def test_further_images_come_with_a_suggestion_once_the_random_part_is_labeled(project, capsys):
    store, pool = open_store(project), project.pool()
    sampled(project, capsys, "--count", "20")
    random_ids = store.drawings.latest().ids
    sampled(project, capsys, "--method", "unlike", "--count", "6")
    further_drawn = store.drawings.latest().ids
    assert not len(next_cards("further", store, pool, "ann", 50).ids)  # the random part comes first, and blind
    assert not next_cards("drawn", store, pool, "ann", 50).suggestions
    places = pool.positions(random_ids)
    label(project, {int(place): NAMES[pool.reference_labels[place]] for place in places})
    (project.folder / follow.FOLDER).mkdir()
    assert follow.Follower(project).step()
    cards = next_cards("further", store, pool, "ann", 50)
    assert cards.round == "review" and set(cards.ids.tolist()) <= set(further_drawn.tolist()) and len(cards.ids)
    guessed = [cards.suggestions[image_id][0] for image_id in cards.ids.tolist()]
    assert guessed == pool.reference_labels[pool.positions(cards.ids)].tolist()
    measured = store.snapshot().uniform_mask.sum()
    first = int(cards.ids[0])
    store.append(
        [Event(event_id="r", annotator="ann", action="label", image_id=first, class_id=guessed[0], source="review")]
    )
    assert store.snapshot().uniform_mask.sum() == measured
    assert first not in next_cards("further", store, pool, "ann", 50).ids.tolist()


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--near", "c"], "The class 'c' has no label yet. Draw the images most unlike the labeled ones instead."),
        (["--near", "zebra"], "There is no class 'zebra'"),
        (["--method", "near"], "--near CLASS and --method near belong together."),
        (["--method", "unlike", "--near", "a"], "--near CLASS and --method near belong together."),
    ],
)
def test_what_cannot_be_drawn_is_said(project, capsys, words, sentence):
    code, said = sampled(project, capsys, *words)
    assert code == 1 and sentence in said


def test_without_features_it_says_how_to_get_them(workspace, tmp_path, capsys):
    project = small_project(workspace, tmp_path, title="Plain")
    code, said = sampled(project, capsys, "--method", "unlike")
    assert code == 1 and "Run: semiprune embed plain" in said
