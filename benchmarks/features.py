"""Files to features against the usual loop, EfficientNet-Lite0 at its own 224 pixels.

    .venv/bin/python benchmarks/features.py [--photos FOLDER_OR_ZIP] [--small] [--keep]

The usual loop decodes and resizes with Pillow in two loader workers and runs the net eagerly in fp32. Ours is the
whole features job on the imported pool: opening the net, decoding the originals in limited processes, computing,
writing the artifact. Both look at each image once (the job's mirrored view is left out) and use the same cores in
turn. CPU seconds of all processes are counted beside wall seconds: on a busy machine they say more. Without
``--photos`` the images are pieces of the two photographs that scikit-learn brings along. Memory is the peak resident
size of the process that computes (its decoders are separate), in processes of their own, at a quarter of the images
and at all of them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import ROOT, benchmark_parser, finish, rounds, spread
from PIL import Image
from sklearn.datasets import load_sample_images
from torch.utils.data import DataLoader, Dataset

from semiprune_core.embeddings.encoders import open_encoder, own_side
from semiprune_core.embeddings.engines import cosines
from semiprune_core.features import EmbedSettings
from semiprune_core.features.embed import embed
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.allowing import allow_named, place_of
from semiprune_core.importing.sources import parse_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.paths import ROOTS_VARIABLE
from semiprune_core.progress import Collected
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import FeatureRun

ENCODER = "efficientnet_lite0"
SIDE = own_side(ENCODER)
WIDTH, HEIGHT = 400, 533  # as photographs from the web often are
LOADERS, BATCH = 2, 32


def generate(folder: Path, n: int) -> None:
    """Pieces of two photographs, each from another place and at another scale."""
    rng = np.random.default_rng(0)
    photos = [Image.fromarray(photo) for photo in load_sample_images().images]
    folder.mkdir(parents=True)
    for number in range(n):
        photo = photos[number % len(photos)]
        scale = float(rng.uniform(0.4, 0.75))
        size = (WIDTH * scale, HEIGHT * scale)
        left, top = rng.uniform(0, photo.width - size[0]), rng.uniform(0, photo.height - size[1])
        box = (left, top, left + size[0], top + size[1])
        piece = photo.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC, box=box)
        piece.save(folder / f"{number:05d}.jpg", quality=88)


def import_photos(home: Path, name: str, spec: SourceSpec) -> Project:
    project = Workspace.open(home).create(name)
    allow_named(project.workspace, place_of(spec))
    import_source(project, ImportSettings(source=spec.to_json()), Collected())
    return project.workspace.project(project.name)


class Originals(Dataset):
    """The files as a training script reads them: Pillow, the middle square, resized, normalised."""

    def __init__(self, paths: list[str], mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        self.paths = paths
        self.mean, self.std = (torch.tensor(values).view(3, 1, 1) for values in (mean, std))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> torch.Tensor:
        with Image.open(self.paths[number]) as opened:
            picture = opened.convert("RGB")
        side = min(picture.size)
        left, top = (picture.width - side) / 2, (picture.height - side) / 2
        square = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=(left, top, left + side, top + side))
        pixels = torch.from_numpy(np.array(square)).permute(2, 0, 1).float() / 255
        return (pixels - self.mean) / self.std


@torch.inference_mode()
def usual_loop(paths: list[str], workspace: Workspace) -> np.ndarray:
    encoder = open_encoder(ENCODER, guard=workspace.guard)
    loader = DataLoader(Originals(paths, encoder.mean, encoder.std), batch_size=BATCH, num_workers=LOADERS)
    return np.concatenate([encoder.net(batch).numpy() for batch in loader])


def our_features(project: Project) -> FeatureRun:
    """The features job's own work, from nothing."""
    with tempfile.TemporaryDirectory() as work:
        return embed(project, EmbedSettings(encoder=ENCODER, mirrored=False), Collected(), folder=Path(work))


