"""What is a test image, who may see it, and what is said about the number."""

import numpy as np
import pytest

from semiprune_core import jobs
from semiprune_core.errors import MissingStepError
from semiprune_core.evaluation import EvaluationRun, EvaluationSettings, data, submit_evaluation
from semiprune_core.evaluation.data import FINAL, HELD_OUT, caveat
from semiprune_core.evaluation.files import table_caption
from semiprune_core.evaluation.runs import finished
from semiprune_core.evaluation.studies import BudgetSettings, submit_study
from semiprune_core.labeling import open_store
from semiprune_core.labeling.class_names import NamedClasses
from semiprune_core.search import submit_search
from semiprune_core.training import keep_snapshot
from semiprune_core.training.data import labels_on_pool
from semiprune_core.trials import run as trial_run
from tests.support.pseudo_runs import fake_pseudo, label_share
from tests.support.scored_projects import make_pool, make_scored
from tests.support.training_projects import label


@pytest.fixture
def quick(monkeypatch):
    """Trials that remember what they were given instead of training."""
    seen = []

    def train(images, labels, tests, truth, *, n_classes, settings, seed, progress, device):
        seen.append((images, tests, truth))
        return trial_run.TrialResult(1, len(truth), len(images), 0.1)

    monkeypatch.setattr(trial_run, "train_trial", train)
    return seen


def evaluate(project, **changes):
    asked = {"methods": ("full", "semi_aum_cutoff", "random"), "ratios": (0.5,), "seeds": (0,), "epochs": 2, **changes}
    job = submit_evaluation(project, EvaluationSettings(**asked), device="cpu", immediate=True)
    assert job.status().state == jobs.DONE, job.log_tail()
    return EvaluationRun(project.artifact(job.result()["artifact"]))


def final_ids(project):
    return open_store(project).final_test().ids


def pixels(images):
    return {image.tobytes() for image in images}


def test_an_evaluation_tests_on_the_final_test_and_on_nothing_that_was_learned_from(workspace, tmp_path, quick):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    label_share(project, 0.5, final_test=0.2)
    kept, pool = final_ids(project), project.pool()
    run = evaluate(project)
    facts = run.artifact.facts
    assert len(kept) == 6 and facts["test"] == FINAL and facts["n_test"] == 6 and facts["n_chosen_from"] == 54
    assert sorted(run.tested_ids().tolist()) == kept.tolist() and "final_test" in run.artifact.inputs
    images, tests, _ = max(quick, key=lambda given: len(given[0]))
    trained, tested = pixels(images), pixels(tests)
    assert len(trained) == 54 and not trained & tested and tested == pixels(pool.images()[pool.positions(kept)])
    assert "given to no training" in facts["test_words"] and "Transductive" not in finished(project)[0].caveat
    assert finished(project)[0].caveat.startswith("6 test images: each weighs 16.7 points")
    labels = labels_on_pool(open_store(project).snapshot(), pool)
    assert (labels.human[pool.positions(kept)] < 0).all() and (labels.human >= 0).sum() == 24


def test_a_search_never_looks_at_the_final_test(workspace, tmp_path, quick):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    label_share(project, 0.5, final_test=0.2)
    submit_search(project, ratios=(0.5,), device="cpu", immediate=True)
    kept = pixels(project.pool().images()[project.pool().positions(final_ids(project))])
    assert len(kept) == 6 and quick
    assert not any(kept & (pixels(images) | pixels(tests)) for images, tests, _ in quick)


def test_labels_that_were_learned_from_before_they_were_kept_are_counted(workspace, tmp_path, quick):
    project = make_pool(workspace, tmp_path, 60, 3)
    open_store(project).classes.add(project.pool().class_names, annotator="ann")
    label(project, dict.fromkeys(range(30), "0"))  # before anything was drawn
    keep_snapshot(project, open_store(project).snapshot())
    fake_pseudo(project)
    label_share(project, 0.5, final_test=0.5)
    run = evaluate(project, methods=("random",))
    pool = project.pool()
    n = int((pool.positions(final_ids(project)) < 30).sum())
    assert run.artifact.facts["n_final_seen"] == n > 0 and f"{n} of the labels" in run.artifact.facts["seen_words"]
    keep_snapshot(project, open_store(project).snapshot())
    fake_pseudo(project, seed=1)
    assert evaluate(project, methods=("random",)).artifact.facts["n_final_seen"] == 0


def test_without_a_final_test_the_number_is_called_transductive(workspace, tmp_path, quick):
    project = make_scored(workspace, tmp_path, n=60, n_classes=3)
    run = evaluate(project)
    (evaluation,) = finished(project)
    assert run.artifact.facts["test"] == HELD_OUT and evaluation.caveat.startswith("Transductive")
    assert evaluation.caveat in run.artifact.facts["test_words"]
    assert evaluation.caveat in table_caption(evaluation.view())
    assert "pseudo-labels" in caveat(HELD_OUT, "pseudo", ("random",)) and not caveat(
        HELD_OUT, "human", ("full", "random")
    )
    assert not caveat("split", "pseudo", ("elfs",)) and not caveat(FINAL, "pseudo", ("elfs",))


def test_only_uniformly_drawn_labels_may_test(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, 60, 3, labeled=False)
    label(project, {position: "ab"[position % 2] for position in range(20)})
    store, pool = open_store(project), project.pool()
    with pytest.raises(MissingStepError, match="no uniformly drawn image"):
        held_out_of_pseudo(store, pool)
    drawing = store.drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, count=40, annotator="ann"
    )
    label(project, {int(place): "a" for place in pool.positions(drawing.ids)})
    held = held_out_of_pseudo(store, pool)
    assert held.sum() == 8 and np.isin(pool.ids[held], drawing.ids).all()


def held_out_of_pseudo(store, pool):
    labels = np.zeros(len(pool), int)
    test, held, _ = data._held(
        "pseudo", labels, NamedClasses(("a", "b"), ()), pool, store.snapshot(), store.final_test(), np.arange(60)
    )
    assert test == HELD_OUT
    return held


def test_a_study_leaves_the_final_test_out_of_everything(workspace, tmp_path):
    project = make_pool(workspace, tmp_path, 60, 3)
    label_share(project, 0.5, final_test=0.2)
    job = submit_study(project, BudgetSettings(budgets=(0.5,), ratios=(0.5,)), device="cpu")
    assert job.pins["final_test"] == open_store(project).final_test().hash
    job.stop()
