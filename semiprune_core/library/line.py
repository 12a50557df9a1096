"""The line on arrays, without a workspace: learn, train the dynamics, score, select; each step as the app does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from semiprune_core import streams
from semiprune_core.checks import check_choice, check_range
from semiprune_core.coresets import CoresetRequest, choose_coreset
from semiprune_core.dynamics.scoring import default_score_settings
from semiprune_core.dynamics.submit import FEWEST_EPOCHS
from semiprune_core.embeddings.encoders import DEFAULT
from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.labeling.snapshot import shared_with_copies
from semiprune_core.learning.frozen import FrozenSettings, fit_pool, near_duplicates, prepare_pool
from semiprune_core.learning.frozen.prepare import Scaling
from semiprune_core.learning.head_run import HeadSettings, train_head
from semiprune_core.learning.labels import check_learnable
from semiprune_core.learning.presets import supervised_preset
from semiprune_core.learning.quality import wilson
from semiprune_core.library.arrays import Images, as_drawn, as_images, as_labels
from semiprune_core.library.features import Features, as_features, embed
from semiprune_core.library.memory import MemoryRecorder
from semiprune_core.library.outcomes import Coreset, Evaluation, PseudoLabels, Scores, TrainingDynamics
from semiprune_core.methods import select_coreset
from semiprune_core.progress import Progress, Silent
from semiprune_core.records import Evidence, FloatArray, IntArray, Trajectory
from semiprune_core.results.pseudo import FROZEN, SCRATCH
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.scores import compute_scores
from semiprune_core.streams import Purpose
from semiprune_core.training.data import PoolLabels, to_learn_from
from semiprune_core.training.settings import asked_settings
from semiprune_core.trials.kinds import DIRECTIONS, PENALTY
from semiprune_core.trials.probe import fit_probe, probe_rows

STARTS = (FROZEN, SCRATCH)


def learn(
    images_or_features: Any,
    labels: Any,
    *,
    class_names: Sequence[str] | None = None,
    drawn_at_random: Any = True,
    start: str = FROZEN,
    encoder: str = DEFAULT,
    algorithm: str | None = None,
    preset: str | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
    **settings: Any,
) -> PseudoLabels:
    """Learn from some labels to label every image, and say how right that is.

    ``labels`` (N,): class numbers with -1 for none, or texts with "" or None for none. ``drawn_at_random`` says which
    of them were: all, none, or a mask (N,); only these measure the accuracy. ``start`` is "frozen" (a head on features,
    in seconds) or "scratch" (a net on the labeled and the unlabeled images, as ``algorithm`` and ``preset`` say).
    ``settings`` are those of ``semiprune train --set``.
    """
    check_choice("start", start, STARTS)
    features = as_features(images_or_features)
    images = features.images if features is not None else as_images(images_or_features)
    n = len(features) if features is not None else len(images or ())
    numbers, names = as_labels(labels, n, class_names)
    duplicate_of = images.duplicate_of if images is not None else np.arange(n, dtype=np.int64)
    pool = to_learn_from(*shared_with_copies(numbers, as_drawn(drawn_at_random, numbers), duplicate_of), duplicate_of)
    check_learnable(pool.learned, names)
    asked = asked_settings(
        start=start, algorithm=algorithm, preset=preset, encoder=encoder, seed=seed, changes=settings
    )
    if start == FROZEN:
        if features is None:
            features = embed(images, encoder=encoder, device=device, progress=progress)
        return _by_head(features, pool, names, asked.head, seed, progress or Silent())
    if images is None:
        raise InvalidDataError('A net from scratch is trained on images, and these are features. Give start="frozen".')
    from semiprune_core.learning.device import choose_device
    from semiprune_core.training.net import answers_of_net

    answers = answers_of_net(
        images.copies,
        pool,
        class_names=names,
        settings=asked.training,
        seed=seed,
        progress=progress or Silent(),
        device=choose_device(device),
    )
    return _pseudo_labels(answers, pool, names, start, None, images)


def _by_head(
    features: Features, labels: PoolLabels, names: tuple[str, ...], settings: FrozenSettings, seed: int, told: Progress
) -> PseudoLabels:
    from semiprune_core.training.frozen import answers_of

    groups = near_duplicates(features.values, progress=told)
    parts = features.parts()
    fitted = fit_pool(
        prepare_pool([own for own, _ in parts], settings, views=[views for _, views in parts], progress=told),
        labels.learned,
        n_classes=len(names),
        measurable_mask=labels.measurable_mask,
        groups=groups,
        settings=settings,
        seed=seed,
        progress=told,
    )
    answers = answers_of(fitted, features.values, "", groups)
    return _pseudo_labels(answers, labels, names, FROZEN, features, features.images)


def _pseudo_labels(
    answers: Any,
    labels: PoolLabels,
    names: tuple[str, ...],
    start: str,
    features: Features | None,
    images: Images | None,
) -> PseudoLabels:
    human = labels.human >= 0
    return PseudoLabels(
        np.where(human, labels.human, answers.predicted),
        np.where(human, 1.0, answers.confidence).astype(np.float32),
        human,
        names,
        predicted=answers.predicted,
        quality=answers.quality,
        start=start,
        notes=answers.notes,
        features=features,
        images=images,
    )


def train_dynamics(
    data: Any,
    labels: Any = None,
    *,
    class_names: Sequence[str] | None = None,
    epochs: int | None = None,
    preset: str = "quick",
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
    **training: Any,
) -> TrainingDynamics:
    """Train on a label for every image and record how each is learned, epoch by epoch.

    ``data``: what :func:`learn` gave, and the run begins where that one did; or features, or images (a net from
    scratch, as ``preset`` says), with ``labels`` (N,) for all of them. ``training`` is what differs from the preset, or
    from the settings of a head on features.
    """
    known = data if isinstance(data, PseudoLabels) else _all_labeled(data, labels, class_names)
    changes = {**training, **({} if epochs is None else {"epochs": epochs})}
    if known.start == FROZEN:
        assert known.features is not None
        recorded, history = _head_dynamics(known.features, known, HeadSettings.from_json(changes), seed, progress)
        return TrainingDynamics(recorded, known, FROZEN, tuple(history))
    from semiprune_core.learning.device import choose_device
    from semiprune_core.learning.supervised_run import train_supervised

    assert known.images is not None
    settings, recorder = supervised_preset(preset).replace(**changes), MemoryRecorder()
    check_range("epochs", settings.epochs, low=FEWEST_EPOCHS)
    result = train_supervised(
        known.images.copies,
        known.labels,
        n_classes=len(known.class_names),
        settings=settings,
        seed=streams.derived(seed, Purpose.SCORING_RUN),
        progress=progress or Silent(),
        device=choose_device(device),
        record=recorder,
    )
    return TrainingDynamics(recorder.trajectory(), known, SCRATCH, tuple(result.history))


def _all_labeled(data: Any, labels: Any, class_names: Sequence[str] | None) -> PseudoLabels:
    """Labels of one's own for all images, as those of people."""
    if labels is None:
        raise InvalidDataError("Training dynamics need a label for every image: give what learn() gave, or labels.")
    features = as_features(data)
    images = features.images if features is not None else as_images(data)
    n = len(features) if features is not None else len(images or ())
    numbers, names = as_labels(labels, n, class_names)
    if missing := int((numbers < 0).sum()):
        raise InvalidDataError(f"{missing:,} of {n:,} images have no label. Learn them first: learn(images, labels).")
    everyone = np.ones(n, dtype=bool)
    start = SCRATCH if features is None else FROZEN
    return PseudoLabels(
        numbers, everyone.astype(np.float32), everyone, names, numbers, None, start, (), features, images
    )


