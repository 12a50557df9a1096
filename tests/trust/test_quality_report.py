"""The numbers about pseudo-labels: equal to scikit-learn's and to slow twins, and honest in repeated draws."""

import math

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, balanced_accuracy_score, normalized_mutual_info_score

from semiprune_core.errors import InvalidDataError
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.learning.quality import wilson
from semiprune_core.results import PseudoRun
from semiprune_core.trust import quality_report as q
from semiprune_core.trust.confusion import confusion_of
from tests.support.pseudo_runs import fake_pseudo, label_share


@pytest.fixture
def project(tmp_path, import_into):
    """300 small pictures of three classes, a third of them labeled."""
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    pixels = rng.integers(0, 60, (300, 28, 28), dtype=np.uint8) + (labels * 70).astype(np.uint8)[:, None, None]
    np.savez(tmp_path / "pool.npz", images=pixels, labels=np.array(["ant", "bee", "cow"])[labels])
    made, _ = import_into(SourceSpec("npz", str(tmp_path / "pool.npz")))
    label_share(made, 0.4)
    return made.workspace.project(made.name)  # opened anew: the import chose the cache's form


def pairs(n_true, n_predicted, n, seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_true, n)
    return truth, np.where(rng.random(n) < 0.6, truth % n_predicted, rng.integers(0, n_predicted, n))


@pytest.mark.parametrize("seed, n_true, n_predicted, n", [(0, 10, 10, 500), (1, 3, 7, 60), (2, 7, 2, 40), (3, 2, 2, 5)])
def test_the_measures_equal_scikit_learns(seed, n_true, n_predicted, n):
    truth, predicted = pairs(n_true, n_predicted, n, seed)
    table = q.confusion_matrix(truth, predicted, max(n_true, n_predicted))
    assert q.nmi(table) == pytest.approx(normalized_mutual_info_score(truth, predicted), abs=1e-12)
    assert q.ari(table) == pytest.approx(adjusted_rand_score(truth, predicted), abs=1e-12)
    known = np.isin(predicted, truth)  # scikit-learn warns about classes that never occur
    table = q.confusion_matrix(truth[known], predicted[known], max(n_true, n_predicted))
    assert q.balanced_accuracy(table) == pytest.approx(balanced_accuracy_score(truth[known], predicted[known]))


@pytest.mark.parametrize("truth, predicted", [([0, 0, 0], [0, 0, 0]), ([0, 1, 2], [0, 1, 2]), ([0, 1], [1, 0])])
def test_equal_partitions_score_one(truth, predicted):
    table = q.confusion_matrix(np.array(truth), np.array(predicted), 3)
    assert q.nmi(table) == pytest.approx(normalized_mutual_info_score(truth, predicted)) == pytest.approx(1)
    assert q.ari(table) == pytest.approx(adjusted_rand_score(truth, predicted)) == pytest.approx(1)


def slow_wilson(right, n, z=1.959963984540054):
    """The two shares p at which the observed one lies exactly z standard errors away, found by bisection."""
    seen = right / n

    def away(p):
        return (seen - p) ** 2 - z * z * p * (1 - p) / n

    def root(outside, inside):
        for _ in range(200):
            middle = (outside + inside) / 2
            outside, inside = (middle, inside) if away(middle) > 0 else (outside, middle)
        return inside

    return (0.0 if right == 0 else root(0.0, seen), 1.0 if right == n else root(1.0, seen))


@pytest.mark.parametrize("right, n", [(0, 1), (1, 1), (0, 50), (50, 50), (1, 60), (33, 60), (850, 1000)])
def test_the_wilson_interval_equals_its_slow_twin(right, n):
    share = wilson(right, n)
    assert (share.low, share.high) == pytest.approx(slow_wilson(right, n), abs=1e-9)


