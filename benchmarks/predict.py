"""Labels for 1,000 new photographs against a bare loop, by a run on pretrained features and by one from scratch.

    .venv/bin/python benchmarks/predict.py [--photos FOLDER_OR_ZIP] [--small] [--keep]

The bare loop is what a script does that has the same net: Pillow decodes and resizes in a loader worker for each core,
the net runs eagerly in fp32, a linear head answers. It shows the encoders both views of an image, as the run does; a
second one shows them each image once. Ours is the whole of ``semiprune predict`` but the start of Python: listing the
folder, decoding in limited processes, the encoders, the run's head, and how far each image is from the pool. Both open
their net each time, in a process of their own. Photographs lie in a folder for each class; without ``--photos`` they
are pieces of scikit-learn's two. CPU seconds of all processes are counted beside wall seconds: on a busy machine they
say more.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import ROOT, benchmark_parser, finish, label_a_tenth, rounds, spread
from features import Originals, cpu_seconds, generate, import_photos
from PIL import Image
from sklearn.linear_model import LogisticRegression
from torch.utils.data import DataLoader

from semiprune_core.embeddings.encoders import DEFAULT, open_encoder, own_side
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.learning.images import channel_moments
from semiprune_core.paths import ROOTS_VARIABLE
from semiprune_core.prediction.run import features_behind, open_net, predict_folder
from semiprune_core.progress import Silent
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.results import PseudoRun, latest_pseudo
from semiprune_core.results.features import feature_runs
from semiprune_core.training import start_training
from semiprune_core.training.settings import asked_settings

BATCH = 32
FEWEST = 80
"""Images of a pool: a tenth of them must have labels of every class."""
STEPS = {"epochs": 1, "steps_per_epoch": 20}
"""Of the run from scratch: how long it learned says nothing about how fast it answers."""


def gathered(photos: str | None, scratch: Path, n: int) -> list[Path]:
    """The photographs, each in a folder of its class."""
    if photos is None:
        generate(scratch / "pieces", n)
        for number, path in enumerate(sorted((scratch / "pieces").glob("*.jpg"))):
            kind = scratch / "pieces" / f"photo-{number % 2}"
            kind.mkdir(exist_ok=True)
            path.rename(kind / path.name)
        photos = str(scratch / "pieces")
    elif zipfile.is_zipfile(photos):
        with zipfile.ZipFile(photos) as archive:
            archive.extractall(scratch / "photos")
        photos = str(scratch / "photos")
    return sorted(path for path in Path(photos).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))


def split(paths: list[Path], n_new: int, scratch: Path) -> tuple[Path, Path]:
    """The folders of the pool and of the new images: drawn apart, half as many for the pool, in class folders."""
    order = np.random.default_rng(0).permutation(len(paths))[: n_new + max(n_new // 2, FEWEST)]
    (scratch / "new").mkdir()
    for number, at in enumerate(order):
        path = paths[at]
        folder = scratch / "new" if number < n_new else scratch / "pool" / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / f"{number:05d}{path.suffix}")
    return scratch / "pool", scratch / "new"


def trained(project: Project, **asked: Any) -> PseudoRun:
    start_training(project, asked_settings(**asked), device="cpu", immediate=True)
    run = latest_pseudo(project)
    assert run is not None
    return run


class Encoders(torch.nn.Module):
    """The encoders of a run side by side, each with its own normalisation."""

    def __init__(self, name: str, project: Project) -> None:
        super().__init__()
        self.parts = [open_encoder(part, guard=project.workspace.guard) for part in name.split("+")]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        answers = []
        for part in self.parts:
            mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (part.mean, part.std))
            answers.append(part.net((pixels - mean) / std).flatten(1))
        return torch.cat(answers, 1)


class Squares(Originals):
    """As the features benchmark reads files, at ``side`` pixels and as values 0 to 1."""

    def __init__(self, paths: list[str], side: int) -> None:
        super().__init__(paths, (0.0,) * 3, (1.0,) * 3)
        self.side = side

    def __getitem__(self, number: int) -> torch.Tensor:
        with Image.open(self.paths[number]) as opened:
            picture = opened.convert("RGB")
        side = min(picture.size)
        left, top = (picture.width - side) / 2, (picture.height - side) / 2
        box = (left, top, left + side, top + side)
        square = picture.resize((self.side, self.side), Image.Resampling.BILINEAR, box=box)
        return torch.from_numpy(np.array(square)).permute(2, 0, 1).float() / 255


def loader(paths: list[str], side: int) -> DataLoader:
    return DataLoader(Squares(paths, side), batch_size=BATCH, num_workers=torch.get_num_threads())


def fitted_head(project: Project, run: PseudoRun) -> LogisticRegression:
    """What a script would have beside its encoder; fitted outside the measurement."""
    features, labels = features_behind(project, run), run.labels()
    learned = np.flatnonzero(labels.human_mask)
    head = LogisticRegression(max_iter=200)
    return head.fit(np.asarray(features.features())[learned].astype(np.float32), labels.labels[learned])


@torch.inference_mode()
def bare_encoders(paths: list[str], project: Project, head: Any, views: int) -> np.ndarray:
    name = feature_runs(project)[0].encoder
    net, side = Encoders(name, project), own_side(name)
    answers = []
    for batch in loader(paths, side):
        rows = net(batch)
        if views == 2:
            rows = (rows + net(batch.flip(3))) / 2
        answers.append(head.predict(rows.numpy()))
    return np.concatenate(answers)


@torch.inference_mode()
def bare_net(paths: list[str], project: Project, run: PseudoRun) -> np.ndarray:
    net, labeled = open_net(project, run)
    pixels = project.pool().images()
    mean, std = (torch.from_numpy(part).view(1, 3, 1, 1) for part in channel_moments(pixels))
    answers = [net((255 * batch - mean) / std).softmax(-1).argmax(1) for batch in loader(paths, pixels.shape[1])]
    return labeled[torch.cat(answers).numpy()]


def ours(project: Project, run: PseudoRun, folder: Path) -> np.ndarray:
    return predict_folder(project, run, folder, device="cpu", progress=Silent()).labels


def side(name: str, home: str, project_name: str, run_id: str, folder: str, cores: str) -> None:
    """One measurement in a process of its own; its last line is the answer."""
    if int(cores):
        torch.set_num_threads(int(cores))
    project = Workspace.open(home).project(project_name)
    run, paths = PseudoRun(project.artifact(run_id)), sorted(str(path) for path in Path(folder).iterdir())
    head = fitted_head(project, run) if name.startswith("encoders") else None
    works: dict[str, Callable[[], np.ndarray]] = {
        "ours": lambda: ours(project, run, Path(folder)),
        "encoders": lambda: bare_encoders(paths, project, head, 2),
        "encoders once": lambda: bare_encoders(paths, project, head, 1),
        "net": lambda: bare_net(paths, project, run),
    }
    begun, used = time.perf_counter(), cpu_seconds()
    labels = works[name]()
    seconds, cpu = time.perf_counter() - begun, cpu_seconds() - used
    print(json.dumps({"images_per_s": len(paths) / seconds, "cpu": cpu, "labels": labels.tolist()}))


@dataclass
class Sides:
    """What was measured of each side, by its name."""

    place: tuple[str, ...]
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def measure(self, name: str) -> float:
        """In a process of its own that is no script: decoders that start from one import it again."""
        code = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'benchmarks')]!r}; import predict; "
        words = [sys.executable, "-W", "ignore", "-c", code + "predict.side(*sys.argv[1:])", name, *self.place]
        done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT)
        answer = json.loads(done.stdout.splitlines()[-1])
        self.answers.setdefault(name, []).append(answer)
        return float(answer["images_per_s"])

    def labels(self, name: str) -> np.ndarray:
        return np.array(self.answers[name][-1]["labels"])

    def cpu(self, name: str) -> list[float]:
        return [answer["cpu"] for answer in self.answers[name]]


def compared(sides: Sides, n_rounds: int, *loops: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(keys, details) of ours beside the first of the ``loops``, which does the same work, and the others."""
    fast, *slow = rounds(n_rounds, *(partial(sides.measure, name) for name in ("ours", *loops)))
    ratios = {name: [a / b for a, b in zip(fast, loop, strict=True)] for name, loop in zip(loops, slow, strict=True)}
    ours_cpu = spread(sides.cpu("ours"))["median"]
    keys = {
        "images_per_s": round(spread(fast)["median"], 1),
        "loop_images_per_s": round(spread(slow[0])["median"], 1),
        "ratio": round(spread(ratios[loops[0]])["median"], 2),
        "cpu_ratio": round(spread(sides.cpu(loops[0]))["median"] / ours_cpu, 2),
        "same_labels": round(float((sides.labels("ours") == sides.labels(loops[0])).mean()), 4),
    }
    for name in loops[1:]:
        word = name.replace(" ", "_")
        keys[f"ratio_{word}"] = round(spread(ratios[name])["median"], 2)
        keys[f"cpu_ratio_{word}"] = round(spread(sides.cpu(name))["median"] / ours_cpu, 2)
    named = dict(zip(("ours", *loops), (fast, *slow), strict=True))
    cpu = {name: spread(sides.cpu(name)) for name in named}
    return keys, {"images_per_s": {name: spread(values) for name, values in named.items()}, "cpu_seconds": cpu}


