"""Starting values for scoring runs on features: gain over Random of many knobs, and of the starting values themselves.

    .venv/bin/python benchmarks/frozen_defaults.py --data DIR --work DIR tune [--pools P,Q] [--small] [--keep]
    .venv/bin/python benchmarks/frozen_defaults.py --data DIR --work DIR confirm [--pools P,Q] [--small] [--keep]
    .venv/bin/python benchmarks/frozen_defaults.py --data DIR --work DIR classes [--pools P,Q] [--small] [--keep]
    .venv/bin/python benchmarks/frozen_defaults.py --data DIR --work DIR transfer [--seeds 3] [--small] [--keep]

DIR of --data holds clothing_photos.zip, cifar10_12k.npz and traffic_signs_6k.npz. Every pool is imported and embedded
as the app does it, once, into --work. For each seed a tenth of the images is labeled anew, a head on features gives
pseudo-labels, a second one is trained for 40 epochs and scored; coresets are tested by a probe with true labels.

``tune`` tries knobs on tuning images alone: CIFAR-10's first 6,000 (the last 1,200 of them test), the demo pool's
images among Fashion-MNIST's first 30,000 (600 test), and pools made of these: three classes, a long tail, 1,500 images,
3% labels, 50 classes (k-means within the classes), both together. ``confirm`` runs the starting values on other pools,
with their own test images, also without a least share of each class and with balanced classes; tuning pools may be
named, to see them beside it. ``classes`` tries least shares of each class on the tuning pools, and on pools made of
them whose classes are uneven in the pool and in the tests alike. ``transfer`` trains nets from scratch on coresets of
``fashion`` at 80% beside the probes, with knobs that probes find good and bad. Rows are
written as they come, to ``frozen_defaults_<part>.csv`` in --work, with --keep in results/; a repeated run goes on. The
last line is JSON: per pool and ratio the mean gain in points and half its 95% interval.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from common import benchmark_parser, output_folder
from scipy import stats

from semiprune_core.features import EmbedSettings
from semiprune_core.features.embed import embed
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.allowing import allow_named, place_of
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.learning.frozen import FrozenPool, FrozenSettings, fit_pool, near_duplicates, prepare_pool
from semiprune_core.learning.frozen.prepare import Scaling
from semiprune_core.learning.head_run import HeadSettings, train_head
from semiprune_core.learning.presets import supervised_preset
from semiprune_core.learning.supervised_run import MemoryRecorder, train_supervised
from semiprune_core.methods import select_coreset
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Workspace
from semiprune_core.records import UNLABELED, Evidence
from semiprune_core.scores import ScoreSettings, compute_scores
from semiprune_core.selection import Basis, default_knobs
from semiprune_core.trials.kinds import DIRECTIONS, PENALTY
from semiprune_core.trials.probe import fit_probe, probe_rows

DEMO = Path(__file__).parents[1] / "assets" / "demo_pool.npz"
SOURCES = {
    "photos": ("zip", "clothing_photos.zip"),
    "cifar": ("npz", "cifar10_12k.npz"),
    "signs": ("npz", "traffic_signs_6k.npz"),
    "demo": ("demo", ""),
}
CONFIRM = ("photos", "cifar", "cifar_rest", "signs")
RATIOS = (0.5, 0.7, 0.8, 0.9)
CLASS_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7)
FIELDS = ("pool", "seed", "pruning_ratio", "method", "knob", "gain", "random", "test_accuracy", "wrong", "doubt")
BALANCED, FREE = "balanced", "free"
"""Behind a method's name: with its classes balanced, or with no class kept from disappearing."""
N_RANDOM = 3
"""Draws of Random that a gain is taken from."""


