"""The baselines' evidence: who is asked for which, how it is made, and that it is made once.

Each maker is ``(request) -> EvidenceRun``: it finds evidence of the same inputs, settings and seed, or makes it. The
costly steps on the way (features, an encoder, cluster labels, a dynamics run) are kept as evidence of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from semiprune_core import streams
from semiprune_core.baselines import zcore
from semiprune_core.baselines.dynamics import dynamics_on, score_settings, scores_of, training_of, work_folder
from semiprune_core.baselines.evidence import PROVIDERS, EvidenceRequest
from semiprune_core.baselines.extrapolate import choose_k, extrapolate_knn
from semiprune_core.baselines.features import chosen_encoder, pool_features
from semiprune_core.baselines.prototypes import prototypicality
from semiprune_core.baselines.settings import (
    BY_PROVIDER,
    SCORER,
    ClusterSettings,
    ExtrapolationSettings,
    GraphSettings,
    PrototypeSettings,
    ReferenceSettings,
    ScoringSettings,
    SelfClusterSettings,
    ZCoreSettings,
    own_settings,
    score_changes,
)
from semiprune_core.baselines.settings import HeadSettings as ClusteringSettings
from semiprune_core.dynamics.scoring import default_score_settings
from semiprune_core.embeddings.features import check_finite
from semiprune_core.errors import MissingStepError
from semiprune_core.learning.head_run import HeadSettings
from semiprune_core.learning.labels import check_labels
from semiprune_core.project.pool import Pool
from semiprune_core.records import Evidence, FloatArray, IntArray
from semiprune_core.results.evidence import EvidenceRun, complete_evidence, find_evidence, open_evidence, write_evidence
from semiprune_core.results.pseudo import FROZEN, SCRATCH
from semiprune_core.scores import ScoreSettings, ScoreTable
from semiprune_core.streams import Purpose
from semiprune_core.training import labels_on_pool

Maker = Callable[[EvidenceRequest], EvidenceRun]


def provide(name: str, *, title: str, about: str) -> Callable[[Maker], Maker]:
    """Register a maker as a provider; the fact ``maker`` gives the stored evidence itself."""

    def add(make: Maker) -> Maker:
        def provider(request: EvidenceRequest) -> Evidence:
            return complete_evidence(make(request), request.project, request.project.pool(), request.snapshot())

        PROVIDERS.register(name, title=title, about=about, maker=make)(provider)
        return make

    assert name in BY_PROVIDER
    return add


def find_or_make_scores(
    request: EvidenceRequest,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    make: Callable[[], tuple[ScoreTable, IntArray | None, dict[str, Any]]],
) -> EvidenceRun:
    """The evidence of these settings and inputs: found, or made from a table, labels and facts, and kept."""
    if stored := find_evidence(request.project, settings, inputs, request.seed):
        return stored
    table, labels, facts = make()
    with request.project.draft("evidence", settings=settings, inputs=inputs, seed=request.seed) as draft:
        write_evidence(draft, request.project.pool(), table, labels)
        draft.facts.update(facts)
    return open_evidence(draft)


def n_classes_of(request: EvidenceRequest, pool: Pool, n_clusters: int = 0) -> int:
    """How many classes there are: those asked for, else the project's, else the reference ones."""
    n_classes = n_clusters or len(request.snapshot().class_names) or len(pool.class_names)
    if n_classes < 2:
        raise MissingStepError(
            "The number of classes is unknown. Add the classes on the Label page, or set n_clusters."
        )
    return n_classes


def one_column(name: str, values: FloatArray) -> ScoreTable:
    return ScoreTable({name: np.asarray(values, dtype=np.float64)}, ScoreSettings(), len(values))


# --- features alone ------------------------------------------------------------------------------------------------