def _head_dynamics(
    features: Features, labels: PseudoLabels, settings: HeadSettings, seed: int, progress: Progress | None
) -> tuple[Trajectory, list[dict[str, Any]]]:
    check_range("epochs", settings.epochs, low=FEWEST_EPOCHS)
    recorder = MemoryRecorder()
    result = train_head(
        Scaling.of(features.values)(features.values),
        labels.labels,
        n_classes=len(labels.class_names),
        settings=settings,
        seed=seed,
        progress=progress or Silent(),
        record=recorder,
    )
    return recorder.trajectory(), result.history


def score(dynamics: TrainingDynamics | Trajectory, *, progress: Progress | None = None, **settings: Any) -> Scores:
    """Score every image from how it was learned: AUM, DUAL, EL2N, forgetting and more, each (N,).

    ``settings`` are those of the scores, such as ``dual_epochs`` or ``window``; by default as in the app, where a run
    shorter than the usual window of 10 epochs gets a shorter one.
    """
    if isinstance(dynamics, Trajectory):
        dynamics = TrainingDynamics(dynamics)
    wanted = default_score_settings(dynamics.n_epochs, dynamics.start).replace(**settings)
    table = compute_scores(dynamics.trajectory, settings=wanted, progress=progress)
    return Scores(table, dynamics.n_epochs, dynamics.start, dynamics.labels, dynamics.trajectory)


