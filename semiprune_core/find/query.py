"""What somebody looks for, as a row of features, and how alike every image of the project is to it.

An image of the project has its features already. A picture from elsewhere and words are shown to their encoder in a
process of its own, so that nobody who asks loads torch; the picture is decoded in a limited one before.
"""

from __future__ import annotations

import base64
import functools
from pathlib import Path

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.embeddings import words as text
from semiprune_core.embeddings.encoders import DEFAULT, weights_files
from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, SemiPruneError
from semiprune_core.find import seeing
from semiprune_core.find.rank import cosines, lengths
from semiprune_core.importing import limited
from semiprune_core.importing.sources.reading import MAX_FILE_BYTES
from semiprune_core.importing.workers import WORKER_GROWTH
from semiprune_core.paths import shown
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray
from semiprune_core.results.features import FeatureRun, feature_runs, latest_features

ENCODER_GROWTH = 8 << 30
"""Bytes that an encoder may take: it is ours, so this only ends what went wrong."""
MOST_LETTERS = 300


def searched(project: Project) -> FeatureRun:
    """The features that are looked through: the default encoder's, else the newest ones."""
    try:
        return latest_features(project, DEFAULT)
    except MissingStepError:
        return latest_features(project)


def can_find(project: Project) -> bool:
    """Whether there are features to look through."""
    try:
        searched(project)
    except MissingStepError:
        return False
    return True


def like_image(project: Project, everything: Pool, image_id: int) -> FloatArray:
    """(N,) how alike each image of ``everything``, which holds all splits, is to one of them."""
    position = int(everything.positions([image_id])[0])
    if position < 0:
        raise InvalidDataError("This project has no such image. Reload the page.", code="NO_IMAGE")
    run = searched(project)
    for split, features in (("pool", run.features()), ("test", run.test_features())):
        row = int(np.searchsorted(rows := everything.split(split).rows, position))
        if row < len(rows) and rows[row] == position:
            return _likeness(run, everything, features[row])
    raise InvalidDataError("This image has no features yet. They are computed in the background.", code="NO_IMAGE")


def like_picture(project: Project, everything: Pool, data: bytes, name: str) -> FloatArray:
    """(N,) how alike each image is to a picture from elsewhere; ``data`` is its file, ``name`` is for messages."""
    if len(data) > MAX_FILE_BYTES:
        raise InvalidDataError(
            f"{shown(name)} is {len(data) / 1e6:.0f} MB, more than the {MAX_FILE_BYTES / 1e6:g} MB allowed for one "
            "image. Make it smaller.",
            code="FILE_TOO_LARGE",
        )
    run = searched(project)
    side, fit = int(run.artifact.settings["size"]), str(run.artifact.settings["fit"])
    weights = _weights(project, run)
    told = limited.stream(seeing.see_picture, str(side), fit, name, name=name, data=data, growth=WORKER_GROWTH)
    pixels = base64.b64decode("".join(told))
    answer = limited.stream(
        seeing.answer_picture,
        str(project.workspace.root), run.encoder, weights, str(side), str(run.artifact.settings["weights_hash"]),
        name="the encoder", data=pixels, growth=ENCODER_GROWTH,
    )  # fmt: skip
    return _likeness(run, everything, np.array(list(answer), np.float32))


def like_words(project: Project, everything: Pool, words: str) -> FloatArray:
    """(N,) how alike each image is to what ``words`` say; needs CLIP, see :func:`words_missing`."""
    words = " ".join(words.split())
    if not words:
        raise InvalidSettingError("Say in a few words what to look for, such as: a red shoe.")
    check_range("number of letters", len(words), low=1, high=MOST_LETTERS)
    if missing := words_missing(project):
        raise MissingStepError(missing)
    run = _clip_run(project)
    assert run is not None
    file = text.text_weights(project.workspace.weights_folder, run.encoder)
    answer = limited.stream(
        seeing.answer_words, run.encoder, str(file), words, name="the encoder", growth=ENCODER_GROWTH
    )
    return _likeness(run, everything, np.array(list(answer), np.float32))


def words_missing(project: Project) -> str:
    """What is missing to look for words, and what to do; "" where nothing is."""
    run = _clip_run(project)
    if run is None:
        return (
            "Words need what CLIP sees in the images. Get its weights (docs/features.md), then run: "
            f"semiprune embed {project.name} --encoder {next(iter(text.MODELS))}"
        )
    return text.missing(project.workspace.weights_folder, run.encoder)


def _clip_run(project: Project) -> FeatureRun | None:
    runs = [run for run in feature_runs(project) if run.encoder in text.MODELS and run.is_current(project)]
    return runs[-1] if runs else None


def _likeness(run: FeatureRun, everything: Pool, query: np.ndarray) -> FloatArray:
    """(N,) cosines with the features of all splits, in the order of ``everything``."""
    if query.shape != (run.n_dimensions,) or not np.isfinite(query).all():
        raise InvalidDataError("The encoder's answer does not fit the features here. Compute them again.")
    found = np.zeros(len(everything), np.float32)
    for split, features in (("pool", run.features()), ("test", run.test_features())):
        rows = everything.split(split).rows
        found[rows] = cosines(features, query, _lengths(run.artifact.folder, split))
    return found


@functools.lru_cache(maxsize=8)
def _lengths(folder: Path, split: str) -> FloatArray:
    """An artifact never changes, so neither do the lengths of its rows."""
    run = FeatureRun(open_artifact(folder))
    return lengths(run.features() if split == "pool" else run.test_features())


def _weights(project: Project, run: FeatureRun) -> str:
    """The weights file that the features were made with; "" for those that belong to the encoder's name."""
    wanted = run.artifact.facts.get("weights_files")
    folder = project.workspace.weights_folder
    for weights in ("", *map(str, sorted(folder.glob("*.safetensors")) if folder.is_dir() else ())):
        try:
            if weights_files(run.encoder, weights, guard=project.workspace.guard) == wanted:
                return weights
        except SemiPruneError:
            continue
    raise MissingStepError(
        f"The weights that {run.artifact.id} was made with are not here. Put their .safetensors file into "
        f"{folder}, or run: semiprune embed {project.name}"
    )