@provide("prototype_scores", title="Distance to prototypes", about="k-means on features of the pool.")
def prototype_scores(request: EvidenceRequest) -> EvidenceRun:
    settings = own_settings(PrototypeSettings, request.settings)
    pool = request.project.pool()
    n_clusters = n_classes_of(request, pool, settings.n_clusters)
    features = pool_features(request, settings)

    def make() -> tuple[ScoreTable, None, dict[str, Any]]:
        values = features.array("features")
        distances = prototypicality(
            values, n_clusters=n_clusters, seed=request.seed, n_starts=settings.n_starts, progress=request.progress
        )
        return one_column("prototypicality", distances), None, {"encoder": chosen_encoder(settings)}

    identity = {"provider": "prototype_scores", "n_clusters": n_clusters, "n_starts": settings.n_starts}
    return find_or_make_scores(request, identity, {"pool": pool.hash, "features": features.artifact.hash}, make)


@provide("zcore_scores", title="Coverage and redundancy", about="Sampled subspaces of the pool's features.")
def zcore_scores(request: EvidenceRequest) -> EvidenceRun:
    settings = own_settings(ZCoreSettings, request.settings)
    pool = request.project.pool()
    features = pool_features(request, settings)
    settings = settings.replace(n_samples=zcore.n_samples_for(len(pool), settings))

    def make() -> tuple[ScoreTable, None, dict[str, Any]]:
        rng = streams.rng(request.seed, Purpose.SUBSPACES)
        scores = zcore.zcore_scores(features.array("features"), settings=settings, rng=rng, progress=request.progress)
        return one_column("zcore", scores), None, {"encoder": chosen_encoder(settings)}

    own = ("n_samples", "subspace", "n_redundant", "exponent", "random_start")
    identity = {"provider": "zcore_scores", **{name: getattr(settings, name) for name in own}}
    return find_or_make_scores(request, identity, {"pool": pool.hash, "features": features.artifact.hash}, make)


# --- other labels, same training -----------------------------------------------------------------------------------


def scores_on(
    request: EvidenceRequest,
    provider: str,
    labels: IntArray,
    *,
    n_classes: int,
    scoring_run: ScoringSettings,
    inputs: Mapping[str, str],
    facts: Mapping[str, Any],
) -> EvidenceRun:
    """Scores from a dynamics run on ``labels`` (N,), one for every image."""
    schedule = training_of(request.project, scoring_run.training, scoring_run.start)
    run = dynamics_on(request, labels, n_classes=n_classes, training=schedule, of=provider, inputs=inputs)
    scoring = score_settings(run, score_changes(request.settings))

    def make() -> tuple[ScoreTable, IntArray, dict[str, Any]]:
        return scores_of(run, scoring, request.progress), labels, {"n_epochs": run.n_epochs, **facts}

    identity = {"provider": provider, "scores": scoring.to_json(), **_begun(scoring_run)}
    return find_or_make_scores(request, identity, {"pool": inputs["pool"], "dynamics": run.artifact.hash}, make)


@provide("reference_scores", title="Scores on reference labels", about="A dynamics run on the pool's own labels.")
def reference_scores(request: EvidenceRequest) -> EvidenceRun:
    settings = own_settings(ReferenceSettings, request.settings)
    pool = request.project.pool()
    labels = pool.reference_labels
    n_known = int((labels >= 0).sum())
    if n_known < len(pool) or len(pool.class_names) < 2:
        raise MissingStepError(
            f"This method learns from reference labels, but only {n_known:,} of {len(pool):,} images have one. "
            "Import the pool with a label for every image, or choose a method that needs none."
        )
    return scores_on(
        request,
        "reference_scores",
        labels,
        n_classes=len(pool.class_names),
        scoring_run=settings,
        inputs={"pool": pool.hash},
        facts={},
    )


def _begun(settings: ScoringSettings) -> dict[str, str]:
    """What the settings of evidence say of its dynamics run: nothing where it began from scratch."""
    return {} if settings.start == SCRATCH else {"start": settings.start}