def test_the_interval_covers_the_true_accuracy_as_often_as_it_says():
    """200 drawings of held-out labels from a pool whose accuracy is known."""
    rng = np.random.default_rng(7)
    right = rng.random(6000) < 0.86
    covered = 0
    for _ in range(200):
        drawn = right[rng.choice(6000, 180, replace=False)]
        share = wilson(int(drawn.sum()), len(drawn))
        covered += share.low <= right.mean() <= share.high
    assert 0.92 <= covered / 200 <= 0.98


@pytest.mark.parametrize("right, n", [(85, 100), (5, 5), (0, 9), (1, 400), (50, 100)])
def test_as_many_more_labels_halve_the_interval_and_one_less_does_not(right, n):
    share = wilson(right, n)
    width, more = share.high - share.low, q.labels_to_halve(share)
    assert q.interval_width(share.value, n + more) <= width / 2 < q.interval_width(share.value, n + more - 1)
    assert q.interval_width(share.value, n) == pytest.approx(2 * (share.high - (share.high + share.low) / 2))


def test_a_report_measures_what_people_and_the_reference_say(project):
    run, store, pool = fake_pseudo(project), open_store(project), project.pool()
    found = q.report(pool, run, store=store)
    held = np.asarray(run.held_out_mask())
    right = np.asarray(run.predicted()) == pool.reference_labels
    assert found.held_out.accuracy == wilson(int(right[held].sum()), int(held.sum()))
    unseen = ~run.labels().human_mask
    assert found.reference.accuracy == pytest.approx(right[unseen].mean())
    assert found.reference.n == unseen.sum() == found.reference.confusion.sum()
    assert sum(row.n_pseudo for row in found.classes) == len(pool)
    assert found.to_json()["held_out"]["per_class"]["ant"]["n"] == found.held_out.per_class[0].n


def test_reviewed_labels_never_enter_the_held_out_accuracy(project):
    from semiprune_core.trust import review

    run, store, pool = fake_pseudo(project), open_store(project), project.pool()
    before = q.report(pool, run, store=store).held_out
    held = np.flatnonzero(run.held_out_mask())[:20]
    review.label_images(store, pool.ids[held].tolist(), "cow", annotator="bob")
    assert q.report(pool, run, store=store).held_out == before


def test_a_run_that_saw_its_held_out_labels_is_believed_only_by_its_own_record(project):
    run = fake_pseudo(project)
    manifest = {**run.artifact.manifest, "settings": {**run.artifact.settings, "refit": True}}
    refitted = PseudoRun(type(run.artifact)(run.artifact.folder, manifest))
    found = q.report(project.pool(), refitted, store=open_store(project)).held_out
    assert found.accuracy.right == run.quality()["accuracy"]["right"]
    assert found.measured_on == run.quality()["measured_on"]
    assert q.report(project.pool(), run, store=open_store(project)).held_out.measured_on != found.measured_on


def test_images_that_came_after_the_run_are_left_aside(project, import_into, class_folder):
    run = fake_pseudo(project)
    import_into(SourceSpec("folder", str(class_folder)), project)
    pool = project.pool()
    found = q.report(pool, run, store=open_store(project))
    assert len(pool) > found.n_images == 300


def test_subsets_are_measured_alone(project, import_into, class_folder):
    import_into(SourceSpec("folder", str(class_folder)), project)
    store = open_store(project)
    store.classes.add(["cat", "dog"], annotator="ada")
    run = fake_pseudo(project)
    subsets = q.tagged_subsets(project.pool())
    assert list(subsets) == ["Import: pool-0001", "Import: pool-0002"]
    assert q.report(project.pool(), run, store=store, subset="Import: pool-0002").n_images == 20
    with pytest.raises(InvalidDataError, match="Known: Import: pool-0001"):
        q.report(project.pool(), run, store=store, subset="nothing")


def test_classes_without_or_with_too_many_images_are_called_out():
    labels = np.array([0] * 900 + [1] * 100)
    rows = q.class_rows(labels, np.full(1000, -1), np.arange(90) % 3, None, ("a", "b", "c"))
    assert [row.verdict for row in rows] == ["too many", "too few", "none"]
    rows = q.class_rows(np.arange(1000) % 3, np.full(1000, -1), np.arange(90) % 3, None, ("a", "b", "c"))
    assert [row.verdict for row in rows] == ["", "", ""]