def cpu_seconds() -> float:
    """Of this process and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def forget(project: Project) -> None:
    """As if there were no features yet."""
    for artifact in project.artifacts("features"):
        artifact.folder.rename(project.folder / f".old-{artifact.id}-{time.monotonic_ns()}")


def unpacked(pool: Pool, folder: Path) -> list[str]:
    """The originals as files, for the usual loop."""
    folder.mkdir()
    paths = []
    for position in range(len(pool)):
        path = folder / f"{position:06d}"
        path.write_bytes(pool.original(position))
        paths.append(str(path))
    return paths


def peak_mb(project: Project) -> float:
    """Peak resident memory of a process that computes the features of ``project``."""
    forget(project)
    words = [sys.executable, __file__, "--peak-of", str(project.workspace.root), project.name]
    told = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return float(json.loads(told.splitlines()[-1]))


def tell_peak(home: str, name: str) -> None:
    our_features(Workspace.open(home).project(name))
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def main() -> None:
    parser = benchmark_parser(__doc__, small="128 images, one round")
    parser.add_argument("--photos", help="a folder or ZIP of photographs (default: pieces of scikit-learn's two)")
    parser.add_argument("--n", type=int, default=1024, help="how many pieces to make (default: 1024)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    n, n_rounds = (128, 1) if args.small else (args.n, args.rounds)
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        roots = [scratch_name, *([os.path.dirname(os.path.abspath(args.photos))] if args.photos else [])]
        os.environ[ROOTS_VARIABLE] = os.pathsep.join(roots)
        if not args.photos:
            generate(scratch / "pieces", n)
        source = parse_source(args.photos or str(scratch / "pieces"))
        project = import_photos(scratch / "home", "All", source)
        pool = project.pool()
        paths = unpacked(pool, scratch / "files")
        last: dict[str, Any] = {}
        cpu: dict[str, list[float]] = {"ours": [], "usual": []}

        def ours() -> float:
            forget(project)
            begun, used = time.perf_counter(), cpu_seconds()
            made = our_features(project)
            seconds = time.perf_counter() - begun
            cpu["ours"].append(cpu_seconds() - used)
            last["ours"], last["engine"] = np.array(made.features()), made.artifact.facts["engine"]
            return made.artifact.facts["n_computed"] / seconds

        def usual() -> float:
            begun, used = time.perf_counter(), cpu_seconds()
            last["usual"] = usual_loop(paths, project.workspace)
            cpu["usual"].append(cpu_seconds() - used)
            return len(paths) / (time.perf_counter() - begun)

        fast, slow = rounds(n_rounds, ours, usual)
        (scratch / "quarter").mkdir()
        for path in paths[: max(1, len(paths) // 4)]:
            Path(path).rename(scratch / "quarter" / f"{Path(path).name}.jpg")
        part = import_photos(scratch / "home", "Part", SourceSpec("folder", str(scratch / "quarter")))
        peaks = {"part": peak_mb(part), "all": peak_mb(project)}
    ratios = [a / b for a, b in zip(fast, slow, strict=True)]
    finish(
        args,
        "features",
        {
            "images_per_s": round(spread(fast)["median"], 1),
            "usual_images_per_s": round(spread(slow)["median"], 1),
            "ratio": round(spread(ratios)["median"], 2),
            "cpu_ratio": round(spread(cpu["usual"])["median"] / spread(cpu["ours"])["median"], 2),
            "cosine_min": round(float(cosines(last["ours"], last["usual"]).min()), 6),
            "peak_mb": round(peaks["all"], 1),
        },
        {
            "n_images": len(pool),
            "photos": "given" if args.photos else "pieces of two photographs",
            "engine": str(last["engine"]),
            "ours": spread(fast),
            "usual": spread(slow),
            "ratios": spread(ratios),
            "cpu_seconds": {side: spread(seconds) for side, seconds in cpu.items()},
            "peak_mb_at_a_quarter": round(peaks["part"], 1),
        },
    )


if __name__ == "__main__":
    if "--peak-of" in sys.argv:
        tell_peak(*sys.argv[2:4])
    else:
        main()