def cluster_labels(
    request: EvidenceRequest, features: EvidenceRun, n_clusters: int, settings: ClusteringSettings
) -> EvidenceRun:
    """Deep-clustering labels of the pool by these features, kept as evidence of their own (``labels.npy``)."""
    project, pool = request.project, request.project.pool()
    identity = {"provider": "clusters", "n_clusters": n_clusters, "heads": settings.to_json()}
    inputs = {"pool": pool.hash, "features": features.artifact.hash}
    if stored := find_evidence(project, identity, inputs, request.seed):
        return stored
    from semiprune_core.baselines.temi import cluster

    started = time.monotonic()
    with work_folder(request, "clusters", identity, inputs) as folder:
        clusters = cluster(
            features.array("features"),
            n_clusters=n_clusters,
            settings=settings,
            seed=request.seed,
            progress=request.progress,
            device=request.device,
            folder=folder,
        )
    with project.draft("evidence", settings=identity, inputs=inputs, seed=request.seed) as draft:
        np.save(draft.path("labels.npy"), clusters.labels.astype(np.int32), allow_pickle=False)
        np.save(draft.path("confidence.npy"), clusters.confidence.astype(np.float32), allow_pickle=False)
        counts = np.bincount(clusters.labels, minlength=n_clusters)
        draft.device = request.device
        draft.facts.update(
            losses=[round(float(loss), 4) for loss in clusters.losses],
            best=clusters.best,
            cluster_counts=counts.tolist(),
            seconds=round(time.monotonic() - started, 1),
        )
    return open_evidence(draft)


def clustered_scores(
    request: EvidenceRequest,
    provider: str,
    features: EvidenceRun,
    settings: ClusterSettings | SelfClusterSettings,
    encoder: str,
) -> EvidenceRun:
    """Deep clustering on these features, then scores from a dynamics run on its labels."""
    pool = request.project.pool()
    n_clusters = n_classes_of(request, pool, settings.n_clusters)
    clusters = cluster_labels(request, features, n_clusters, settings.clustering())
    labels = clusters.labels()
    assert labels is not None
    return scores_on(
        request,
        provider,
        labels,
        n_classes=n_clusters,
        scoring_run=settings,
        inputs={"pool": pool.hash, "clusters": clusters.artifact.hash},
        facts={"encoder": encoder},
    )


@provide("cluster_scores", title="Scores on clusters", about="Deep clustering of features, then a dynamics run.")
def cluster_scores(request: EvidenceRequest) -> EvidenceRun:
    settings = own_settings(ClusterSettings, request.settings)
    features = pool_features(request, settings)
    return clustered_scores(request, "cluster_scores", features, settings, chosen_encoder(settings))


@provide(
    "self_cluster_scores",
    title="Scores on clusters of its own encoder",
    about="An encoder trained on the pool without labels, deep clustering of its features, then a dynamics run.",
)
def self_cluster_scores(request: EvidenceRequest) -> EvidenceRun:
    settings = own_settings(SelfClusterSettings, request.settings)
    return clustered_scores(request, "self_cluster_scores", self_features(request, settings), settings, "swav")


def self_features(request: EvidenceRequest, settings: SelfClusterSettings) -> EvidenceRun:
    """Features of an encoder trained on the pool itself, kept as evidence."""
    project, pool = request.project, request.project.pool()
    identity = {"provider": "self_encoder", "swav": settings.encoder_training().to_json()}
    inputs = {"pool": pool.hash}
    if stored := find_evidence(project, identity, inputs, request.seed):
        return stored
    from semiprune_core.baselines.swav import train_encoder

    started = time.monotonic()
    with work_folder(request, "encoder", identity, inputs) as folder:
        values = train_encoder(
            pool.images(),
            settings=settings.encoder_training(),
            seed=request.seed,
            progress=request.progress,
            device=request.device,
            folder=folder,
        )
        check_finite(values, "The encoder's training diverged: lower the lr of swav.")
    with project.draft("evidence", settings=identity, inputs=inputs, seed=request.seed) as draft:
        np.save(draft.path("features.npy"), values, allow_pickle=False)
        draft.device = request.device
        draft.facts.update(
            n_images=len(values), n_dimensions=int(values.shape[1]), seconds=round(time.monotonic() - started, 1)
        )
    return open_evidence(draft)


# --- scores carried on from the labeled subset ---------------------------------------------------------------------

CHOSEN_BY = "dynamic_uncertainty"
"""The score whose highest values score extrapolation keeps; how it is carried on is tuned by it alone."""


