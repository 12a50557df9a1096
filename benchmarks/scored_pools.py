"""Pools that are pseudo-labeled and scored without a project, and trainings on coresets of them: for experiments."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from image_data import Data

from semiprune_core import streams
from semiprune_core.learning.presets import supervised_preset
from semiprune_core.learning.settings import SSLSettings, SupervisedSettings
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.learning.supervised_run import MemoryRecorder, train_supervised
from semiprune_core.progress import Collected
from semiprune_core.records import Evidence
from semiprune_core.scores import ScoreSettings, compute_scores
from semiprune_core.selection import Basis, default_knobs

LABELED = 0x1AB  # keeps the labeled tenth apart from every draw of Random
WORK = Path("/tmp/semiprune-defaults")
"""Where scored pools are kept between calls."""


@dataclass(frozen=True, eq=False)
class ScoredPool:
    """A pool with its pseudo-labels and the scores of a run over ``epochs``; ``human_mask`` are the labeled images."""

    data: Data
    epochs: int
    pseudo: np.ndarray
    human_mask: np.ndarray
    scores: dict[str, np.ndarray]
    mean_prob: np.ndarray

    @property
    def wrong_mask(self) -> np.ndarray:
        return self.pseudo != self.data.labels

    def evidence(self) -> Evidence:
        return Evidence(len(self.pseudo), self.scores, self.mean_prob, labels=self.pseudo, human_mask=self.human_mask)


Candidate = tuple[str, str, dict[str, Any]]
"""Method, name of the knob, the knob."""


def share_suffix(share: float) -> str:
    """What a file's name says of the labeled share: nothing of the usual tenth."""
    return "" if share == 0.1 else f"_{100 * share:g}pc"


def scored(data: Data, settings: SupervisedSettings, ssl: SSLSettings, work: Path, share: float = 0.1) -> ScoredPool:
    """Label a random ``share``, pseudo-label and score the pool, or take what an earlier call left in ``work``."""
    t = settings.epochs
    known = [settings.to_json(), ssl.to_json(), streams.RULE]
    how = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:8]
    path = work / f"{data.name}_{len(data.labels)}_{t}{share_suffix(share)}_{how}.npz"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        np.savez(path, **_scored_anew(data, settings, ssl, share))
    with np.load(path) as file:
        arrays = dict(file)
    scores = {"dual": arrays[f"dual_{t}"], **{name: arrays[name] for name in ("aum", "el2n", "forgetting")}}
    return ScoredPool(data, t, arrays["pseudo"], arrays["human"], scores, arrays[f"mean_prob_{t}"])


def _scored_anew(data: Data, settings: SupervisedSettings, ssl: SSLSettings, share: float) -> dict[str, np.ndarray]:
    labeled = np.random.default_rng([1, LABELED]).permutation(len(data.labels))[: round(share * len(data.labels))]
    given = np.full(len(data.labels), -1)
    given[labeled] = data.labels[labeled]
    result = train_ssl(data.images, given, class_names=data.class_names, settings=ssl, seed=0, progress=Collected())
    pseudo = np.where(given >= 0, given, result.predicted)
    recorder = MemoryRecorder()
    train_supervised(
        data.images,
        pseudo,
        n_classes=data.n_classes,
        settings=settings,
        seed=0,
        progress=Collected(),
        record=recorder,
    )
    t = settings.epochs
    table = compute_scores(recorder.trajectory(), settings=ScoreSettings(window=min(10, t), dual_epochs=t))
    arrays = {"pseudo": pseudo, "human": given >= 0}
    arrays |= {f"dual_{t}": table["dual"], f"mean_prob_{t}": table.evidence().mean_prob}
    return arrays | {name: table[name] for name in ("aum", "el2n", "forgetting")}


def starting(pool: ScoredPool, ratio: float) -> list[Candidate]:
    """The coresets at a ratio that a project with these scores starts with, Random before them."""
    basis = Basis.learned(pool.scores["aum"], pool.epochs)
    cutoff = default_knobs("semi_aum_cutoff", ratio, basis).selector["cutoff"]
    c_d = default_knobs("semi_dual_beta", ratio, basis).selector["c_d"]
    return [
        ("random", "", {}),
        ("semi_aum_cutoff", f"{cutoff:g}", {"cutoff": cutoff}),
        ("semi_dual_beta", f"T={pool.epochs} c_D={c_d:g}", {"c_d": c_d}),
    ]


def coreset_training(
    preset: str, ratio: float, n_kept: int, *, views: int | None, epochs: int | None = None
) -> SupervisedSettings:
    """How a coreset of ``n_kept`` images is trained on, seeing at most so many ``views``, all epochs together."""
    training = supervised_preset(preset, **({} if epochs is None else {"epochs": epochs})).for_coreset(ratio)
    if views is None:
        return training
    return training.replace(epochs=min(training.epochs, max(1, round(views / n_kept))))


def tested(data: Data, kept: np.ndarray, labels: np.ndarray, settings: SupervisedSettings, seed: int) -> float:
    """Test accuracy of a net that was trained from scratch on the ``kept`` images with these ``labels`` (N,)."""
    result = train_supervised(
        data.images[kept],
        labels[kept],
        n_classes=data.n_classes,
        settings=settings,
        seed=seed,
        progress=Collected(),
        eval_images=data.test_images,
        eval_labels=data.test_labels,
    )
    assert result.accuracy is not None
    return result.accuracy.value