def main() -> None:
    parser = benchmark_parser(__doc__, small="64 new images, one round")
    parser.add_argument("--photos", help="a folder or ZIP with a folder of photographs for each class")
    parser.add_argument("--n", type=int, default=1000, help="new images (default: 1,000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("head", "net"), help="one of the two runs, kept under a name of its own")
    parser.add_argument("--encoder", default=DEFAULT, help=f"whose features (default: {DEFAULT})")
    parser.add_argument("--cores", type=int, help="use so many cores (default: all); 1 is steadiest beside other work")
    args = parser.parse_args()
    n_new, n_rounds = (64, 1) if args.small else (args.n, args.rounds)
    if args.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
        torch.set_num_threads(args.cores)
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        os.environ[ROOTS_VARIABLE] = scratch_name
        paths = gathered(args.photos, scratch, n_new + max(n_new // 2, FEWEST))
        pool, new = split(paths, n_new, scratch)
        project = import_photos(scratch / "home", "Pool", SourceSpec("folder", str(pool)))
        label_a_tenth(project)

        def sides(run: PseudoRun) -> Sides:
            return Sides((str(scratch / "home"), project.name, run.artifact.id, str(new), str(args.cores or 0)))

        results = {}
        if args.only != "net":
            run = trained(project, start="frozen", encoder=args.encoder, changes={})
            results["head"] = compared(sides(run), n_rounds, "encoders", "encoders once")
        if args.only != "head":
            results["net"] = compared(sides(trained(project, start="scratch", changes=STEPS)), n_rounds, "net")
        counts = {
            "n_new": n_new,
            "n_pool": len(project.pool()),
            "encoder": args.encoder,
            "photos": "given" if args.photos else "pieces",
        }
    keys = {f"{kind}_{name}": value for kind, (told, _) in results.items() for name, value in told.items()}
    name = f"predict_{args.only}" if args.only else "predict"
    finish(args, name, keys, {**counts, **{kind: measured for kind, (_, measured) in results.items()}})


if __name__ == "__main__":
    main()
