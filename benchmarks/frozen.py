"""Heads on frozen features, a tenth of the labels: accuracy and balanced accuracy on the images without a label.

    .venv/bin/python benchmarks/frozen.py --data DIR --work DIR heads [--pools P,Q] [--draws 3] [--small] [--keep]
    .venv/bin/python benchmarks/frozen.py --data DIR --work DIR confirm [--pools P,Q] [--draws 3] [--small] [--keep]
    .venv/bin/python benchmarks/frozen.py --data DIR --work DIR coverage [--draws 2000] [--small] [--keep]
    .venv/bin/python benchmarks/frozen.py --data DIR --work DIR duplicates [--pools P,Q] [--small] [--keep]

DIR of --data holds clothing_photos.zip, cifar10_12k.npz and traffic_signs_6k.npz; features are made once (the packaged
encoder; the images, mirrored ones, one strong view) and kept in --work. Pools that may tune: ``cifar_first`` (the
first 6,000 images of the file) and ``fashion`` (those of the demo pool among Fashion-MNIST's first 30,000). All others
(``photos``, ``cifar``, ``cifar_rest``, ``signs``, ``demo``) only confirm. The last line is JSON.
"""

from __future__ import annotations

import io
import os
import time
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import benchmark_parser, finish
from PIL import Image

from semiprune_core.embeddings.encoders import PACKAGED, encode, open_encoder
from semiprune_core.features import EmbedSettings
from semiprune_core.features.embed import embed
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.allowing import allow_named, place_of
from semiprune_core.importing.sources import parse_source
from semiprune_core.learning import augment
from semiprune_core.learning.frozen import FrozenSettings, Views, fit_pool, near_duplicates, prepare_pool
from semiprune_core.learning.frozen.coverage import simulate_coverage
from semiprune_core.learning.frozen.duplicates import centred_rows
from semiprune_core.learning.frozen.prepare import Scaling, main_directions
from semiprune_core.paths import ROOTS_VARIABLE, PathGuard
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.records import UNLABELED
from semiprune_core.training.heads import prepare_features

DEMO = Path(__file__).parents[1] / "assets" / "demo_pool.npz"
TUNING = ("cifar_first", "fashion")
POOLS = (*TUNING, "photos", "cifar", "cifar_rest", "signs", "demo")
SOURCES = {
    "photos": "clothing_photos.zip",
    "cifar": "cifar10_12k.npz",
    "signs": "traffic_signs_6k.npz",
    "demo": "demo",
}
SIDES = {"photos": 224}
SIDE = 160
COPIES = ("resized", "recompressed", "cropped", "mirrored")
HEADS: dict[str, dict[str, Any]] = {
    "logistic, features alone": {"head": "logistic", "smooth": False},
    "logistic": {"head": "logistic"},
    "propagation": {"head": "propagation"},
    "combined": {},
    "ssl fixmatch": {"head": "ssl", "n_folds": 3},
    "ssl freematch": {"head": "ssl", "n_folds": 3, "algorithm": "freematch"},
}


def open_images(pool: str, data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, s, s, C) uint8 and true classes (N,)."""
    if pool == "photos":
        return _photos(data / "clothing_photos.zip", SIDES["photos"])
    if pool in ("fashion", "demo"):
        with np.load(DEMO) as file:
            numbers = np.array([int(Path(path).stem) for path in file["paths"]])
            kept = (file["split"] == "pool") & ((numbers < 30_000) | (pool == "demo"))
            return file["images"][kept][..., None], file["labels"][kept].astype(np.int64)
    with np.load(data / ("traffic_signs_6k.npz" if pool == "signs" else "cifar10_12k.npz")) as file:
        kept = np.flatnonzero(file["split"] == "train")
        kept = {"cifar_first": kept[:6000], "cifar_rest": kept[6000:]}.get(pool, kept)
        return file["images"][kept], file["labels"][kept].astype(np.int64)


def _photos(path: Path, side: int) -> tuple[np.ndarray, np.ndarray]:
    images, classes = [], []
    with zipfile.ZipFile(path) as archive:
        for name in sorted(name for name in archive.namelist() if name.startswith("train/") and name.endswith(".jpg")):
            with Image.open(io.BytesIO(archive.read(name))) as picture:
                picture.draft("RGB", (2 * side, 2 * side))
                images.append(np.asarray(picture.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)))
            classes.append(name.split("/")[1])
    return np.stack(images), np.unique(classes, return_inverse=True)[1]


def strong_views(images: np.ndarray, seed: int) -> np.ndarray:
    """FixMatch's strong augmentation, once for every image."""
    generator = torch.Generator().manual_seed(seed)
    done = []
    for start in range(0, len(images), 100):
        part = torch.from_numpy(np.array(images[start : start + 100])).permute(0, 3, 1, 2)
        side = part.shape[-1]
        draw = augment.draw_strong(
            len(part), pad=round(side / 8), flip=True, n_ops=2, strength=1.0, generator=generator
        )
        grey = torch.full((part.shape[1],), 127.0)
        done.append(augment.strong(part, draw, cutout=0.5, fill=grey).clamp(0, 255).byte().permute(0, 2, 3, 1).numpy())
    return np.concatenate(done)


