"""Drawing the images to label.

The uniform drawing ranks every distinct picture by a hash of seed and image id, and takes the lowest ranks: a random
permutation that needs no state. A larger fraction with the same seed takes the earlier drawing and goes on from there,
and images added to the pool fall into place without moving the others.

Pictures that come several times (by content) are drawn as one: the first is shown, its copies receive its label
(:meth:`semiprune_core.labeling.snapshot.LabelsSnapshot.on_pool`). Every image is equally likely to be drawn.

All other methods depart from the paper's uniform sample. Their labels train, but never estimate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from semiprune_core import streams
from semiprune_core.checks import check_finite, check_range
from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, UnknownNameError
from semiprune_core.labeling import chain, schema
from semiprune_core.labeling.events import check_annotator
from semiprune_core.labeling.schema import unsigned_array
from semiprune_core.project import rights
from semiprune_core.records import BoolArray, FloatArray, IntArray
from semiprune_core.registry import Registry
from semiprune_core.streams import Purpose

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore
    from semiprune_core.project.workspace import Project

FEW_LABELS = 4
"""Fewer labels than this in a class are worth a warning."""
MAX_CLUSTERS = 256
FINAL_TEST, LARGEST_FINAL_TEST = 0.1, 0.5
"""Share of the labels that a person may keep for a final test: as a rule, and at most."""
DrawMethod = Callable[..., np.ndarray]
DRAW_METHODS: Registry[DrawMethod] = Registry("drawing method")


@dataclass(frozen=True, eq=False)
class Drawing:
    """A recorded drawing. ``ids`` (M,) uint64 in the order to label, ``needs`` (M,) annotators wanted for each.

    ``final_mask`` (M,) marks those whose labels are kept for the final test: ``final_test`` of what it drew anew.
    """

    drawing_id: int
    method: str
    uniform: bool
    seed: int
    ids: np.ndarray
    needs: IntArray
    n_groups: int
    overlap: float
    pool_hash: str
    extends: int | None
    saved_ms: int
    seq: int
    """Its place among the events of the project."""
    final_test: float
    final_mask: BoolArray

    def __len__(self) -> int:
        return len(self.ids)


def has_test_labels(project: Project) -> bool:
    """Whether the project came with labeled test images: then evaluations test on those, and need no final test."""
    return bool((project.test_set().reference_labels >= 0).any())


@dataclass(frozen=True)
class Preview:
    """What a uniform drawing would hold. ``per_class`` is None where no reference labels are known.

    ``rarest_expected`` images are expected of a class with the share ``rarest_share`` (the rarest one, if known),
    and with probability ``chance_of_few`` it gets fewer than four.
    """

    n_images: int
    n_groups: int
    per_class: dict[str, int] | None
    rarest_class: str | None
    rarest_share: float
    rarest_expected: float
    chance_of_few: float


def ranks(ids: np.ndarray, seed: int, purpose: str = "draw") -> np.ndarray:
    """(M,) uint64: a number for each id that looks random, and depends on nothing but it, the seed and the purpose."""
    digest = hashlib.sha256(f"semiprune {purpose} {seed}".encode()).digest()
    first, second = (np.uint64(int.from_bytes(digest[start : start + 8], "big")) for start in (0, 8))
    return _mix(_mix(ids.astype(np.uint64) ^ first) ^ second)


def _mix(x: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014): a bijection in which every bit depends on all."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def first_copies(duplicate_of: IntArray) -> IntArray:
    """Positions of the images that are the first of their content."""
    return np.flatnonzero(duplicate_of == np.arange(len(duplicate_of)))


def draw_count(n_groups: int, *, fraction: float | None = None, count: int | None = None) -> int:
    """How many distinct pictures a fraction or a count of them means; at least one, at most all."""
    if (fraction is None) == (count is None):
        raise InvalidSettingError("Give a fraction or a count of images to draw, and not both.")
    if not n_groups:
        raise MissingStepError("The pool holds no images to draw from. Import some on the Pool page first.")
    if fraction is not None:
        check_range("fraction", fraction, low=0, high=1, low_open=True)
        return max(1, round(n_groups * fraction))
    assert count is not None
    check_range("count", count, low=1, high=n_groups)
    return int(count)


def draw_uniform(ids: np.ndarray, count: int, *, seed: int, earlier: np.ndarray | None = None) -> np.ndarray:
    """``count`` of ``ids`` (M,) uniformly at random, ``earlier`` ones (same seed) first and in their order.

    What is drawn is always "all ids up to some rank". After the pool has grown, the earlier drawing may reach further
    than ``count`` does: then a few more are drawn, so that the sample stays uniform and no work is thrown away.
    """
    order = np.lexsort((ids, ranks(ids, seed)))
    ranked = ids[order]
    if earlier is None or not len(earlier):
        return ranked[:count]
    if count <= len(earlier):
        return earlier[:count]
    drawn = np.isin(ranked, earlier)
    reach = int(np.flatnonzero(drawn)[-1]) + 1 if drawn.any() else 0
    reach = max(count, reach)
    return np.concatenate([earlier, ranked[:reach][~drawn[:reach]]])


@DRAW_METHODS.register("coverage", title="Coverage of the embedding", needs=("features",))
def draw_coverage(ids: np.ndarray, count: int, *, seed: int, features: FloatArray, **_: Any) -> np.ndarray:
    """Spread over look-alike groups: k-means on ``features`` (M, D), then the groups take turns, most typical first."""
    from sklearn.cluster import MiniBatchKMeans

    _one_per_id("features", features, ids)
    n_clusters = min(count, MAX_CLUSTERS, len(ids))
    x = np.asarray(features, dtype=np.float32).reshape(len(ids), -1)
    model = MiniBatchKMeans(
        n_clusters,
        random_state=streams.derived(seed, Purpose.DRAW_CLUSTERS, bits=32),
        n_init=1,
        batch_size=4096,
        max_iter=50,
    )
    cluster = model.fit_predict(x)
    distance = np.linalg.norm(x - model.cluster_centers_[cluster], axis=1)
    order = np.lexsort((ranks(ids, seed), distance, cluster))
    starts = np.concatenate([[0], np.cumsum(np.bincount(cluster, minlength=n_clusters))[:-1]])
    turn = np.empty(len(ids), dtype=np.int64)
    turn[order] = np.arange(len(ids)) - starts[cluster[order]]
    return ids[np.lexsort((ranks(ids, seed), turn))[:count]]


@DRAW_METHODS.register("uncertainty", title="The model's doubts", needs=("confidence",))
def draw_uncertainty(ids: np.ndarray, count: int, *, seed: int, confidence: FloatArray, **_: Any) -> np.ndarray:
    """The images of which a model is least sure: lowest ``confidence`` (M,) first."""
    _one_per_id("confidence", confidence, ids)
    return ids[np.lexsort((ranks(ids, seed), confidence))[:count]]


@DRAW_METHODS.register("unlike", title="Most unlike the labeled ones", needs=("order",))
def draw_unlike(ids: np.ndarray, count: int, *, seed: int, order: FloatArray, **_: Any) -> np.ndarray:
    """The images that are farthest from every labeled one and from each other: lowest ``order`` (M,) first."""
    _one_per_id("order", order, ids)
    return ids[np.lexsort((ranks(ids, seed), order))[:count]]


@DRAW_METHODS.register("near", title="Like the images of a class", needs=("order",))
def draw_near(ids: np.ndarray, count: int, *, seed: int, order: FloatArray, **_: Any) -> np.ndarray:
    """The images that are nearest to those of one class: lowest ``order`` (M,) first."""
    return draw_unlike(ids, count, seed=seed, order=order)


def _one_per_id(name: str, values: np.ndarray, ids: np.ndarray) -> None:
    if len(values) != len(ids):
        raise InvalidDataError(f"{name} has {len(values)} values for {len(ids)} images.")
    check_finite(name, values)


def pixel_features(images: np.ndarray, *, n_components: int = 32, seed: int = 0, sample: int = 5_000) -> FloatArray:
    """(N, n_components) float32 of ``images`` (N, H, W, C) uint8: their principal components, before a model exists."""
    from sklearn.decomposition import PCA

    n = len(images)
    flat = int(np.prod(images.shape[1:]))
    rng = streams.rng(seed, Purpose.DRAW_PIXELS)
    chosen = np.sort(rng.choice(n, size=min(n, sample), replace=False))
    fit_on = np.asarray(images[chosen], dtype=np.float32).reshape(len(chosen), flat) / 255
    n_components = max(1, min(n_components, *fit_on.shape))
    start = streams.derived(seed, Purpose.DRAW_COMPONENTS, bits=32)
    model = PCA(n_components, svd_solver="randomized", random_state=start).fit(fit_on)
    features = np.empty((n, n_components), dtype=np.float32)
    for start in range(0, n, sample):
        part = np.asarray(images[start : start + sample], dtype=np.float32).reshape(-1, flat) / 255
        features[start : start + len(part)] = model.transform(part)
    return features


def chance_of_fewer(n_pool: int, share: float, n_drawn: int, k: int = FEW_LABELS) -> float:
    """Probability that a class with this share gets fewer than ``k`` of ``n_drawn`` images drawn from ``n_pool``."""
    from scipy.stats import hypergeom

    return float(hypergeom.cdf(k - 1, n_pool, round(n_pool * share), n_drawn))


def preview(
    ids: np.ndarray,
    duplicate_of: IntArray,
    *,
    fraction: float | None = None,
    count: int | None = None,
    seed: int = 0,
    reference_labels: IntArray | None = None,
    class_names: Sequence[str] = (),
    rarest_share: float | None = None,
    earlier: np.ndarray | None = None,
) -> Preview:
    """What a uniform drawing would hold, without drawing it.

    With ``reference_labels`` (N,) the counts are the true ones. Otherwise the figures are for a class of
    ``rarest_share`` (default: half of an equal share, or 1% when no classes are known).
    """
    leaders = first_copies(duplicate_of)
    n = draw_count(len(leaders), fraction=fraction, count=count)
    chosen = draw_uniform(ids[leaders], n, seed=seed, earlier=earlier)
    per_class = rarest = None
    if reference_labels is not None and (reference_labels >= 0).any():
        labels = reference_labels[leaders]
        inside = np.isin(ids[leaders], chosen) & (labels >= 0)
        counts = np.bincount(labels[inside], minlength=len(class_names))
        totals = np.bincount(labels[labels >= 0], minlength=len(class_names))
        per_class = {name: int(counts[number]) for number, name in enumerate(class_names)}
        present = np.flatnonzero(totals)
        number = int(present[np.argmin(totals[present])])
        rarest, rarest_share = class_names[number], float(totals[number] / len(leaders))
    elif rarest_share is None:
        rarest_share = 0.5 / len(class_names) if class_names else 0.01
    check_range("rarest_share", rarest_share, low=0, high=1)
    return Preview(
        n_images=len(chosen),
        n_groups=len(leaders),
        per_class=per_class,
        rarest_class=rarest,
        rarest_share=rarest_share,
        rarest_expected=len(chosen) * rarest_share,
        chance_of_few=chance_of_fewer(len(leaders), rarest_share, min(len(chosen), len(leaders))),
    )


def together(drawings: Sequence[Drawing]) -> tuple[np.ndarray, IntArray]:
    """The images of these drawings, each once and in order, and how many annotators each needs at most."""
    ids = np.concatenate([np.empty(0, np.uint64), *[drawing.ids for drawing in drawings]])
    needs = np.concatenate([np.empty(0, np.int64), *[drawing.needs for drawing in drawings]])
    _, first, which = np.unique(ids, return_index=True, return_inverse=True)
    most = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(most, which, needs)
    first_places = np.sort(first)
    return ids[first_places], most[which[first_places]]


class Drawings:
    """The drawings of a project, recorded in its label store."""

    def __init__(self, store: LabelStore) -> None:
        self.store = store

    def draw(
        self,
        *,
        pool_hash: str,
        ids: np.ndarray,
        duplicate_of: IntArray,
        fraction: float | None = None,
        count: int | None = None,
        seed: int = 0,
        method: str = "uniform",
        overlap: float = 0.0,
        final_test: float | None = None,
        annotator: str,
        features: FloatArray | None = None,
        confidence: FloatArray | None = None,
        order: FloatArray | None = None,
    ) -> Drawing:
        """Draw and record. ``ids`` (N,) and ``duplicate_of`` (N,) are the pool's; so are ``features``, ``confidence``
        and ``order``.

        ``uniform`` with the seed of an earlier uniform drawing extends it. The other methods draw ``count`` (or a
        fraction of the pool) among the pictures that no drawing holds yet. ``overlap`` is the share of the images
        that two annotators label. ``final_test`` is the share of the newly drawn whose labels are kept for the final
        test, of a uniform drawing only; where None, as in the drawing that it extends.
        """
        check_annotator(annotator)
        rights.check("draw", self.store.project)
        check_range("overlap", overlap, low=0, high=1)
        check_range("final_test", final_test or 0.0, low=0, high=LARGEST_FINAL_TEST)
        if final_test and method != "uniform":
            raise InvalidSettingError("Only uniformly drawn labels can be kept for a final test. Draw uniformly.")
        check_range("seed", seed, low=0, high=2**63 - 1)
        if method != "uniform":
            DRAW_METHODS[method]
        leaders = first_copies(duplicate_of)
        n = draw_count(len(leaders), fraction=fraction, count=count)
        ids = np.asarray(ids, dtype=np.uint64)

        def work(connection: Connection) -> Drawing:
            head = schema.lock_project(connection, self.store.project)
            before = self.read(connection)
            extends, share = None, final_test or 0.0
            if method == "uniform":
                same = [past for past in before if past.uniform and past.seed == seed]
                extended = max(same, key=len) if same else None
                chosen = draw_uniform(ids[leaders], n, seed=seed, earlier=extended.ids if extended else None)
                if extended and len(chosen) == len(extended) and overlap == extended.overlap:
                    _check_final(extended, share)
                    return extended
                share = extended.final_test if extended and final_test is None else share
                extends = extended.drawing_id if extended else None
            else:
                free = self._free(leaders, ids, before)
                if not len(free):
                    raise InvalidSettingError("Every image of the pool has already been drawn.")
                given = {"features": features, "confidence": confidence, "order": order}
                needed: dict[str, np.ndarray] = {}
                for name in DRAW_METHODS.facts(method)["needs"]:
                    values = given[name]
                    if values is None:
                        raise MissingStepError(f"The drawing method '{method}' needs {name}. Make them first.")
                    if len(values) != len(ids):
                        raise InvalidDataError(f"{name} has {len(values)} values for {len(ids)} images.")
                    needed[name] = np.asarray(values)[free]
                chosen = DRAW_METHODS[method](ids[free], min(n, len(free)), seed=seed, **needed)
            needs = 1 + _overlap_mask(chosen, seed, overlap).astype(np.int64)
            drawing = Drawing(
                drawing_id=max((past.drawing_id for past in before), default=0) + 1,
                method=method,
                uniform=method == "uniform",
                seed=seed,
                ids=chosen,
                needs=needs,
                n_groups=len(leaders),
                overlap=overlap,
                pool_hash=pool_hash,
                extends=extends,
                saved_ms=self.store.now_ms,
                seq=head.seq + 1,
                final_test=share,
                final_mask=_final_mask(chosen, seed, share, before),
            )
            self._write(connection, drawing, annotator)
            return drawing

        drawing = self.store.database.write(work)
        rights.record(
            "drew", self.store.project, f"{len(drawing.ids):,} images, {method}, drawing {drawing.drawing_id}"
        )
        return drawing

    def _free(self, leaders: IntArray, ids: np.ndarray, before: Sequence[Drawing]) -> IntArray:
        taken = np.concatenate([past.ids for past in before]) if before else np.empty(0, np.uint64)
        return leaders[~np.isin(ids[leaders], taken)]

    def _write(self, connection: Connection, drawing: Drawing, annotator: str) -> None:
        project = self.store.project
        of_drawing = {"project": project, "drawing_id": drawing.drawing_id}
        numbers = drawing.ids.view(np.int64).tolist()
        columns = zip(numbers, drawing.needs.tolist(), drawing.final_mask.tolist(), strict=True)
        rows = [
            {**of_drawing, "position": position, "image_id": image, "needs": n, "is_final": is_final}
            for position, (image, n, is_final) in enumerate(columns)
        ]
        connection.execute(schema.drawn.insert(), rows)
        row = {name: getattr(drawing, name) for name in _PLAIN}
        row |= {"project": project, "n_images": len(drawing), "annotator": annotator}
        connection.execute(schema.drawings.insert().values(row))
        chain.link_drawing(connection, project, drawing.drawing_id)

    def final_in(self, connection: Connection) -> np.ndarray:
        """(K,) uint64, ascending: the images whose labels are kept for the final test."""
        table = schema.drawn
        query = sa.select(table.c.image_id).where(table.c.project == self.store.project, table.c.is_final)
        return np.unique(unsigned_array(connection.execute(query.distinct()).scalars().all()))

    def all(self) -> list[Drawing]:
        """Every drawing, oldest first."""
        with self.store.database.read() as connection:
            return self.read(connection)

    def latest(self) -> Drawing | None:
        with self.store.database.read() as connection:
            return self.latest_in(connection)

    def latest_in(self, connection: Connection) -> Drawing | None:
        table = schema.drawings
        newest = sa.select(sa.func.max(table.c.drawing_id)).where(table.c.project == self.store.project)
        number = connection.execute(newest).scalar()
        return self.read(connection, number)[0] if number else None

    def get(self, drawing_id: int) -> Drawing:
        with self.store.database.read() as connection:
            drawings = self.read(connection, drawing_id)
        if not drawings:
            raise UnknownNameError(f"There is no drawing {drawing_id} in this project.", code="NO_DRAWING")
        return drawings[0]

    def open_in(self, connection: Connection) -> list[int]:
        """The numbers of the drawings to label: of each seed the latest uniform one, then all others, oldest first.

        A drawing that was begun is not given up because another one was made; only the same seed replaces it.
        """
        table = schema.drawings
        query = sa.select(table.c.drawing_id, table.c.uniform, table.c.seed).where(
            table.c.project == self.store.project
        )
        rows = connection.execute(query.order_by(table.c.drawing_id)).fetchall()
        uniform = {seed: number for number, is_uniform, seed in rows if is_uniform}
        return sorted(uniform.values()) + [number for number, is_uniform, _ in rows if not is_uniform]

    def read_open(self, connection: Connection) -> list[Drawing]:
        """The open drawings inside a transaction, in the order they are labeled."""
        return [drawing for number in self.open_in(connection) for drawing in self.read(connection, number)]

    def read(self, connection: Connection, drawing_id: int | None = None) -> list[Drawing]:
        """Every drawing (or the one of this number) inside a transaction, oldest first."""
        table, drawn = schema.drawings, schema.drawn
        query = sa.select(table).where(table.c.project == self.store.project).order_by(table.c.drawing_id)
        if drawing_id is not None:
            query = query.where(table.c.drawing_id == drawing_id)
        drawings = []
        for row in connection.execute(query).mappings().all():
            rows = connection.execute(
                sa.select(drawn.c.image_id, drawn.c.needs, drawn.c.is_final)
                .where(drawn.c.project == self.store.project, drawn.c.drawing_id == row["drawing_id"])
                .order_by(drawn.c.position)
            ).fetchall()
            values = {name: row[name] for name in _PLAIN}
            ids, needs, final = ([row[column] for row in rows] for column in range(3))
            drawings.append(
                Drawing(
                    ids=unsigned_array(ids),
                    needs=np.array(needs, dtype=np.int64),
                    final_mask=np.array(final, dtype=bool),
                    **values,
                )
            )
        return drawings


_PLAIN = (
    "drawing_id",
    "method",
    "uniform",
    "seed",
    "n_groups",
    "overlap",
    "pool_hash",
    "extends",
    "saved_ms",
    "seq",
    "final_test",
)


def _overlap_mask(ids: np.ndarray, seed: int, overlap: float) -> BoolArray:
    """Which images two annotators label: by their own hash, so that extending a drawing changes nothing before."""
    return ranks(ids, seed, "overlap") / 2.0**64 < overlap


def _final_mask(ids: np.ndarray, seed: int, share: float, before: Sequence[Drawing]) -> BoolArray:
    """(M,) which labels are kept for the final test: those that were before, and a ``share`` of the newly drawn.

    What an earlier uniform drawing held may have been learned from, so it does not become a test.
    """
    uniform = [past for past in before if past.uniform]
    earlier = np.concatenate([np.empty(0, np.uint64), *(past.ids for past in uniform)])
    final = np.concatenate([np.empty(0, np.uint64), *(past.ids[past.final_mask] for past in uniform)])
    new = ids[~np.isin(ids, earlier)]
    chosen = new[np.argsort(ranks(new, seed, "final test"), kind="stable")[: round(share * len(new))]]
    return np.isin(ids, final) | np.isin(ids, chosen)


def _check_final(drawing: Drawing, share: float) -> None:
    if share and not drawing.final_mask.any():
        raise InvalidSettingError(
            f"These {len(drawing):,} images were drawn before, without a final test. Only labels of newly drawn images "
            "can be kept for one: draw more."
        )
