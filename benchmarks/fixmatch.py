"""Our FixMatch step against one built the usual way: same net, batch and images.

The usual way: every image is augmented by Pillow in one of two loader workers, and one forward pass over labeled, weak
and strong images keeps the graph for all of them. Ours: augmentation on whole batches, the weak view forwarded without
a graph, channels last, and bf16 where the processor multiplies it natively. ``*_fp32_ratio`` is ours in fp32 too;
``*_cpu_ratio`` compares images per second of processor time, workers included, which other load on the machine hardly
changes.

    .venv/bin/python benchmarks/fixmatch.py [--nets compact,wrn_28_2] [--small] [--keep]
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from common import benchmark_parser, finish
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from semiprune_core.learning import ssl_run
from semiprune_core.learning.distributed import World
from semiprune_core.learning.images import Images
from semiprune_core.learning.nets import build_net
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.progress import Collected

WARM_UP = 3
DEMO = Path(__file__).parents[1] / "assets" / "demo_pool.npz"
OPERATIONS: list[tuple[Callable[[Image.Image, float], Image.Image], float, float]] = [
    (lambda im, v: ImageOps.autocontrast(im), 0, 1),
    (lambda im, v: ImageEnhance.Brightness(im).enhance(v), 0.05, 0.95),
    (lambda im, v: ImageEnhance.Color(im).enhance(v), 0.05, 0.95),
    (lambda im, v: ImageEnhance.Contrast(im).enhance(v), 0.05, 0.95),
    (lambda im, v: ImageOps.equalize(im), 0, 1),
    (lambda im, v: im, 0, 1),
    (lambda im, v: ImageOps.posterize(im, int(v)), 4, 8),
    (lambda im, v: im.rotate(v), -30, 30),
    (lambda im, v: ImageEnhance.Sharpness(im).enhance(v), 0.05, 0.95),
    (lambda im, v: im.transform(im.size, Image.Transform.AFFINE, (1, v, 0, 0, 1, 0)), -0.3, 0.3),
    (lambda im, v: im.transform(im.size, Image.Transform.AFFINE, (1, 0, 0, v, 1, 0)), -0.3, 0.3),
    (lambda im, v: ImageOps.solarize(im, v), 0, 256),
    (lambda im, v: im.transform(im.size, Image.Transform.AFFINE, (1, 0, v * 32, 0, 1, 0)), -0.3, 0.3),
    (lambda im, v: im.transform(im.size, Image.Transform.AFFINE, (1, 0, 0, 0, 1, v * 32)), -0.3, 0.3),
]


def demo_images() -> tuple[np.ndarray, np.ndarray]:
    """The demo pool at 32 x 32 with three channels, and its labels."""
    with np.load(DEMO) as file:
        images = np.pad(file["images"], ((0, 0), (2, 2), (2, 2)))
        return np.repeat(images[..., None], 3, axis=3), file["labels"].astype(np.int64)


def weak(image: Image.Image) -> Image.Image:
    padded = Image.fromarray(np.pad(np.asarray(image), ((4, 4), (4, 4), (0, 0)), mode="reflect"))
    x, y = random.randint(0, 8), random.randint(0, 8)
    cropped = padded.crop((x, y, x + 32, y + 32))
    return ImageOps.mirror(cropped) if random.random() < 0.5 else cropped


def strong(image: Image.Image) -> Image.Image:
    image = weak(image)
    for operation, low, high in random.choices(OPERATIONS, k=3):
        image = operation(image, low + (high - low) * random.random())
    side, x, y = 16 * random.random(), 32 * random.random(), 32 * random.random()
    corner = (max(0, x - side / 2), max(0, y - side / 2))
    ImageDraw.Draw(image).rectangle((*corner, corner[0] + side, corner[1] + side), (125, 123, 114))
    return image


def as_tensor(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255).sub_(0.5).div_(0.25)


class Views(Dataset[tuple[Tensor, ...]]):
    """Images augmented one by one: an item is a labeled image and the two views of its ``ratio`` unlabeled ones."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, n: int, ratio: int) -> None:
        self.images, self.labels, self.n, self.ratio = images, labels, n, ratio

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, place: int) -> tuple[Tensor, ...]:
        row = place % len(self.images)
        others = [Image.fromarray(self.images[(place * self.ratio + k) % len(self.images)]) for k in range(self.ratio)]
        return (
            as_tensor(weak(Image.fromarray(self.images[row]))),
            torch.tensor(int(self.labels[row])),
            torch.stack([as_tensor(weak(image)) for image in others]),
            torch.stack([as_tensor(strong(image)) for image in others]),
        )