def test_two_runs_are_compared_image_by_image(project):
    first, second = fake_pseudo(project), fake_pseudo(project, seed=1)
    found = q.compare(project.pool(), first, second, uniform=open_store(project).uniform_labels())
    differ = np.flatnonzero(np.asarray(first.predicted()) != np.asarray(second.predicted()))
    assert sorted(found.differ.tolist()) == differ.tolist()
    assert found.agreement == pytest.approx(1 - len(differ) / 300) == pytest.approx(q.agreement(first, second))
    same = q.compare(project.pool(), first, first, uniform=open_store(project).uniform_labels())
    assert (same.agreement, same.only_first, same.only_second) == (1, 0, 0)
    assert same.n_common == int(np.asarray(first.held_out_mask()).sum())


def test_a_cell_of_the_confusion_matrix_names_its_images(project):
    run, pool = fake_pseudo(project, wrong=0.5), project.pool()
    table, confusion = q.report(pool, run, store=open_store(project)).reference, confusion_of(pool, run)
    assert f"{table.n} images" in confusion.measured_on and confusion.names == table.names
    for a in range(len(table.names)):
        for b in range(len(table.names)):
            found = confusion.cell(a, b)
            assert len(found) == table.confusion[a, b]
            assert (pool.reference_labels[found] == a).all() and (np.asarray(run.predicted())[found] == b).all()


def without_reference(project, monkeypatch):
    monkeypatch.setattr(type(project.pool()), "reference_labels", property(lambda pool: np.full(len(pool), -1)))
    return project.pool()


def test_without_reference_labels_the_confusion_stands_on_held_out_labels(project, monkeypatch):
    run = fake_pseudo(project, wrong=0.5, held_out=0.8)
    pool = without_reference(project, monkeypatch)
    report = q.report(pool, run, store=open_store(project))
    confusion = confusion_of(pool, run, open_store(project).uniform_labels())
    held = np.flatnonzero(run.held_out_mask())
    assert report.reference is None and confusion.counts.sum() == len(held) == report.held_out.accuracy.n
    assert f"{len(held)} held-out labels" in confusion.measured_on and "cross-fitted" not in confusion.measured_on
    assert np.trace(confusion.counts) == report.held_out.accuracy.right
    labels, predicted = np.asarray(run.labels().labels), np.asarray(run.predicted())
    for a in range(3):
        for b in range(3):
            cell = confusion.cell(a, b)
            assert sorted(cell) == [one for one in held if (labels[one], predicted[one]) == (a, b)]
            assert (np.diff(run.confidence()[cell]) >= 0).all()


def test_a_cross_fitted_confusion_uses_the_answers_of_models_that_missed_the_label(project, monkeypatch):
    run = fake_pseudo(project, wrong=0.5, held_out=0.8)
    pool = without_reference(project, monkeypatch)
    monkeypatch.setitem(run.artifact.settings, "cross_fit", 5)
    assert confusion_of(pool, run) is None  # an older run kept none of them
    blind = {"positions": np.arange(40), "predicted": np.zeros(40, np.int32), "confidence": np.linspace(1, 0, 40)}
    for name, values in blind.items():
        np.save(run.artifact.folder / f"held_out_{name}.npy", values)
    confusion = confusion_of(pool, run)
    assert "40 held-out labels" in confusion.measured_on and "cross-fitted" in confusion.measured_on
    assert confusion.counts[:, 1:].sum() == 0 and confusion.positions.tolist() == list(range(40))[::-1]


def test_unequal_lengths_are_refused():
    with pytest.raises(InvalidDataError, match="2 predictions for 3 images"):
        q.confusion_matrix(np.zeros(3, int), np.zeros(2, int), 1)


def test_the_gap_says_in_which_direction_confidence_is_off(project):
    held = q.report(project.pool(), fake_pseudo(project, wrong=0.6), store=open_store(project)).held_out
    assert held.gap > 0 and math.isfinite(held.ece)
