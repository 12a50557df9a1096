"""SwAV: learning an encoder by swapped cluster assignments (Caron et al. 2020, arXiv:2006.09882).

Two augmented views of a batch are encoded, projected to unit length and compared with K learned prototypes. Sinkhorn
turns the comparisons of each view into balanced soft assignments; each view then has to predict the assignments of the
other one. Views come from this house's own augmentation (shift, flip, RandAugment, cutout), at one size: the paper's
additional small crops are left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semiprune_core import streams
from semiprune_core.baselines.settings import SwavSettings
from semiprune_core.baselines.steps import run_steps
from semiprune_core.errors import InvalidDataError
from semiprune_core.learning import augment, sampling
from semiprune_core.learning.device import channels_last, choose_device
from semiprune_core.learning.images import Images
from semiprune_core.learning.nets import build_net
from semiprune_core.learning.optim import SCHEDULES, set_lr
from semiprune_core.learning.predict import predict, settle_norms
from semiprune_core.learning.trainer import fingerprint
from semiprune_core.progress import Progress
from semiprune_core.streams import Purpose

SHIFT = 0.125
SETTLE = 2000


class Projector(nn.Module):
    """Linear, normalisation, ReLU, linear, unit length; then the likeness to each prototype."""

    def __init__(self, n_features: int, settings: SwavSettings) -> None:
        super().__init__()
        self.project = nn.Sequential(
            nn.Linear(n_features, settings.hidden),
            nn.BatchNorm1d(settings.hidden),
            nn.ReLU(inplace=True),
            nn.Linear(settings.hidden, settings.projection),
        )
        self.prototypes = nn.Parameter(F.normalize(torch.randn(settings.n_prototypes, settings.projection), dim=1))

    def forward(self, features: Tensor) -> Tensor:
        """(B, D) features to (B, K) cosine likenesses."""
        return F.normalize(self.project(features.float()), dim=1) @ F.normalize(self.prototypes, dim=1).T


@torch.no_grad()
def sinkhorn(likeness: Tensor, *, epsilon: float, rounds: int) -> Tensor:
    """(B, K) soft assignments: each row adds up to 1, each prototype gets about B / K of the batch.

    Rows and columns of exp(likeness / epsilon) are scaled in turn, in logarithms, rows last.
    """
    log_q = likeness.double() / epsilon
    n_images, n_prototypes = log_q.shape
    for _ in range(rounds):
        log_q = log_q - log_q.logsumexp(0, keepdim=True) + np.log(n_images / n_prototypes)
        log_q = log_q - log_q.logsumexp(1, keepdim=True)
    return log_q.exp().to(likeness.dtype)


def swapped_loss(likeness: tuple[Tensor, Tensor], settings: SwavSettings) -> Tensor:
    """The mean cross-entropy of each view's prediction against the other view's assignments."""
    losses = []
    for here, there in ((0, 1), (1, 0)):
        target = sinkhorn(likeness[there].detach(), epsilon=settings.epsilon, rounds=settings.rounds)
        losses.append(-(target * (likeness[here] / settings.temperature).log_softmax(-1)).sum(-1).mean())
    return (losses[0] + losses[1]) / 2


def lr_at(step: int, n_steps: int, settings: SwavSettings) -> float:
    """The learning rate of a step: from 0 up in a line while warming up, then down along half a cosine."""
    warm = round(settings.warm_up * n_steps)
    if step < warm:
        return settings.lr * step / warm
    return settings.lr * SCHEDULES["cosine"]((step - warm) / (n_steps - warm))


def train_encoder(
    pixels: np.ndarray,
    *,
    settings: SwavSettings,
    seed: int,
    progress: Progress,
    device: str = "cpu",
    folder: Path | None = None,
) -> np.ndarray:
    """(N, D) float16 features of images (N, H, W, C) uint8, from an encoder trained on them without any label."""
    images = Images(pixels, choose_device(device))
    n, batch = len(images), min(settings.batch_size, len(images))
    if n < 4:
        raise InvalidDataError(f"An encoder needs at least 4 images to train on; there are {n}.")
    seed = streams.derived(seed, Purpose.ENCODER_RUN)
    net = build_net(settings.net, image_size=images.size, channels=images.channels, n_classes=2, seed=seed)
    net = channels_last(net, images.device).train()
    with sampling.fresh_weights(seed, 1):
        projector = Projector(net.n_features, settings)
    projector = projector.to(images.device).train()
    optimizer = torch.optim.SGD(
        [*net.backbone.parameters(), *projector.parameters()],
        lr=settings.lr,
        momentum=0.9,
        weight_decay=settings.weight_decay,
    )
    per_epoch = -(-n // batch)
    n_steps = settings.epochs * per_epoch
    frozen = round(settings.frozen * n_steps)
    pad, fill = round(SHIFT * images.size), images.mean

    def one_step(step: int) -> float:
        idx = sampling.stream(n, step * batch, batch, seed=seed, purpose=Purpose.POOL)
        rng = sampling.torch_rng(seed, Purpose.VIEWS, step)
        both = []
        for _ in range(2):
            draw = augment.draw_strong(
                len(idx), pad=pad, flip=settings.flip, n_ops=settings.n_ops, strength=settings.strength, generator=rng
            )
            view = augment.strong(images.take(idx), draw, cutout=settings.cutout, fill=fill)
            both.append(projector(net.features(images.normalise(view))))
        loss = swapped_loss((both[0], both[1]), settings)
        set_lr(optimizer, lr_at(step, n_steps, settings))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if step < frozen:
            projector.prototypes.grad = None
        optimizer.step()
        with torch.no_grad():
            projector.prototypes.copy_(F.normalize(projector.prototypes, dim=1))
        return float(loss.detach())

    run_steps(
        one_step,
        n_steps,
        modules={"net": net, "projector": projector},
        optimizer=optimizer,
        fingerprint=fingerprint(settings, images, np.zeros(0), seed=seed),
        folder=folder,
        save_every=per_epoch,
        progress=progress,
        stage="encoder",
        way_out=f"Lower the lr of swav (now {settings.lr:g}).",
    )
    some = np.unique(np.linspace(0, n - 1, min(n, SETTLE)).astype(np.int64))
    settle_norms(net, images, some)
    features = np.empty((n, net.n_features), dtype=np.float16)
    predict(net, images, features_out=features)
    return features
