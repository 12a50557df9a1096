"""TEMI: deep clustering on fixed features (Adaloglou et al. 2023, arXiv:2303.17896), as ELFS uses it.

Nearest neighbours in a pretrained embedding mostly share a class. H heads, each a small student with a teacher that is
its running average, learn to put an image x and a random neighbour x' into one of C clusters, raising

    pmi(x, x') = log sum_c (q_s(c|x) q_t(c|x'))^beta / q_t(c),       q_t(c) the running mean of the teacher,

made symmetric in x and x'. A pair counts by w(x, x') = mean over heads of sum_c q_t(c|x) q_t(c|x'): pairs the teachers
place apart are likely no pairs. beta < 1 keeps clusters from dying. The labels are those of the teacher of the head
with the lowest loss.

A head is Linear, GELU, Linear, scaled to length 1, then a linear layer with rows of length one and a learned gain. All
heads are computed at once, as batched products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semiprune_core import files, streams
from semiprune_core.baselines.neighbours import BLOCK, nearest
from semiprune_core.baselines.settings import HeadSettings
from semiprune_core.baselines.steps import run_steps
from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning import sampling
from semiprune_core.learning.device import choose_device
from semiprune_core.learning.frozen.neighbours import unit_rows
from semiprune_core.learning.optim import set_lr
from semiprune_core.maps.reduce import principal_components
from semiprune_core.progress import Progress
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.streams import Purpose

PREDICT_BLOCK = 4096
LOSS_MOMENTUM = 0.99  # of the running loss that heads are compared by: about the last hundred steps


@dataclass(frozen=True, eq=False)
class Clusters:
    """``labels`` (N,) in 0..C-1, ``confidence`` (N,) of the teacher, ``losses`` (H,) of the heads, the ``best`` one."""

    labels: IntArray
    confidence: FloatArray
    losses: FloatArray
    best: int


class Heads(nn.Module):
    """H clustering heads from D features to C clusters."""

    def __init__(self, n_features: int, n_clusters: int, settings: HeadSettings) -> None:
        super().__init__()
        h, hidden, bottleneck = settings.n_heads, settings.hidden, settings.bottleneck
        self.first = nn.Parameter(torch.randn(h, n_features, hidden) / math.sqrt(n_features))
        self.first_bias = nn.Parameter(torch.zeros(h, 1, hidden))
        self.second = nn.Parameter(torch.randn(h, hidden, bottleneck) / math.sqrt(hidden))
        self.second_bias = nn.Parameter(torch.zeros(h, 1, bottleneck))
        self.directions = nn.Parameter(torch.randn(h, bottleneck, n_clusters))
        self.gains = nn.Parameter(torch.ones(h, 1, n_clusters))

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) features to (H, B, C) logits."""
        out = F.gelu(x @ self.first + self.first_bias)
        out = F.normalize(out @ self.second + self.second_bias, dim=-1)
        return (out @ F.normalize(self.directions, dim=1)) * self.gains


class Averages(nn.Module):
    """Running means: the teacher's cluster shares ``shares`` (H, C) and the loss of each head ``losses`` (H,)."""

    shares: Tensor
    losses: Tensor
    weight: Tensor

    def __init__(self, n_heads: int, n_clusters: int) -> None:
        super().__init__()
        self.register_buffer("shares", torch.full((n_heads, n_clusters), 1 / n_clusters))
        self.register_buffer("losses", torch.zeros(n_heads))
        self.register_buffer("weight", torch.zeros(()))  # 1 - momentum^steps: what the losses have gathered so far


def head_losses(
    student: tuple[Tensor, Tensor], teacher: tuple[Tensor, Tensor], shares: Tensor, *, beta: float
) -> Tensor:
    """(H,) the loss of each head for log-probabilities (H, B, C) of images and their neighbours."""
    log_shares = shares.log()[:, None]
    with torch.no_grad():
        weight = (teacher[0] + teacher[1]).exp().sum(-1).mean(0)  # (B,)
    pmi = [
        (beta * (student[view] + teacher[other]) - log_shares).logsumexp(-1)  # (H, B)
        for view, other in ((0, 1), (1, 0))
    ]
    return -(weight * (pmi[0] + pmi[1]) / 2).mean(-1)


