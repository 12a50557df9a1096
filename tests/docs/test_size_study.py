"""The study of pool sizes, on a handful of images."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("sizes", ROOT / "benchmarks" / "sizes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def scored_pool(study):
    """Sixty grey pictures of two classes, bright and dark, five of them wrongly labeled."""
    from image_data import Data

    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    images = (120 * labels[:, None, None] + rng.integers(0, 100, (60, 8, 8))).astype(np.uint8)
    data = Data("tiny", images, labels, images[:20], labels[:20], ("dark", "bright"))
    pseudo = np.where(np.arange(60) >= 55, 1 - labels, labels)
    scores = {name: rng.random(60) for name in ("aum", "dual", "el2n", "forgetting")}
    return study.ScoredPool(data, 30, pseudo, np.arange(60) < 6, scores, rng.random(60))


def test_every_method_is_trained_once_at_every_ratio_and_seed(study, scored_pool, tmp_path):
    out = tmp_path / "sizes_tiny.csv"
    study.trials(scored_pool, [0.5], 0, views=60, out=out, short=True)
    first = out.read_text()
    study.trials(scored_pool, [0.5], 0, views=60, out=out, short=True)
    assert out.read_text() == first  # nothing was trained again
    study.trials(scored_pool, [0.5], 1, views=60, out=out, short=True)
    rows = study.read(out)
    study.trials(scored_pool, [0.5], 1, views=30, out=out, short=True)
    assert study.read(out)["views"].tolist() == 6 * [60] + 3 * [30]  # shorter trainings are others
    assert rows.groupby("seed")["method"].apply(list).tolist() == 2 * [["random", "semi_aum_cutoff", "semi_dual_beta"]]
    assert set(rows["n_train"]) == {30} and set(rows["epochs"]) == {2}  # 60 views are two looks at 30 images
    assert set(rows["wrong"]) == {round(5 / 60, 4)} and set(rows["n_labeled"]) == {6}
    assert (rows["n_correct"] == (20 * rows["test_accuracy"]).round()).all()


def test_gains_are_paired_by_seed_and_kept_apart_by_size(study, scored_pool, tmp_path):
    out = tmp_path / "sizes_tiny.csv"
    for seed in (0, 1):
        study.trials(scored_pool, [0.5], seed, views=60, out=out, short=True)
    rows = study.read(out)
    accuracy = {"random": 0.7, "semi_aum_cutoff": 0.75, "semi_dual_beta": 0.6}
    rows["test_accuracy"] = rows["method"].map(accuracy) + 0.1 * rows["seed"]
    larger = rows.assign(n=600, test_accuracy=rows["method"].map({**accuracy, "semi_dual_beta": 0.9}))
    found = study.gains(study.pd.concat([rows, larger]))
    assert (
        found["60"]["semi_aum_cutoff"]["0.5"][0] == pytest.approx(5) and found["60"]["semi_aum_cutoff"]["0.5"][2] == 2
    )
    assert found["60"]["semi_dual_beta"]["0.5"][0] == pytest.approx(-10)
    assert found["600"]["semi_dual_beta"]["0.5"][0] == pytest.approx(20)


def test_a_training_sees_no_more_images_than_it_may(study):
    from scored_pools import coreset_training

    free = coreset_training("brief", 0.9, 300, views=None)
    assert free.epochs == 75 and free.batch_size == 16
    assert coreset_training("brief", 0.9, 300, views=300_000) == free
    assert coreset_training("brief", 0.9, 6000, views=300_000).epochs == 50
    assert coreset_training("brief", 0.9, 6000, views=10).epochs == 1
