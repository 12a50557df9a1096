"""Near-duplicates: planted copies that are found, other pairs that are taken for copies, and the time for 100,000.

    .venv/bin/python benchmarks/near_duplicates.py --photos ZIP --work DIR [--small] [--keep]

--photos is a ZIP of photographs; copies of some are planted (resized to 0.7, recompressed at quality 60, without the
outer 5%, mirrored) and all are imported, embedded and scanned as the app does. Pairs of different photographs that are
linked lie side by side in DIR/other_pairs.png, to be looked at; those that are the same photograph twice are named in
TWINS and are no false pairs. Time: fingerprints and features of
100,000 images (2,560 random dimensions of which 64 are strong, one image in fifty a copy) beside a loop of numpy that
compares one image with all later ones, on a part of them and scaled up.
"""

from __future__ import annotations

import io
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from common import benchmark_parser, finish
from PIL import Image

from semiprune_core.features.embed import embed
from semiprune_core.features.submit import EmbedSettings
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.learning.frozen.duplicates import alike_pairs, centred_rows
from semiprune_core.paths import ROOTS_VARIABLE
from semiprune_core.progress import Collected
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.scan import THRESHOLD, scan
from semiprune_core.scan.fingerprints import fingerprints

KINDS = ("resized", "recompressed", "cropped", "mirrored")
TWINS = {(996, 1059)}
"""Numbers of photographs that are the same picture, by eye: the pool of 1,500 holds one pair of them."""
THRESHOLDS = (0.85, 0.88, 0.9, 0.92, 0.95)
SIDE, PER_ROW = 160, 8


def copies(picture: Image.Image) -> dict[str, Image.Image]:
    width, height = picture.size
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=60)
    across, down = round(0.025 * width), round(0.025 * height)
    return {
        "resized": picture.resize((round(0.7 * width), round(0.7 * height)), Image.Resampling.BICUBIC),
        "recompressed": Image.open(packed),
        "cropped": picture.crop((across, down, width - across, height - down)),
        "mirrored": picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    }


def plant(photos: Path, folder: Path, n_images: int, n_planted: int) -> None:
    """``folder/own`` with the photographs, ``folder/copies`` with copies of some; kept where they are there already."""
    if folder.is_dir():
        return
    with zipfile.ZipFile(photos) as archive:
        names = sorted(name for name in archive.namelist() if name.lower().endswith(".jpg") and "train/" in name)
        rng = np.random.default_rng(0)
        names = [names[place] for place in np.sort(rng.permutation(len(names))[:n_images])]
        chosen = set(rng.permutation(len(names))[:n_planted].tolist())
        for part in ("own", "copies"):
            (folder / part).mkdir(parents=True)
        for number, name in enumerate(names):
            data = archive.read(name)
            (folder / "own" / f"{number:05d}.jpg").write_bytes(data)
            if number in chosen:
                for kind, copy in copies(Image.open(io.BytesIO(data)).convert("RGB")).items():
                    suffix = "jpg" if kind == "recompressed" else "png"
                    copy.save(folder / "copies" / f"{number:05d}-{kind}.{suffix}", quality=60)


def imported(folder: Path, work: Path) -> Project:
    os.environ[ROOTS_VARIABLE] = str(work.resolve())
    space = Workspace.open(work / "home")
    if folder.name not in space:
        project = space.create(folder.name, name=folder.name)
        import_source(project, ImportSettings(source=SourceSpec("folder", str(folder)).to_json()), Collected())
    project = space.project(folder.name)
    embed(project, EmbedSettings(), Collected(), folder=work / f"blocks-{folder.name}")
    return project