@dataclass(frozen=True, eq=False)
class FeaturePool:
    """Features (N, D) with true labels (N,), the same of test images, and the share that is labeled."""

    name: str
    features: np.ndarray
    labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray
    share: float = 0.1

    @cached_property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1

    @cached_property
    def probed(self) -> tuple[np.ndarray, np.ndarray]:
        return probe_rows(self.features, self.test_features, DIRECTIONS)

    @cached_property
    def rows(self) -> np.ndarray:
        return Scaling.of(self.features)(self.features)

    @cached_property
    def prepared(self) -> FrozenPool:
        return prepare_pool(self.features, FrozenSettings())

    @cached_property
    def groups(self) -> np.ndarray:
        return near_duplicates(self.features)

    def tested(self, idx: np.ndarray) -> float:
        rows, tests = self.probed
        idx = np.sort(idx)
        head = fit_probe(rows[idx], self.labels[idx], self.n_classes, penalty=PENALTY)
        return float((head.logits(tests).argmax(1) == self.test_labels).mean())

    def part(self, name: str, kept: np.ndarray, **changes: Any) -> FeaturePool:
        return dataclasses.replace(self, name=name, features=self.features[kept], labels=self.labels[kept], **changes)


# --- pools ---------------------------------------------------------------------------------------------------------


def embedded(project_name: str, data: Path, work: Path) -> dict[str, np.ndarray]:
    """Features, labels, paths and test features of a source, imported and embedded once."""
    kept = work / f"{project_name}.npz"
    if not kept.is_file():
        workspace = Workspace(work / "projects")
        project = workspace.create(project_name)
        source, name = SOURCES[project_name]
        spec = SourceSpec(source, str(data / name) if name else "")
        allow_named(workspace, place_of(spec))
        import_source(project, ImportSettings(source=spec.to_json()), Collected())
        project = workspace.project(project.name)
        run = embed(project, EmbedSettings(), Collected(), folder=work / "blocks")
        pool, tests = project.pool(), project.test_set()
        np.savez(
            kept,
            features=run.features(),
            labels=pool.reference_labels,
            paths=np.array(pool.column("path").to_pylist()),
            test_features=run.test_features(),
            test_labels=tests.reference_labels,
        )
    with np.load(kept, allow_pickle=False) as file:
        return dict(file)


def confirming(name: str, data: Path, work: Path) -> FeaturePool:
    arrays = embedded("cifar" if name == "cifar_rest" else name, data, work)
    kept = np.arange(len(arrays["labels"]))[6000 if name == "cifar_rest" else 0 :]
    return FeaturePool(
        name, arrays["features"][kept], arrays["labels"][kept], arrays["test_features"], arrays["test_labels"]
    )


def tuning(data: Path, work: Path) -> Iterator[FeaturePool]:
    """Pools of tuning images alone."""
    arrays = embedded("cifar", data, work)
    features, labels = arrays["features"][:6000], arrays["labels"][:6000]
    cifar = FeaturePool("cifar_first", features[:4800], labels[:4800], features[4800:], labels[4800:])
    yield cifar
    arrays = embedded("demo", data, work)
    among = np.flatnonzero(np.array([int(Path(str(path)).stem) for path in arrays["paths"]]) < 30_000)
    order = among[np.random.default_rng(0).permutation(len(among))]
    features, labels = arrays["features"][order], arrays["labels"][order]
    fashion = FeaturePool("fashion", features[:2400], labels[:2400], features[2400:], labels[2400:])
    yield fashion
    yield three_classes(cifar)
    yield long_tail(cifar)
    yield dataclasses.replace(fashion, name="fashion_3pc", share=0.03)
    yield cifar.part("cifar_1500", np.random.default_rng(2).permutation(len(cifar.labels))[:1500])
    yield fifty_classes(cifar)
    yield FeaturePool(
        "both_20classes",
        np.vstack([cifar.features, fashion.features]),
        np.concatenate([cifar.labels, fashion.labels + 10]),
        np.vstack([cifar.test_features, fashion.test_features]),
        np.concatenate([cifar.test_labels, fashion.test_labels + 10]),
    )