def features(pool: str, view: str, images: np.ndarray, work: Path) -> np.ndarray:
    """(N, D) float32 of one view, from ``work`` where it was made before."""
    kept = work / f"{pool}-{view}.npy"
    if not kept.is_file():
        seen = {
            "plain": lambda: images,
            "mirrored": lambda: images[:, :, ::-1],
            "strong": lambda: strong_views(images, 0),
        }
        encoder = open_encoder(PACKAGED, guard=PathGuard((work,)))
        np.save(kept, encode(encoder, seen[view](), side=SIDES.get(pool, SIDE), report=lambda done, n: None))
    return np.load(kept, allow_pickle=False).astype(np.float32)


def heads(pools: list[str], n_draws: int, data: Path, work: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pool in pools:
        images, truth = open_images(pool, data)
        flips = pool != "signs"  # a mirrored sign is another sign
        plain, strong = (features(pool, view, images, work) for view in ("plain", "strong"))
        weak = features(pool, "mirrored", images, work)[None] if flips else None
        prepared = {}
        for smooth in (True, False):
            began = time.perf_counter()
            settings = FrozenSettings(smooth=smooth)
            prepared[smooth] = prepare_pool(plain, settings, views=Views(weak=weak, strong=strong[None]))
            seconds = time.perf_counter() - began
        groups = near_duplicates(plain)
        found[pool] = {"prepare_seconds": round(seconds, 1), "n_groups": len(np.unique(groups))}
        for name, changes in HEADS.items():
            settings = FrozenSettings(**changes)
            runs = [
                _run(prepared[settings.smooth], truth, groups, settings, seed=1000 + draw) for draw in range(n_draws)
            ]
            found[pool][name] = {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
            print(pool, name, found[pool][name], flush=True)
    return found


def _run(
    prepared: Any, truth: np.ndarray, groups: np.ndarray, settings: FrozenSettings, *, seed: int
) -> dict[str, float]:
    labels = np.full(len(truth), UNLABELED)
    drawn = np.random.default_rng(seed).permutation(len(truth))[: round(0.1 * len(truth))]
    labels[drawn] = truth[drawn]
    began = time.perf_counter()
    result = fit_pool(prepared, labels, n_classes=int(truth.max()) + 1, groups=groups, settings=settings)
    seconds = time.perf_counter() - began
    rest = labels == UNLABELED
    right = result.labels == truth
    assert result.quality is not None
    return {
        "accuracy": float(right[rest].mean()),
        "balanced": float(np.mean([right[rest & (truth == label)].mean() for label in np.unique(truth)])),
        "estimate": result.quality.accuracy.value,
        "low": result.quality.accuracy.low,
        "high": result.quality.accuracy.high,
        "ece": result.quality.ece,
        "seconds": seconds,
    }


def confirm(pools: list[str], n_draws: int, data: Path, work: Path) -> dict[str, Any]:
    """The app's own way: import, features by default, heads; on label draws that nothing was tuned on.

    ``folds that split near-duplicates`` shows how far frames of one film would flatter the estimate.
    """
    os.environ[ROOTS_VARIABLE] = os.pathsep.join(str(place.resolve()) for place in (data, work))
    found: dict[str, Any] = {}
    for pool in pools:
        project = _imported(pool, SOURCES.get(pool, pool), data, work)
        began, used = time.perf_counter(), time.process_time()
        run = embed(project, EmbedSettings(), Collected(), folder=work / f"blocks-{project.name}")
        seconds = {"embed": time.perf_counter() - began, "embed_cpu": time.process_time() - used}
        truth = project.pool().reference_labels
        began = time.perf_counter()
        prepared = prepare_features(run, FrozenSettings())
        seconds["prepare"] = time.perf_counter() - began
        plain = prepare_pool(np.array(run.features()), FrozenSettings(smooth=False))
        apart = np.arange(len(truth))
        found[pool] = {
            "encoder": run.encoder,
            "seconds": {name: round(value, 1) for name, value in seconds.items()},
            "n_near_duplicates": len(truth) - len(np.unique(prepared.groups)),
        }
        for name, ready, groups, changes in (
            ("default", prepared.pool, prepared.groups, {}),
            ("default, folds that split near-duplicates", prepared.pool, apart, {}),
            ("logistic, features alone", plain, prepared.groups, {"head": "logistic", "smooth": False}),
            ("propagation", prepared.pool, prepared.groups, {"head": "propagation"}),
        ):
            settings = FrozenSettings(**changes)
            runs = [_run(ready, truth, groups, settings, seed=1000 + draw) for draw in range(n_draws)]
            found[pool][name] = {
                **{key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]},
                "each": [round(run["accuracy"], 4) for run in runs],
            }
            print(pool, name, found[pool][name], flush=True)
    return found


def _imported(pool: str, source: str, data: Path, work: Path) -> Project:
    """The pool as a project in ``work``, imported once."""
    workspace = Workspace.open(work / "home")
    name = Path(pool).stem.lower()
    if not (work / "home" / name).is_dir():
        spec = parse_source(source if source == "demo" else str(data / source))
        allow_named(workspace, place_of(spec))
        import_source(workspace.create(name), ImportSettings(source=spec.to_json()), Collected())
    return workspace.project(name)


def coverage(pools: list[str], n_draws: int, data: Path, work: Path) -> dict[str, Any]:
    """In 16 main directions with five folds and one penalty, so that thousands of draws are feasible."""
    settings = FrozenSettings(smooth=False, penalties=(1e-3,), n_folds=5)
    found: dict[str, Any] = {}
    for pool in pools:
        images, everything = open_images(pool, data)
        plain = features(pool, "plain", images, work)
        for n_labels, size in ((60, 1500), (150, 1500), (600, 6000)):
            kept = np.random.default_rng(5).permutation(len(everything))[:size]
            truth = everything[kept]
            rows = main_directions(Scaling.of(plain[kept])(plain[kept]), 16)
            prepared = prepare_pool(rows, settings).with_kernel(settings.alpha)
            result = asdict(simulate_coverage(prepared, truth, n_labels, range(n_draws), settings))
            found[f"{pool} {n_labels}"] = result
            print(pool, n_labels, result, flush=True)
    return found


def duplicates(pools: list[str], _: int, data: Path, work: Path) -> dict[str, Any]:
    """Share of planted copies at or above a cosine with their original, and of other pairs, by threshold."""
    found: dict[str, Any] = {}
    for pool in pools:
        images, _truth = open_images(pool, data)
        plain = features(pool, "plain", images, work)
        chosen = np.random.default_rng(1).permutation(len(images))[:150]
        planted = np.concatenate([np.stack(_copies(images[place])) for place in chosen])
        encoder = open_encoder(PACKAGED, guard=PathGuard((work,)))
        copies = encode(encoder, planted, side=SIDES.get(pool, SIDE), report=lambda done, n: None)
        rows = centred_rows(np.concatenate([plain, copies.astype(np.float32)]))
        originals, others = rows[: len(plain)], rows[len(plain) :].reshape(len(chosen), len(COPIES), -1)
        likeness = np.einsum("pd,pkd->pk", originals[chosen], others)
        pairs = np.sort((originals[chosen] @ originals.T).ravel())[: -len(chosen)]
        for threshold in (0.8, 0.85, 0.9, 0.95):
            recall = dict(zip(COPIES, (likeness >= threshold).mean(0).round(4).tolist(), strict=True))
            found[f"{pool} {threshold}"] = {**recall, "other_pairs": float((pairs >= threshold).mean())}
            print(pool, threshold, found[f"{pool} {threshold}"], flush=True)
    return found


def _copies(image: np.ndarray) -> list[np.ndarray]:
    """The image made smaller and larger again, as a JPEG of quality 60, without its outer 5%, mirrored."""
    side = len(image)
    picture = Image.fromarray(image.squeeze())
    smaller = picture.resize((round(0.7 * side),) * 2, Image.Resampling.BICUBIC)
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=60)
    edge = 0.025 * side
    box = (edge, edge, side - edge, side - edge)
    made = (
        smaller.resize((side, side), Image.Resampling.BICUBIC),
        Image.open(packed).convert(picture.mode),
        picture.transform((side, side), Image.Transform.EXTENT, box, Image.Resampling.BICUBIC),
        picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    )
    return [np.asarray(copy).reshape(image.shape) for copy in made]


PARTS = {"heads": heads, "confirm": confirm, "coverage": coverage, "duplicates": duplicates}


def main() -> None:
    parser = benchmark_parser(__doc__, small="one draw of one tuning pool")
    parser.add_argument("part", choices=tuple(PARTS))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--pools", default="", help="names, separated by commas")
    parser.add_argument("--draws", type=int, default=0)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    usual = {"heads": POOLS, "confirm": tuple(SOURCES)}.get(args.part, TUNING)
    pools = args.pools.split(",") if args.pools else list(usual)
    n_draws = args.draws or (2000 if args.part == "coverage" else 3)
    if args.small:
        pools, n_draws = pools[:1], 1
    measured = PARTS[args.part](pools, n_draws, args.data, args.work)
    finish(args, f"frozen_{args.part}", {"draws": n_draws, **measured}, {})


if __name__ == "__main__":
    main()