class Planted:
    """A scanned pool of photographs and planted copies: which photograph each image shows, and as what copy."""

    def __init__(self, project: Project) -> None:
        self.everything = project.everything()
        paths = [Path(path) for path in self.everything.column("path").to_pylist()]
        self.source = np.array([int(path.stem[:5]) for path in paths])
        self.kind = np.array([path.stem[6:] for path in paths])
        self.pairs = scan(project, Collected()).pairs

    def recall(self, threshold: float) -> dict[str, float]:
        """Of each kind of copy the share that is linked with its photograph."""
        pairs = self.pairs.above(threshold)
        same = self.source[pairs.left] == self.source[pairs.right]
        of_own = (self.kind[pairs.left] == "") | (self.kind[pairs.right] == "")
        linked: dict[str, set[int]] = {name: set() for name in KINDS}
        for left, right in zip(pairs.left[same & of_own], pairs.right[same & of_own], strict=True):
            linked[self.kind[left] or self.kind[right]].add(int(self.source[left]))
        return {name: len(linked[name]) / max(int((self.kind == name).sum()), 1) for name in KINDS}

    def others(self, threshold: float) -> list[tuple[float, int, int]]:
        """Likeness and positions of linked photographs that are none of a pair of TWINS, the most alike first."""
        pairs = self.pairs.above(threshold)
        found = [
            (float(likeness), int(left), int(right))
            for left, right, likeness in zip(*pairs, strict=True)
            if not self.kind[left] and not self.kind[right]
        ]
        return sorted((pair for pair in found if self.numbers(*pair[1:]) not in TWINS), reverse=True)

    def numbers(self, left: int, right: int) -> tuple[int, int]:
        low, high = sorted((int(self.source[left]), int(self.source[right])))
        return low, high

    def rate(self, threshold: float) -> float:
        own = int((self.kind == "").sum())
        return len(self.others(threshold)) / (own * (own - 1) / 2)

    def draw(self, path: Path, threshold: float) -> None:
        """The linked photographs side by side, two to a pair."""
        shown = [position for _, *pair in self.others(threshold)[:40] for position in pair]
        sheet = Image.new("RGB", (PER_ROW * SIDE, max(1, -(-len(shown) // PER_ROW)) * SIDE), "white")
        for place, position in enumerate(shown):
            picture = Image.open(io.BytesIO(self.everything.thumb(position))).convert("RGB")
            picture.thumbnail((SIDE - 6, SIDE - 6))
            sheet.paste(picture, (place % PER_ROW * SIDE, place // PER_ROW * SIDE))
        sheet.save(path)


def found_copies(project: Project, work: Path) -> dict[str, Any]:
    """Recall of each kind of copy, and the share of pairs of different photographs that are linked."""
    planted = Planted(project)
    planted.draw(work / "other_pairs.png", min(THRESHOLDS))
    return {
        "threshold": THRESHOLD,
        "n_images": int((planted.kind == "").sum()),
        "n_planted": {name: int((planted.kind == name).sum()) for name in KINDS},
        "recall": planted.recall(THRESHOLD),
        "false_pair_rate": planted.rate(THRESHOLD),
        "n_false_pairs": len(planted.others(THRESHOLD)),
        "by_threshold": {
            f"{threshold:.2f}": {"recall": planted.recall(threshold), "n_false_pairs": len(planted.others(threshold))}
            for threshold in THRESHOLDS
        },
    }


def timed(n: int, n_compared: int) -> dict[str, float]:
    """Seconds of wall and of processor time for ``n`` images, given features and training copies; and of the loop."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8)
    features = np.empty((n, 2560), np.float32)
    strong = rng.standard_normal((64, 2560), np.float32)
    for start in range(0, n, 4096):
        part = features[start : start + 4096]
        part[...] = rng.standard_normal((len(part), 64), np.float32) @ strong + rng.standard_normal(
            part.shape, np.float32
        )
    features[::50] = features[1::50][: len(features[::50])] + 0.5
    images[::50] = images[1::50][: len(images[::50])]
    began, used = time.perf_counter(), time.process_time()
    rows, signs = fingerprints(images)
    looks = [alike_pairs(rows, signs=signs, threshold=0.85)]
    looks.append(alike_pairs(centred := centred_rows(features), threshold=0.85))
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    del features
    mirrored = rows * signs
    began = time.perf_counter()
    chosen = rng.permutation(n)[:n_compared]
    for position in chosen:
        np.flatnonzero(rows[position + 1 :] @ rows[position] >= 0.85)
        np.flatnonzero(mirrored[position + 1 :] @ rows[position] >= 0.85)
        np.flatnonzero(centred[position + 1 :] @ centred[position] >= 0.85)
    loop = (time.perf_counter() - began) * n / n_compared
    assert len(looks[1].left) >= n // 50
    return {"seconds": seconds, "cpu_seconds": cpu, "loop_seconds": loop}


def main() -> None:
    parser = benchmark_parser(__doc__, small="60 photographs, 5 with copies; 3,000 images timed")
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    args = parser.parse_args()
    size = ("small", 60, 5) if args.small else ("photos", 1500, 120)
    plant(args.photos, args.work / size[0], *size[1:])
    quality = found_copies(imported(args.work / size[0], args.work), args.work)
    times = timed(3_000 if args.small else 100_000, 30 if args.small else 60)
    keys = {
        "recall": round(float(np.mean(list(quality["recall"].values()))), 4),
        "false_pair_rate": float(f"{quality['false_pair_rate']:.2g}"),
        "seconds_100k": round(times["seconds"], 1),
        "brute_force_ratio": round(times["loop_seconds"] / times["seconds"], 1),
    }
    finish(args, "near_duplicates", keys, {**quality, **times})


if __name__ == "__main__":
    main()