def extrapolated(
    request: EvidenceRequest,
    provider: str,
    settings: ExtrapolationSettings,
    carry: Callable[[np.ndarray, IntArray, Mapping[str, FloatArray], IntArray, int], dict[str, FloatArray]],
    own: Mapping[str, Any],
) -> EvidenceRun:
    """Score the labeled images by a dynamics run on them alone, and ``carry`` the scores to all others.

    The settings name the score it is tuned by, so that evidence that was tuned by another is not found.
    """
    project, pool = request.project, request.project.pool()
    snapshot = request.snapshot()
    labels = labels_on_pool(snapshot, pool).learned
    check_labels(labels, len(pool), snapshot.class_names)
    n_classes = len(snapshot.class_names)
    whole = training_of(project, {}, settings.start)
    short = whole if isinstance(whole, HeadSettings) else whole.for_coreset(float((labels < 0).mean()))
    run = dynamics_on(
        request,
        labels,
        n_classes=n_classes,
        training=short.replace(**settings.training),
        of="labeled",
        inputs={"pool": pool.hash, "labels": snapshot.hash},
    )
    source = run if settings.encoder == SCORER else pool_features(request, settings)
    stretched = {} if settings.start == FROZEN else {"dual_epochs": _stretched_epochs(run, whole.epochs)}
    scoring = score_settings(run, {**stretched, **score_changes(request.settings)})

    def make() -> tuple[ScoreTable, None, dict[str, Any]]:
        table = scores_of(run, scoring, request.progress)
        places = np.asarray(run.array("places"))
        columns = carry(np.asarray(source.array("features")), places, table.columns, labels[places], n_classes)
        columns["mean_prob"] = np.clip(columns["mean_prob"], 0, 1)  # a probability stays one
        facts = {"n_epochs": run.n_epochs, "encoder": chosen_encoder(settings), "n_labeled": len(places)}
        return ScoreTable(columns, table.settings, len(pool)), None, facts

    identity = {"provider": provider, **own, "chosen_by": CHOSEN_BY, "scores": scoring.to_json()}
    identity |= _begun(settings)
    inputs = {"pool": pool.hash, "dynamics": run.artifact.hash, "features": source.artifact.hash}
    return find_or_make_scores(request, identity, inputs, make)


def _stretched_epochs(run: EvidenceRun, n_epochs: int) -> int:
    """T of DUAL on a run that passes more often over fewer images than the project's own, which has ``n_epochs``."""
    assert run.n_epochs is not None
    usual = default_score_settings(n_epochs)["dual_epochs"] or n_epochs
    return min(run.n_epochs, round(usual * max(1.0, run.n_epochs / n_epochs)))


@provide("knn_scores", title="Scores from neighbours", about="Scores of the labeled images, averaged over neighbours.")
def knn_scores(request: EvidenceRequest) -> EvidenceRun:
    settings = own_settings(ExtrapolationSettings, request.settings)

    def carry(
        values: np.ndarray, places: IntArray, scores: Mapping[str, FloatArray], labels: IntArray, n_classes: int
    ) -> dict[str, FloatArray]:
        rng = streams.rng(request.seed, Purpose.NEIGHBOURS)
        k = settings.n_neighbours or choose_k(values[places], scores[CHOSEN_BY], rng=rng, progress=request.progress)
        return extrapolate_knn(values, places, scores, k=k, progress=request.progress)

    return extrapolated(request, "knn_scores", settings, carry, {"n_neighbours": settings.n_neighbours})


@provide("graph_scores", title="Scores from a graph network", about="A graph network learns the known scores.")
def graph_scores(request: EvidenceRequest) -> EvidenceRun:
    settings = own_settings(GraphSettings, request.settings)

    def carry(
        values: np.ndarray, places: IntArray, scores: Mapping[str, FloatArray], labels: IntArray, n_classes: int
    ) -> dict[str, FloatArray]:
        from semiprune_core.baselines.graph import extrapolate_graph

        return extrapolate_graph(
            values,
            places,
            scores,
            labels,
            n_classes=n_classes,
            judged_by=CHOSEN_BY,
            settings=settings,
            seed=request.seed,
            progress=request.progress,
            device=request.device,
        )

    own = {"n_neighbours": settings.n_neighbours, "hidden": list(settings.hidden)}
    own |= {name: getattr(settings, name) for name in ("dropout", "blank", "lr", "epochs")}
    return extrapolated(request, "graph_scores", settings, carry, own)