def uneven_pools(pools: list[FeaturePool]) -> Iterator[FeaturePool]:
    """Pools of at most 1,500 images with class sizes that fall to an eighth, in an order by chance."""
    known = {pool.name: pool for pool in pools}
    for number in range(2):
        yield uneven(known["cifar_first"], f"cifar_uneven{number}", number)
        yield uneven(known["fashion"], f"fashion_uneven{number}", number)
    yield uneven(known["both_20classes"], "both_uneven", 5, most=2500)


def uneven(pool: FeaturePool, name: str, seed: int, *, most: int = 1500) -> FeaturePool:
    rng = np.random.default_rng(seed)
    shares = 8.0 ** (-rng.permutation(pool.n_classes) / (pool.n_classes - 1))

    def thinned(labels: np.ndarray) -> np.ndarray:
        members = [rng.permutation(np.flatnonzero(labels == label)) for label in range(pool.n_classes)]
        return np.sort(np.concatenate([mine[: int(len(mine) * share)] for mine, share in zip(members, shares)]))

    kept = thinned(pool.labels)
    kept = np.sort(rng.permutation(kept)[:most]) if len(kept) > most else kept
    tests = thinned(pool.test_labels)
    return pool.part(name, kept, test_features=pool.test_features[tests], test_labels=pool.test_labels[tests])


def three_classes(pool: FeaturePool) -> FeaturePool:
    chosen = np.array([0, 3, 8])
    kept, tests = np.isin(pool.labels, chosen), np.isin(pool.test_labels, chosen)
    return FeaturePool(
        "cifar_3classes",
        pool.features[kept],
        np.searchsorted(chosen, pool.labels[kept]),
        pool.test_features[tests],
        np.searchsorted(chosen, pool.test_labels[tests]),
    )


def long_tail(pool: FeaturePool) -> FeaturePool:
    """Class sizes falling to an eighth."""
    rng, kept = np.random.default_rng(1), []
    for label in range(pool.n_classes):
        mine = np.flatnonzero(pool.labels == label)
        kept.append(rng.permutation(mine)[: max(20, int(len(mine) * 8 ** (-label / 9)))])
    return pool.part("cifar_longtail", np.sort(np.concatenate(kept)))


def fifty_classes(pool: FeaturePool) -> FeaturePool:
    """Each class cut into five by k-means on its features."""
    from sklearn.cluster import KMeans

    rows, tests = probe_rows(pool.features, pool.test_features, 64)
    labels, truth = np.zeros_like(pool.labels), np.zeros_like(pool.test_labels)
    for label in range(pool.n_classes):
        mine, theirs = pool.labels == label, pool.test_labels == label
        parts = KMeans(5, n_init=2, random_state=0).fit(rows[mine])
        labels[mine], truth[theirs] = 5 * label + parts.labels_, 5 * label + parts.predict(tests[theirs])
    return dataclasses.replace(pool, name="cifar_50classes", labels=labels, test_labels=truth)


# --- trials --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scored:
    """A pool that was labeled, pseudo-labeled and scored with one seed."""

    evidence: Evidence
    basis: Basis
    wrong: float


def scored(pool: FeaturePool, seed: int) -> Scored:
    n = len(pool.labels)
    given = np.full(n, UNLABELED)
    drawn = np.random.default_rng([seed, 0x1AB]).permutation(n)[: round(pool.share * n)]
    given[drawn] = pool.labels[drawn]
    fitted = fit_pool(pool.prepared, given, n_classes=pool.n_classes, groups=pool.groups, seed=seed)
    pseudo = np.where(given >= 0, given, fitted.labels)
    recorder, head = MemoryRecorder(), HeadSettings()
    train_head(
        pool.rows, pseudo, n_classes=pool.n_classes, settings=head, seed=seed, progress=Collected(), record=recorder
    )
    settings = ScoreSettings(dual_epochs=head.epochs)
    table = compute_scores(recorder.trajectory(), settings=settings, names=["aum", "dual", "mean_prob"])
    basis = Basis.learned(table["aum"], head.epochs).on_features(table["mean_prob"], table["dual"])
    evidence = table.evidence(labels=pseudo, human_mask=given >= 0)
    return Scored(evidence, basis, float((pseudo != pool.labels)[given < 0].mean()))


