"""Features of the pool for a baseline: computed once for each encoder and kept as evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from semiprune_core.baselines.dynamics import work_folder
from semiprune_core.baselines.neighbours import BLOCK
from semiprune_core.baselines.settings import AUTO, EncoderSettings
from semiprune_core.embeddings.encoders import PACKAGED, named_encoder, own_side, packaged_encoder
from semiprune_core.embeddings.features import FEATURES, Features, FeatureSettings, checked, from_pretrained
from semiprune_core.errors import InvalidDataError, InvalidSettingError
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.project.pool import Pool
from semiprune_core.results.evidence import EvidenceRun, find_evidence, open_evidence

if TYPE_CHECKING:
    from semiprune_core.baselines.evidence import EvidenceRequest

KEPT_AS = np.float32
"""In half precision images become alike that are not, where features lie far from zero."""
PROVIDER = "features"
JOIN = "+"
SMALLEST_SIDE, LARGEST_SIDE = 64, 224


def chosen_encoder(settings: EncoderSettings) -> str:
    """What ``auto`` means on this machine; any other name stays."""
    names = settings.encoder.split(JOIN)
    return JOIN.join(packaged_encoder() or "pixels" if name == AUTO else name for name in names)


def default_side(name: str, image_size: int) -> int:
    """At which side an encoder sees images of ``image_size`` pixels: its own, however small they are.

    The packaged one runs on machines without a GPU, so it sees no more than is worth its time on small images.
    """
    if name != PACKAGED:
        return own_side(name)
    return int(min(max(2 * image_size, SMALLEST_SIDE), LARGEST_SIDE))


def feature_settings(settings: EncoderSettings, pool: Pool) -> FeatureSettings:
    """The same question as the Map page would ask it."""
    name = chosen_encoder(settings)
    if name in FEATURES and name != "pretrained":
        return FeatureSettings(features=name)
    side = settings.encoder_size or default_side(name, pool.images().shape[1])
    return FeatureSettings(features="pretrained", encoder=name, weights=settings.weights, encoder_size=side)


def pool_features(request: EvidenceRequest, settings: EncoderSettings) -> EvidenceRun:
    """The features (N, D) of every image, as the evidence that keeps them (``features.npy``, float32).

    Those of the project's own models lie in their artifacts already and are kept once more, with the input they are of:
    the evidence then stands by itself.
    """
    if JOIN in settings.encoder:
        return _joined(request, settings)
    project, pool = request.project, request.project.pool()
    wanted = feature_settings(settings, pool)
    identity = {
        "provider": PROVIDER,
        **{name: getattr(wanted, name) for name in ("features", "encoder", "encoder_size")},
    }
    if wanted.features != "pretrained":
        return _find_or_write(request, identity, FEATURES[wanted.features](project, wanted, request.progress), "cpu")
    named = named_encoder(wanted.encoder, wanted.weights, guard=project.workspace.guard)
    inputs = {"pool": pool.hash, "weights": named.weights_hash}
    if stored := find_evidence(project, identity, inputs, None):  # costly: looked for before anything is computed
        return stored
    with work_folder(dataclasses.replace(request, seed=0), PROVIDER, identity, inputs) as folder:  # one for all seeds
        features = from_pretrained(project, wanted, request.progress, device=request.device, folder=folder)
        return _find_or_write(request, identity, features, request.device)


def _joined(request: EvidenceRequest, settings: EncoderSettings) -> EvidenceRun:
    """The features of several encoders side by side, those of each scaled to length 1, as evidence of their own."""
    names = settings.encoder.split(JOIN)
    weights = settings.weights.split(JOIN) if settings.weights else [""] * len(names)
    if len(weights) != len(names):
        raise InvalidSettingError(
            f"There are {len(weights)} weight files for the {len(names)} encoders {settings.encoder}. Give them in the "
            f"same order, separated by {JOIN}, and leave the place of an encoder with its own weights empty."
        )
    parts = [pool_features(request, settings.replace(encoder=name, weights=file)) for name, file in zip(names, weights)]
    identity = {"provider": PROVIDER, "features": "joined", "encoder": chosen_encoder(settings)}
    inputs = {"pool": request.project.pool().hash}
    inputs |= {f"features_{number}": part.artifact.hash for number, part in enumerate(parts, 1)}
    if stored := find_evidence(request.project, identity, inputs, None):
        return stored
    arrays = [part.array("features") for part in parts]
    shape = len(arrays[0]), sum(array.shape[1] for array in arrays)
    with request.project.draft("evidence", settings=identity, inputs=inputs) as draft:
        out = np.lib.format.open_memmap(draft.path("features.npy"), mode="w+", dtype=KEPT_AS, shape=shape)
        for start in range(0, len(out), BLOCK):
            out[start : start + BLOCK] = np.hstack([unit_rows(array[start : start + BLOCK]) for array in arrays])
        out.flush()
        draft.facts.update(n_images=shape[0], n_dimensions=shape[1])
    return open_evidence(draft)


def _find_or_write(
    request: EvidenceRequest, identity: Mapping[str, Any], features: Features, device: str
) -> EvidenceRun:
    """The evidence of these features: found by what they were made from, or written."""
    project, pool = request.project, request.project.pool()
    inputs = {"pool": pool.hash, **features.inputs}
    if stored := find_evidence(project, identity, inputs, None):
        return stored
    values = checked(features, len(pool))
    if len(values) != len(pool):
        raise InvalidDataError(
            f"There are features for {len(values):,} of {len(pool):,} images: the pool has grown since. Train again, "
            "or choose another encoder."
        )
    with project.draft("evidence", settings=identity, inputs=inputs) as draft:
        np.save(draft.path("features.npy"), np.asarray(values, dtype=KEPT_AS), allow_pickle=False)
        draft.device = device
        draft.facts.update(n_images=len(values), n_dimensions=int(values.shape[1]))
    return open_evidence(draft)