class Speed(NamedTuple):
    """Images (labeled and unlabeled ones, each counted once) per second, and per second of processor time."""

    wall: float
    cpu: float


def cpu_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def usual_way(net_name: str, batch: int, ratio: int, n_steps: int) -> Speed:
    """Wall-clock time runs from when the workers have filled their queue and work at the pace of the training."""
    images, labels = demo_images()
    net = build_net(net_name, image_size=32, channels=3, n_classes=10).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4)
    steps = n_steps + WARM_UP
    started, used = 0.0, cpu_seconds()
    loader = DataLoader(
        Views(images, labels, steps * batch, ratio), batch, shuffle=True, num_workers=2, prefetch_factor=1
    )
    for number, (x, y, u_weak, u_strong) in enumerate(loader):
        if number == WARM_UP:
            started = time.perf_counter()
        logits = net(torch.cat([x, u_weak.flatten(0, 1), u_strong.flatten(0, 1)]))
        labeled, guess, hard = logits[:batch], *logits[batch:].chunk(2)
        confidence, target = guess.detach().softmax(-1).max(-1)
        loss = F.cross_entropy(labeled, y)
        loss = loss + (F.cross_entropy(hard, target, reduction="none") * (confidence >= 0.95)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - started
    del loader  # ends the workers, so that their processor time is counted
    per_step = batch * (1 + ratio)
    return Speed(n_steps * per_step / seconds, steps * per_step / (cpu_seconds() - used))


def our_way(net_name: str, batch: int, ratio: int, n_steps: int, precision: str) -> Speed:
    images, labels = demo_images()
    settings = SSLSettings(
        net=net_name,
        batch_size=batch,
        unlabeled_ratio=ratio,
        n_ops=3,
        epochs=1,
        steps_per_epoch=10_000,
        precision=precision,
    )
    everything = np.arange(len(images))
    run = ssl_run.SSLRun(
        Images(images, torch.device("cpu")),
        labels,
        everything,
        everything[:0],
        n_classes=10,
        settings=settings,
        seed=0,
        progress=Collected(),
        folder=None,
        reference=None,
        world=World(),
    )
    started, used = 0.0, cpu_seconds()
    for number in range(WARM_UP + n_steps):
        if number == WARM_UP:
            started = time.perf_counter()
        run.one_step()
        run.step += 1
    seconds = time.perf_counter() - started
    per_step = batch * (1 + ratio)
    return Speed(n_steps * per_step / seconds, run.step * per_step / (cpu_seconds() - used))


def main() -> None:
    parser = benchmark_parser(__doc__, small="fewer steps and rounds")
    parser.add_argument("--nets", default="compact,wrn_28_2")
    args = parser.parse_args()
    small = args.small
    torch.set_num_threads(2)
    rounds = 2 if small else 5
    cases = {"compact": (64, 7, 6 if small else 30), "wrn_28_2": (8, 7, 2) if small else (16, 7, 6)}
    result: dict[str, object] = {}
    for net in args.nets.split(","):
        batch, ratio, n_steps = cases[net]
        ways: dict[str, Callable[[], Speed]] = {
            "ours": lambda n=net, b=batch, r=ratio, s=n_steps: our_way(n, b, r, s, "auto"),
            "ours_fp32": lambda n=net, b=batch, r=ratio, s=n_steps: our_way(n, b, r, s, "fp32"),
            "usual": lambda n=net, b=batch, r=ratio, s=n_steps: usual_way(n, b, r, s),
        }
        speeds: dict[str, list[Speed]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, run in ways.items():
                speeds[way].append(run())
        for way, values in speeds.items():
            wall = [speed.wall for speed in values]
            result[f"{net}_{way}_images_per_s"] = round(statistics.median(wall), 1)
            result[f"{net}_{way}_spread"] = [round(min(wall), 1), round(max(wall), 1)]
        for key, way, kind in (("ratio", "ours", 0), ("fp32_ratio", "ours_fp32", 0), ("cpu_ratio", "ours", 1)):
            ratios = [ours[kind] / usual[kind] for ours, usual in zip(speeds[way], speeds["usual"])]
            result[f"{net}_{key}"] = round(statistics.median(ratios), 2)
        result[f"{net}_batch"] = [batch, batch * ratio]
        print(net, {key: value for key, value in result.items() if key.startswith(net)}, flush=True)
    finish(args, "fixmatch", result, {"rounds": rounds, "threads": 2})


if __name__ == "__main__":
    main()