def c_d_at(basis: Basis, ratio: float, share: float) -> float:
    """c_D with ``share`` of the images below the mean of the Beta distribution."""
    mean = float(np.interp(share, np.linspace(0, 1, len(basis.prob)), basis.prob))
    power = 1 - (1 - mean) / max(1 - (basis.mu_d or 0), 1e-9)
    return 12.0 if power <= ratio**12 else max(1.0, float(np.log(power) / np.log(ratio)))


def tried(basis: Basis, ratio: float) -> list[tuple[str, str, dict[str, float]]]:
    step = 0.05 if ratio >= 0.7 else 0.1
    cutoffs = [round(step * k, 2) for k in range(int(min(ratio, 0.65) / step + 1e-9) + 1)]
    found = [("semi_aum_cutoff", f"cutoff={cutoff:g}", {"cutoff": cutoff}) for cutoff in cutoffs]
    return found + [("semi_dual_beta", f"share={s:g}", {"c_d": c_d_at(basis, ratio, s)}) for s in SHARES]


def started(basis: Basis, ratio: float) -> list[tuple[str, str, dict[str, float]]]:
    """The starting values, as they are, without the part of its share that each class keeps, with balanced classes."""
    found: list[tuple[str, str, dict[str, float]]] = []
    for method in ("semi_aum_cutoff", "semi_dual_beta"):
        usual = default_knobs(method, ratio, basis)
        name = ",".join(f"{name}={value:g}" for name, value in usual.selector.items())
        found += [
            (method, name, {**usual.selector, "class_share": usual.class_share}),
            (f"{method} {FREE}", name, usual.selector),
            (f"{method} {BALANCED}", name, {**usual.selector, "class_balanced": True}),
        ]
    return found


def shared(basis: Basis, ratio: float) -> list[tuple[str, str, dict[str, float]]]:
    """The starting values with several least shares of each class, and with balanced classes."""
    found: list[tuple[str, str, dict[str, float]]] = []
    for method in ("semi_aum_cutoff", "semi_dual_beta"):
        knobs = default_knobs(method, ratio, basis).selector
        found += [(method, f"class_share={share:g}", {**knobs, "class_share": share}) for share in CLASS_SHARES]
        found.append((method, BALANCED, {**knobs, "class_balanced": True}))
    return found


TRIED = {"tune": tried, "confirm": started, "classes": shared}


def trials(pool: FeaturePool, seed: int, part: str) -> Iterator[tuple[Any, ...]]:
    """The rows of one pool and seed."""
    state = scored(pool, seed)
    for ratio in RATIOS:
        draws = [
            pool.tested(select_coreset(state.evidence, "random", pruning_ratio=ratio, seed=100 * seed + k).indices)
            for k in range(N_RANDOM)
        ]
        chance = float(np.mean(draws))
        facts = (round(state.wrong, 4), round(state.basis.doubt, 4))
        for method, name, knobs in TRIED[part](state.basis, ratio):
            chosen = select_coreset(state.evidence, method.partition(" ")[0], pruning_ratio=ratio, seed=seed, **knobs)
            accuracy = pool.tested(chosen.indices)
            gain = round(100 * (accuracy - chance), 3)
            yield (pool.name, seed, ratio, method, name, gain, round(chance, 4), round(accuracy, 4), *facts)


TRANSFER: list[tuple[str, str, dict[str, float]]] = [
    ("random", "", {}),
    *(("semi_aum_cutoff", f"cutoff={cutoff:g}", {"cutoff": cutoff}) for cutoff in (0.0, 0.2, 0.4)),
    *(("semi_dual_beta", f"c_d={c_d:g}", {"c_d": c_d}) for c_d in (1.0, 2.0, 6.0)),
]
TRANSFER_FIELDS = ("pool", "seed", "pruning_ratio", "method", "knob", "probe", "scratch")


