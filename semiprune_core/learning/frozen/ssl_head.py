"""A linear head trained by any SSL algorithm of the registry, on features of weak and strong views.

It begins as the fitted logistic regression: a head that begins at zero has a flat softmax, and no threshold would let
an unlabeled image in. The weak view is the image's own features, the strong one those of an augmented original.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from semiprune_core.errors import InvalidDataError
from semiprune_core.learning.alignment import align, begin_alignment
from semiprune_core.learning.frozen.logistic import Linear
from semiprune_core.learning.frozen.prepare import FrozenPool
from semiprune_core.learning.frozen.settings import FrozenSettings
from semiprune_core.learning.optim import fixmatch_cosine
from semiprune_core.learning.sampling import torch_rng
from semiprune_core.learning.shares import image_weights
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.streams import Purpose

REPORT_EVERY = 50


def train_head(
    pool: FrozenPool,
    start: Linear,
    labeled: IntArray,
    labels: IntArray,
    *,
    drawn: FloatArray | None,
    penalty: float,
    settings: FrozenSettings,
    seed: int,
    number: int = 0,
    progress: Progress | None = None,
) -> Linear:
    """Train on from ``start`` with the labels at positions ``labeled`` and the whole pool as unlabeled images.

    ``drawn`` (C,) are the uniformly drawn labels of each class, by which batches and class shares go; None: not known.
    Without strong views the weak one stands in. Classes without a label stay out. Heads of one seed that differ in
    ``number`` draw apart.
    """
    algorithm = settings.make_algorithm()
    present = np.unique(labels)
    narrow = torch.from_numpy(np.searchsorted(present, labels))
    generator = torch_rng(seed, Purpose.HEAD, number)
    rows, strong = torch.from_numpy(pool.rows), [torch.from_numpy(view) for view in pool.strong]
    weights = torch.from_numpy(start.weights[:, present].astype(np.float32)).requires_grad_()
    bias = torch.from_numpy(start.bias[present].astype(np.float32)).requires_grad_()
    if not torch.isfinite(bias).all():
        raise InvalidDataError("The head to begin from does not know all classes that have labels.")
    slow = [weights.detach().clone(), bias.detach().clone()]
    optimizer = torch.optim.SGD([weights, bias], lr=settings.lr, momentum=0.9, nesterov=True)
    state = algorithm.begin(narrow, len(pool), len(present))
    of_class = None if drawn is None else torch.from_numpy(drawn[present])
    shares = begin_alignment(settings.distribution_alignment, of_class, bias.detach())
    chances = torch.from_numpy(_chances(labels, drawn))
    places = torch.from_numpy(labeled)
    for step in range(settings.n_steps):
        if progress is not None and step % REPORT_EVERY == 0:
            if progress.should_stop():
                raise Stopped
            progress.report(step, settings.n_steps, unit="steps", stage="head")
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * fixmatch_cosine(step / settings.n_steps)
        mine = torch.multinomial(chances, settings.batch_size, replacement=True, generator=generator)
        known = functional.linear(rows[places[mine]], weights.T, bias)
        targets, seen = None, known[:0]
        if algorithm.view is not None:
            others = torch.randint(len(pool), (settings.batch_size * settings.unlabeled_ratio,), generator=generator)
            weak = rows[others]
            with torch.no_grad():
                probs, shares = align(functional.linear(weak, weights.T, bias).softmax(-1), shares)
                targets, state = algorithm.targets(probs, others, state, done=step / settings.n_steps)
            if algorithm.view == "strong" and strong:
                weak = strong[int(torch.randint(len(strong), (), generator=generator))][others]
            seen = functional.linear(weak, weights.T, bias)
        loss = algorithm.step(known, narrow[mine], seen, targets).loss + 0.5 * penalty * weights.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for average, now in zip(slow, (weights, bias), strict=True):
            average.lerp_(now.detach(), 1 - settings.ema_decay)
    return _widened(start, present, *(part.numpy().astype(np.float64) for part in slow))


def _chances(labels: IntArray, drawn: FloatArray | None) -> FloatArray:
    """(n,) how likely each label comes into a batch, but for a factor."""
    weights = image_weights(labels, drawn)
    return np.ones(len(labels)) if weights is None else weights


def _widened(start: Linear, present: IntArray, weights: FloatArray, bias: FloatArray) -> Linear:
    head = Linear(start.weights.copy(), start.bias.copy())
    head.weights[:, present], head.bias[present] = weights, bias
    return head
