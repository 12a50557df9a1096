"""Tables of trials and evaluation artifacts without any training."""

from __future__ import annotations

import numpy as np
import pandas as pd

from semiprune_core.evaluation import EvaluationRun
from semiprune_core.evaluation.view import COLUMNS
from semiprune_core.project.artifacts import open_artifact

TITLES = {
    "random": "Random",
    "semi_aum_cutoff": "Semi-AUM+Cutoff",
    "semi_dual_beta": "Semi-DUAL+Beta",
    "full": "Full data",
}


def trial(method, ratio, seed, accuracy, *, minutes=1.0, n_train=100, note=""):
    right = None if accuracy is None else round(1000 * accuracy)
    return (method, ratio, seed, n_train, 1000, right, accuracy, minutes, "{}", note)


def table(*rows):
    return pd.DataFrame([trial(*row) if len(row) < 10 else row for row in rows], columns=list(COLUMNS))


def fake_trials(methods=tuple(TITLES), ratios=(0.3, 0.5, 0.7, 0.8, 0.9), n_seeds=3, n_pool=1000, seed=0):
    """Accuracies that fall with the ratio, later methods a little better, with noise that seeds share."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 0.01, n_seeds)
    rows = []
    for number, method in enumerate(methods):
        for ratio in (0.0,) if method == "full" else ratios:
            for one in range(n_seeds):
                level = 0.9 - 0.35 * ratio**3 + (0.012 * number * ratio if method != "full" else 0)
                value = float(np.clip(level + common[one] + rng.normal(0, 0.004), 0, 1))
                size = round(n_pool * (1 - ratio))
                rows.append(trial(method, ratio, one, round(value, 4), minutes=0.2 + size / 800, n_train=size))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def fake_evaluation(project, trials=None, *, titles=None, truth="reference", test="split", inputs=None, **settings):
    """A finished evaluation that never ran; ``inputs`` beside the pool."""
    trials = fake_trials() if trials is None else trials
    methods = tuple(dict.fromkeys(trials["method"]))
    asked = {
        "methods": list(methods),
        "ratios": sorted({float(ratio) for ratio in trials["pruning_ratio"]} - {0.0}),
        "seeds": sorted({int(seed) for seed in trials["seed"]}),
        "preset": "quick",
        **settings,
    }
    pool = project.pool()
    with project.draft("evaluation", settings=asked, inputs={"pool": pool.hash, **(inputs or {})}) as draft:
        trials.to_parquet(draft.path("trials.parquet"))
        draft.facts.update(
            class_names=list(pool.class_names),
            truth=truth,
            test=test,
            n_pool=len(pool),
            n_test=1000,
            full_epochs=90,
            methods={name: (titles or TITLES).get(name, name) for name in methods},
            evidence_minutes={},
            stopped=False,
        )
    return EvaluationRun(open_artifact(draft.folder))