def transfer(pool: FeaturePool, images: np.ndarray, tests: np.ndarray, seed: int) -> Iterator[tuple[Any, ...]]:
    """Probe and net from scratch on the same coresets."""
    state, ratio = scored(pool, seed), 0.8
    for method, name, knobs in TRANSFER:
        idx = np.sort(select_coreset(state.evidence, method, pruning_ratio=ratio, seed=seed, **knobs).indices)
        result = train_supervised(
            images[idx],
            pool.labels[idx],
            n_classes=pool.n_classes,
            settings=supervised_preset("quick").for_coreset(ratio),
            seed=seed,
            progress=Collected(),
            eval_images=tests,
            eval_labels=pool.test_labels,
        )
        assert result.accuracy is not None
        yield (pool.name, seed, ratio, method, name, round(pool.tested(idx), 4), round(result.accuracy.value, 4))


def run_transfer(args: Any) -> None:
    pool = next(pool for pool in tuning(args.data, args.work) if pool.name == "fashion")
    with np.load(DEMO) as file:
        numbers = np.array([int(Path(path).stem) for path in file["paths"]])
        among = np.flatnonzero((file["split"] == "pool") & (numbers < 30_000))
        order = among[np.random.default_rng(0).permutation(len(among))]
        images, labels = file["images"][order][..., None], file["labels"][order]
    assert (labels[: len(pool.labels)] == pool.labels).all()
    out = output_folder(args, args.work) / "frozen_defaults_transfer.csv"
    done = {row["seed"] for row in _read(out)}
    n = len(pool.labels)
    for seed in range(1 if args.small else min(args.seeds, 3)):
        if str(seed) not in done:
            for row in transfer(pool, images[:n], images[n:], seed):
                print(*row, flush=True)
                _append(out, [row], TRANSFER_FIELDS)
    print(json.dumps({"rows": len(_read(out))}))


def main() -> None:
    parser = benchmark_parser(__doc__, small="one seed, two pools")
    parser.add_argument("part", choices=(*TRIED, "transfer"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--pools", default="", help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.part == "transfer":
        run_transfer(args)
        return
    if args.part != "confirm":
        pools = list(tuning(args.data, args.work))
        pools += uneven_pools(pools) if args.part == "classes" else []
        pools = [pool for pool in pools if not args.pools or pool.name in args.pools.split(",")]
    else:
        pools = [confirming(name, args.data, args.work) for name in args.pools.split(",") if name in CONFIRM]
        pools += [pool for pool in tuning(args.data, args.work) if pool.name in args.pools.split(",")]
        pools = pools or [confirming(name, args.data, args.work) for name in CONFIRM]
    pools, seeds = (pools[:2], 1) if args.small else (pools, args.seeds)
    out = output_folder(args, args.work) / f"frozen_defaults_{args.part}.csv"
    done = {(row["pool"], row["seed"]) for row in _read(out)}
    for seed in range(seeds):
        for pool in pools:
            if (pool.name, str(seed)) not in done:
                began = time.perf_counter()
                _append(out, list(trials(pool, seed, args.part)))
                print(pool.name, seed, f"{time.perf_counter() - began:.1f} s", flush=True)
    print(json.dumps(gains(_read(out))))


def gains(rows: list[dict[str, str]]) -> dict[str, Any]:
    """Per pool, ratio, method (and knob, where several were tried) the mean gain and half its Student interval."""
    fixed = {(row["pool"], row["pruning_ratio"], row["method"], row["seed"]) for row in rows}
    by_cell: dict[str, list[float]] = {}
    for row in rows:
        knob = "" if len(fixed) == len(rows) else f" {row['knob']}"
        by_cell.setdefault(f"{row['pool']} {row['pruning_ratio']} {row['method']}{knob}", []).append(float(row["gain"]))
    return {name: [round(float(np.mean(values)), 2), _half(values)] for name, values in by_cell.items()}


def _half(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    n = len(values)
    return round(float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)), 2)


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _append(path: Path, rows: list[tuple[Any, ...]], fields: tuple[str, ...] = FIELDS) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(fields)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