def select(
    scores: Scores | Mapping[str, Any],
    ratio: float = 0.7,
    *,
    method: str = CoresetRequest.method,
    seed: int = 0,
    aim: str = CoresetRequest.aim,
    class_balanced: bool = False,
    keep_human: bool = False,
    same_annotation_budget: bool = False,
    min_per_class: int = 0,
    class_share: float | None = None,
    drop_duplicates: bool = False,
    **knobs: Any,
) -> Coreset:
    """Select a coreset: remove the share ``ratio`` of the images, keep the others.

    ``method`` and ``knobs`` (``cutoff``, ``c_d``, ``n_epochs``, ``gamma``, ...) as ``semiprune select`` has them; one
    that is not given is what the app would take for such scores. Scores of your own are a dictionary of arrays (N,).
    """
    request = CoresetRequest(
        method=method,
        pruning_ratio=ratio,
        seed=seed,
        aim=aim,
        class_balanced=class_balanced,
        keep_human=keep_human,
        same_annotation_budget=same_annotation_budget,
        min_per_class=min_per_class,
        class_share=class_share,
        drop_duplicates=drop_duplicates,
        given=knobs,
    )
    if has_own_evidence(method):
        raise InvalidSettingError(
            f"'{method}' looks at more than scores. Open a project for it: open(NAME).select(method='{method}')"
        )
    known = scores if isinstance(scores, Scores) else Scores.of(scores)
    if request.score_changes:
        known = _rescored(known, request.score_changes)
    chosen = choose_coreset(known.evidence, request, known.basis)
    return Coreset(**vars(chosen), scores=known)


def _rescored(scores: Scores, changes: Mapping[str, Any]) -> Scores:
    if scores.trajectory is None:
        raise InvalidSettingError(
            f"{', '.join(changes)} change the scores themselves, and these came without the training behind them. "
            "Compute them with score(...)."
        )
    return score(
        TrainingDynamics(scores.trajectory, scores.labels, scores.start), **{**scores.table.settings, **changes}
    )


def prune(
    images: Any,
    labels: Any,
    ratio: float = 0.7,
    *,
    method: str = CoresetRequest.method,
    class_names: Sequence[str] | None = None,
    drawn_at_random: Any = True,
    start: str = FROZEN,
    encoder: str = DEFAULT,
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
    **knobs: Any,
) -> Coreset:
    """Prune a pool in one call: learn from the labels there are, score every image, keep the share 1 - ``ratio``.

    ``images`` and ``labels`` as :func:`learn` takes them (features will do as well), ``method`` and ``knobs`` as
    :func:`select`. The same as ``semiprune train --start frozen`` (or scratch), ``dynamics`` and ``select`` in a
    project of the same images and labels.
    """
    pseudo = learn(
        images,
        labels,
        class_names=class_names,
        drawn_at_random=drawn_at_random,
        start=start,
        encoder=encoder,
        seed=seed,
        device=device,
        progress=progress,
    )
    dynamics = train_dynamics(pseudo, seed=seed, device=device, progress=progress)
    return select(score(dynamics), ratio, method=method, seed=seed, **knobs)


def evaluate(
    coreset: Coreset,
    images_or_features: Any,
    labels: Any,
    test_images_or_features: Any,
    test_labels: Any,
    *,
    class_names: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    encoder: str = DEFAULT,
    device: str = "auto",
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate a coreset: does a model trained on it do better than on random images, as many of them?

    ``labels`` (N,) and ``test_labels`` (M,) for all images: true ones, if the answer is to be about more than your
    pseudo-labels. The model is the app's probe, a linear one on features; one random coreset for each of ``seeds``.
    """
    pool, tests = (
        as_features(data) or embed(data, encoder=encoder, mirrored=False, device=device, progress=progress)
        for data in (images_or_features, test_images_or_features)
    )
    numbers, names = as_labels(labels, len(pool), class_names)
    wanted, _ = as_labels(
        test_labels, len(tests), names if class_names is None and _is_text(test_labels) else class_names
    )
    if len(pool) != coreset.n_pool:
        raise InvalidDataError(f"This coreset is of {coreset.n_pool:,} images, but {len(pool):,} were given.")
    if (numbers < 0).any() or (wanted < 0).any():
        raise InvalidDataError("Evaluating needs a label for every image, of the pool and of the test images.")
    n_classes = max(len(names), int(wanted.max()) + 1)
    rows, test_rows = probe_rows(pool.values, tests.values, DIRECTIONS)

    def share(kept: IntArray) -> Any:
        return _tested(rows[kept], numbers[kept], test_rows, wanted, n_classes)

    bare, ratio = Evidence(len(pool)), coreset.pruning_ratio
    others = [select_coreset(bare, "random", pruning_ratio=ratio, seed=seed).indices for seed in seeds]
    return Evaluation(share(coreset.indices), tuple(share(kept) for kept in others), share(np.arange(len(pool))))


def _is_text(labels: Any) -> bool:
    return np.asarray(labels).dtype.kind not in "iuf"


def _tested(rows: FloatArray, labels: IntArray, test_rows: FloatArray, wanted: IntArray, n_classes: int) -> Any:
    head = fit_probe(rows, labels, n_classes, penalty=PENALTY)
    return wilson(int((head.logits(test_rows).argmax(1) == wanted).sum()), len(wanted))