def prepared(values: np.ndarray, settings: HeadSettings, progress: Progress) -> FloatArray:
    """The features that the heads see: maybe fewer dimensions, zero mean, one scale for all of them."""
    if settings.n_components and values.shape[1] > settings.n_components:
        rows = principal_components(values, settings.n_components, progress)
    else:
        rows = np.array(values, dtype=np.float32)  # a copy, as it is changed in place
    rows -= rows.mean(axis=0)
    blocks = (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
    rows /= max(math.sqrt(sum(float(np.vdot(block, block)) for block in blocks) / rows.size), 1e-12)
    return rows


def cluster(
    values: np.ndarray,
    *,
    n_clusters: int,
    settings: HeadSettings,
    seed: int,
    progress: Progress,
    device: str = "cpu",
    folder: Path | None = None,
) -> Clusters:
    """Cluster images by their features ``values`` (N, D)."""
    n = len(values)
    check_range("n_clusters", n_clusters, low=2)
    if n < 2 * n_clusters:
        raise InvalidDataError(f"{n} images are too few for {n_clusters} clusters. Ask for fewer clusters.")
    k = max(1, min(settings.n_neighbours, n // (2 * n_clusters)))  # not beyond half a class in small pools
    rows = unit_rows(values)
    similar, _ = nearest(rows, rows, k, itself=False, progress=progress)
    del rows  # as large as what the heads see
    place = choose_device(device)
    seen = torch.from_numpy(prepared(values, settings, progress)).to(place)
    seed = streams.derived(seed, Purpose.CLUSTER_RUN)
    with sampling.fresh_weights(seed):
        student = Heads(seen.shape[1], n_clusters, settings)
    student = student.to(place)
    teacher = Heads(seen.shape[1], n_clusters, settings).to(place).requires_grad_(False)
    teacher.load_state_dict(student.state_dict())
    averages = Averages(settings.n_heads, n_clusters).to(place)
    optimizer = torch.optim.AdamW(student.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    per_epoch = -(-n // settings.batch_size)
    n_steps = settings.epochs * per_epoch
    warm = max(1, round(settings.warm_up * n_steps))

    def one_step(step: int) -> float:
        idx = sampling.stream(
            n, step * settings.batch_size, settings.batch_size, seed=seed, purpose=Purpose.POOL
        )  # an endless row of permutations
        pick = streams.rng(seed, Purpose.VIEWS, step).integers(0, k, len(idx))
        pair = seen[torch.from_numpy(np.concatenate([idx, similar[idx, pick]])).to(seen.device)]
        with torch.no_grad():
            answer = (teacher(pair) / settings.temperature).log_softmax(-1)
            averages.shares.lerp_(answer.exp().mean(1), 1 - settings.share_momentum)
        own = (student(pair) / settings.temperature).log_softmax(-1)
        b = len(idx)
        losses = head_losses(
            (own[:, :b], own[:, b:]), (answer[:, :b], answer[:, b:]), averages.shares, beta=settings.beta
        )
        set_lr(optimizer, settings.lr * min(1.0, (step + 1) / warm))
        optimizer.zero_grad(set_to_none=True)
        losses.sum().backward()  # heads share no weights: the sum trains each by its own loss
        optimizer.step()
        with torch.no_grad():
            for mean, now in zip(teacher.parameters(), student.parameters()):
                mean.lerp_(now, 1 - settings.teacher_momentum)
            averages.losses.lerp_(losses.detach(), 1 - LOSS_MOMENTUM)
            averages.weight.lerp_(torch.ones_like(averages.weight), 1 - LOSS_MOMENTUM)
        return float(losses.detach().mean())

    mark = {"settings": settings.to_json(), "seed": seed, "n_clusters": n_clusters, "shape": list(values.shape)}
    run_steps(
        one_step,
        n_steps,
        modules={"student": student, "teacher": teacher, "averages": averages},
        optimizer=optimizer,
        fingerprint=files.sha256_json({**mark, "first": np.asarray(values[0], np.float64).round(3).tolist()}),
        folder=folder,
        save_every=10 * per_epoch,
        progress=progress,
        stage="clustering",
        way_out=f"Lower the lr of heads (now {settings.lr:g}), or choose other features.",
    )
    losses = (averages.losses / averages.weight).cpu().numpy()
    best = int(losses.argmin())
    labels, confidence = _answers(teacher, seen, best, settings.temperature)
    return Clusters(labels, confidence, losses, best)


@torch.inference_mode()
def _answers(teacher: Heads, seen: Tensor, head: int, temperature: float) -> tuple[IntArray, FloatArray]:
    answers = [
        (teacher(seen[start : start + PREDICT_BLOCK])[head] / temperature).softmax(-1).max(-1)
        for start in range(0, len(seen), PREDICT_BLOCK)
    ]
    labels = torch.cat([answer.indices for answer in answers]).cpu().numpy()
    return labels, torch.cat([answer.values for answer in answers]).cpu().numpy()
