"""Labels for the images of a folder by a finished training run, and how unlike the pool they are.

A run from scratch left its net. A run on features left its penalty and powers: the new images join the pool's as
unlabeled ones, and the same head is fitted once more on the same labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors.torch import load_file

from semiprune_core.embeddings.encoders import open_encoder, own_side
from semiprune_core.errors import InvalidDataError, MissingStepError
from semiprune_core.features.embed import opened_engine
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.frozen import Views, prepare_pool
from semiprune_core.learning.frozen.duplicates import centred_rows
from semiprune_core.learning.frozen.fit import refit
from semiprune_core.learning.images import Images, channel_moments
from semiprune_core.learning.nets import Net, build_net
from semiprune_core.learning.predict import predict
from semiprune_core.prediction.look import Looked, View, looking
from semiprune_core.prediction.write import PredictedImages
from semiprune_core.progress import Progress, Silent, Stopped
from semiprune_core.project.workspace import Project
from semiprune_core.records import UNLABELED, BoolArray, FloatArray, IntArray, Problem
from semiprune_core.results import PseudoRun, check_same_pool
from semiprune_core.results.features import FeatureRun, feature_runs
from semiprune_core.results.pseudo import FINETUNED, FROZEN
from semiprune_core.training.settings import TrainSettings

MOST_AT_ONCE = 4096
"""New images that join the pool at once; further ones come in the next round."""
COMPARED = 2000
"""Images of the pool whose own distances stand for all."""
CELLS = 1 << 24


@dataclass
class _Seen:
    """What was learned of the new images, in their order."""

    paths: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    parts: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def column(self, number: int) -> np.ndarray:
        return np.concatenate([part[number] for part in self.parts])


def predict_folder(
    project: Project, run: PseudoRun, folder: Path, *, device: str = "auto", progress: Progress | None = None
) -> PredictedImages:
    """A label, a confidence and a distance for every image below ``folder``."""
    check_same_pool(run.artifact, project.pool())
    if run.start == FINETUNED:
        raise InvalidDataError(
            f"{run.artifact.id} is a net that was fine-tuned; new images are labeled by runs on pretrained features or "
            "from scratch. Name one with --run."
        )
    progress = progress or Silent()
    work = _by_head if run.start == FROZEN else _by_net
    return work(project, run, folder, device, progress)


# --- from scratch ----------------------------------------------------------------------------------------------------


def open_net(project: Project, run: PseudoRun) -> tuple[Net, IntArray]:
    """The net that a run from scratch left, and (K,) the classes that its answers name."""
    path = run.artifact.path("model.safetensors")
    if not path.is_file():
        raise MissingStepError(f"{run.artifact.id} kept no weights. Train once more: semiprune train {project.name}")
    without = {*run.artifact.facts.get("missing_classes", ())}
    labeled = np.array([at for at, name in enumerate(run.recorded_names) if name not in without], dtype=np.int64)
    form = project.pool().images().shape
    settings = TrainSettings.from_flat(run.artifact.settings).training
    net = build_net(settings.net, image_size=form[1], channels=form[3], n_classes=len(labeled))
    net.load_state_dict(load_file(path))
    return net.eval(), labeled


def _by_net(project: Project, run: PseudoRun, folder: Path, device: str, progress: Progress) -> PredictedImages:
    place, pool = choose_device(device), project.pool().images()
    net, labeled = open_net(project, run)
    net.to(place)
    moments = channel_moments(pool)  # by which the net was trained
    settings = project.pool_settings
    assert settings is not None  # the pool has images
    seen = _Seen()
    for chunk in _looked(project, folder, View(settings.size, settings.channels, settings.fit, False), seen, progress):
        assert chunk.images is not None
        batch = Images(chunk.images, place, moments)
        features = np.empty((len(batch), net.n_features), np.float32)
        answer = predict(net, batch, features_out=features)
        seen.parts.append((labeled[answer.labels], answer.confidence, features))
    return _told(run, seen, run.features(), progress)


# --- on features -----------------------------------------------------------------------------------------------------


def features_behind(project: Project, run: PseudoRun) -> FeatureRun:
    """The features that a run was learned on."""
    wanted = run.artifact.facts.get("features")
    for known in feature_runs(project):
        if known.artifact.hash == wanted:
            return known
    raise MissingStepError(
        f"The features that {run.artifact.id} was learned on are gone. Train once more: semiprune train {project.name}"
    )


def _by_head(project: Project, run: PseudoRun, folder: Path, device: str, progress: Progress) -> PredictedImages:
    known = features_behind(project, run)
    made_with = known.artifact.settings
    encoder = open_encoder(known.encoder, guard=project.workspace.guard)
    side = int(made_with.get("size") or own_side(known.encoder))
    engine, _ = opened_engine(encoder, side, choose_device(device).type, "auto")
    mirrored = bool(made_with.get("mirrored"))
    seen = _Seen()
    for chunk in _looked(project, folder, View(side, 3, str(made_with["fit"]), True), seen, progress):
        assert chunk.images is not None
        own = engine(chunk.images)
        other = engine(chunk.images[:, :, ::-1]).astype(np.float16) if mirrored else own[:0].astype(np.float16)
        seen.parts.append((own, other))
    own, others = seen.column(0), seen.column(1)
    first = project.pool().duplicate_of == np.arange(len(project.pool()))
    probs = [
        _joined(run, known, first, own[part], others[part], progress)
        for part in (slice(start, start + MOST_AT_ONCE) for start in range(0, len(own), MOST_AT_ONCE))
    ]
    answers = np.concatenate(probs)
    seen.parts = [(answers.argmax(1), answers.max(1), own)]
    return _told(run, seen, known.features(), progress)


def _joined(
    run: PseudoRun, known: FeatureRun, first: BoolArray, own: FloatArray, others: FloatArray, progress: Progress
) -> FloatArray:
    """(n, C) probabilities of n new images that join the pool's as unlabeled ones.

    ``first`` (N,) are the images that are no copies of earlier ones: from their labels alone the run learned.
    """
    settings, fitted = TrainSettings.from_flat(_of_features(run)).head, run.artifact.facts["fit"]
    parts, views, begin = [], [], 0
    for values, mirrored in known.parts():
        width = slice(begin, begin + values.shape[1])
        begin = width.stop
        parts.append(np.concatenate([values, own[:, width]]))
        weak = None if mirrored is None else np.concatenate([mirrored, others[:, width]])[None]
        views.append(Views() if weak is None else Views(weak=weak))
    labels = run.labels()
    n = len(labels)
    learned = np.full(n + len(own), UNLABELED, dtype=np.int64)
    taught = np.flatnonzero(labels.human_mask & first)
    learned[taught] = labels.labels[taught]
    uniform = np.zeros(len(learned), dtype=bool)
    uniform[np.load(run.artifact.path("fold_positions.npy"), allow_pickle=False)] = True
    pool = prepare_pool(parts, settings, views=views, progress=progress)
    return refit(
        pool,
        learned,
        n_classes=len(run.class_names),
        measurable_mask=uniform,
        settings=settings,
        seed=int(run.artifact.manifest["seed"] or 0),
        penalty=float(fitted["penalty"]),
        powers=np.array(fitted["powers"], dtype=np.float64),
    )[n:]


def _of_features(run: PseudoRun) -> dict[str, object]:
    """The settings of the head, also where the run tried a net beside it."""
    settings = dict(run.artifact.settings)
    if settings.get("start") == FROZEN:
        return settings
    return {"start": FROZEN, "encoder": settings["encoder"], **settings["frozen"], "seed": settings["seed"]}


# --- both ------------------------------------------------------------------------------------------------------------


def _looked(project: Project, folder: Path, view: View, seen: _Seen, progress: Progress) -> Iterator[Looked]:
    """The chunks that hold images; paths and problems are written down on the way."""
    done = 0
    with looking(project, folder, view) as (chunks, total, problems):
        for chunk in chunks:
            if progress.should_stop():
                raise Stopped
            seen.paths += chunk.paths
            seen.problems += chunk.problems
            done += chunk.n_entries
            progress.report(done, max(total, done), unit="images")
            if chunk.paths:
                yield chunk
        seen.problems += problems
    if not seen.paths:
        first = f" The first problem: {seen.problems[0].message}" if seen.problems else ""
        raise InvalidDataError(f"No image below {folder.name} could be used.{first}")


def _told(run: PseudoRun, seen: _Seen, pool: np.ndarray, progress: Progress) -> PredictedImages:
    distance = distances(np.asarray(pool), seen.column(2), progress)
    return PredictedImages(seen.paths, seen.column(0), seen.column(1), distance, run.class_names, tuple(seen.problems))


def distances(pool: np.ndarray, new: FloatArray, progress: Progress) -> FloatArray:
    """(n,) for new features (n, D): how many of the pool's images (N, D) lie nearer to another one of it, in percent.

    0 is as close as the closest pair of the pool, 100 farther than any image of the pool is from the others.
    """
    rows = centred_rows(np.concatenate([np.asarray(pool, np.float32), new]))
    own, others = rows[: len(pool)], rows[len(pool) :]
    sample = np.linspace(0, len(own) - 1, min(len(own), COMPARED)).astype(np.int64)
    usual = np.sort(_farness(own, own[sample], sample, progress))
    return 100 * np.searchsorted(usual, _farness(own, others, None, progress), side="left") / len(usual)


def _farness(pool: FloatArray, rows: FloatArray, itself: IntArray | None, progress: Progress) -> FloatArray:
    """(n,) one minus the cosine to the nearest row of the pool, ``itself`` left out."""
    found, block = [], max(1, CELLS // len(pool))
    for start in range(0, len(rows), block):
        if progress.should_stop():
            raise Stopped
        likeness = rows[start : start + block] @ pool.T
        if itself is not None:
            likeness[np.arange(len(likeness)), itself[start : start + block]] = -np.inf
        found.append(1 - likeness.max(1))
    return np.concatenate(found)
