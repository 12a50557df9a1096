"""Score extrapolation by a graph network (Schmidt et al. 2025, arXiv:2506.09010; GCN: Kipf and Welling 2017).

The images are the nodes of their k-nearest-neighbour graph, an edge weighs the root of exp(-distance). A node's input
is its features beside the one-hot label of those that were labeled. Graph convolutions

    H' = relu(D^-1/2 (A + I) D^-1/2 H W + b)

learn the known scores by squared error; a tenth of the known images is held out, and the epoch counts that has the
lowest error on them in the score that is chosen by. The images whose scores are wanted have no label, so held-out
images are judged without theirs, and in each epoch a random share ``blank`` of the learned ones goes without: no node
may rely on its own label.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semiprune_core import streams
from semiprune_core.baselines.extrapolate import closeness
from semiprune_core.baselines.neighbours import nearest
from semiprune_core.baselines.settings import GraphSettings
from semiprune_core.learning import sampling
from semiprune_core.learning.device import choose_device
from semiprune_core.progress import Progress, Stopped
from semiprune_core.records import FloatArray, IntArray
from semiprune_core.streams import Purpose

HELD_OUT = 0.1


def normalised_graph(places: IntArray, weights: FloatArray) -> sp.csr_array:
    """D^-1/2 (A + I) D^-1/2 (N, N) of the graph that joins node i to ``places[i]`` with ``weights[i]``, both (N, k).

    An edge counts in both directions, with the larger weight where both ends name it.
    """
    n, k = places.shape
    one_way = sp.csr_array((weights.ravel(), (np.repeat(np.arange(n), k), places.ravel())), shape=(n, n))
    both = one_way.maximum(one_way.T) + sp.eye_array(n, format="csr")
    root = 1 / np.sqrt(both.sum(axis=1))
    return (sp.diags_array(root) @ both @ sp.diags_array(root)).tocsr()


Shown = tuple[Tensor, Tensor]
"""Nodes (L,) whose label the network sees, and those labels (L,)."""


class GraphNet(nn.Module):
    """Graph convolutions of the given widths; dropout and ReLU between them.

    An input is a one-hot label (C) beside features (D). The label's half of the first product is a column of the
    weights, so it is added where a label is shown, and (N, C) zeros and ones are never made.
    """

    def __init__(self, widths: tuple[int, ...], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.dropout = dropout

    def forward(self, x: Tensor, shown: Shown, graph: Tensor) -> Tensor:
        """Features (N, D), labels of some nodes, and the (N, N) sparse graph to (N, S)."""
        nodes, labels = shown
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            n_classes = layer.in_features - x.shape[1]  # 0 behind the first layer
            product = F.linear(x, layer.weight[:, n_classes:])
            if number == 0:
                product.index_add_(0, nodes, layer.weight[:, labels].T)
            x = (graph @ product).add_(layer.bias)
            if number < len(self.layers) - 1:
                x = F.dropout(x.relu_(), self.dropout, self.training)
        return x


def extrapolate_graph(
    values: np.ndarray,
    known_idx: IntArray,
    known_scores: Mapping[str, FloatArray],
    labels: IntArray,
    *,
    n_classes: int,
    judged_by: str,
    settings: GraphSettings,
    seed: int,
    progress: Progress,
    device: str = "cpu",
) -> dict[str, FloatArray]:
    """Scores (N,) of all images with features ``values`` (N, D), from ``known_scores`` (M,) at ``known_idx`` (M,).

    ``labels`` (M,) are those of the known images. Known scores stay as they are. All are learned together; which epoch
    counts is decided by the score ``judged_by``, the one whose order matters.
    """
    n, on, seed = len(values), choose_device(device), streams.derived(seed, Purpose.GRAPH_RUN)
    rows = np.asarray(values, dtype=np.float32)
    k = min(settings.n_neighbours, n - 1)
    places, apart = nearest(rows, rows, k, itself=False, progress=progress)
    graph = as_torch(normalised_graph(places, np.sqrt(closeness(apart)))).to(on)
    spread = np.maximum(rows.std(axis=0), 1e-6)
    rows = rows - rows.mean(axis=0)
    rows /= spread  # one (N, D) input: the features as they came are not needed any more
    x = torch.from_numpy(rows).to(on)

    wanted = np.stack([np.asarray(scores, dtype=np.float64) for scores in known_scores.values()], axis=1)  # (M, S)
    mean, scale = wanted.mean(axis=0), np.maximum(wanted.std(axis=0), 1e-12)
    target = torch.from_numpy(((wanted - mean) / scale).astype(np.float32)).to(on)
    order = streams.rng(seed, Purpose.SPLIT).permutation(len(known_idx))
    n_held = max(1, round(HELD_OUT * len(order))) if len(order) > 1 else 0
    held, learned = (torch.from_numpy(part) for part in (order[:n_held], order[n_held:]))
    place, own = (
        torch.from_numpy(np.array(array)).long().to(on) for array in (known_idx, labels)
    )  # files are read-only

    def with_labels(of: Tensor) -> Shown:
        """The known images ``of`` show their label, and no others."""
        return place[of], own[of]

    in_use, judged = with_labels(torch.arange(len(order))), held if n_held else learned
    in_judgement, column = with_labels(learned), list(known_scores).index(judged_by)

    with sampling.fresh_weights(seed):  # dropout draws on from them
        net = GraphNet((n_classes + x.shape[1], *settings.hidden, target.shape[1]), settings.dropout).to(on)
        optimizer = torch.optim.Adam(net.parameters(), lr=settings.lr)
        lowest, best = np.inf, np.zeros((n, target.shape[1]))
        for epoch in range(settings.epochs):
            if progress.should_stop():
                raise Stopped
            net.train()
            draw = torch.rand(len(learned), generator=sampling.torch_rng(seed, Purpose.LABELED, epoch))
            answer = net(x, with_labels(learned[draw >= settings.blank]), graph)
            loss = F.mse_loss(answer[place[learned]], target[learned])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            net.eval()
            with torch.no_grad():
                answer = net(x, in_judgement, graph)[place[judged], column]
                error = float(F.mse_loss(answer, target[judged, column]))
                if error < lowest:
                    lowest, best = error, net(x, in_use, graph).cpu().numpy().astype(np.float64)
            progress.report(
                epoch + 1, settings.epochs, unit="epochs", stage="graph", loss=round(float(loss.detach()), 4)
            )
    all_scores = {}
    for number, (name, scores) in enumerate(known_scores.items()):
        all_scores[name] = best[:, number] * scale[number] + mean[number]
        all_scores[name][known_idx] = scores
    return all_scores


def as_torch(graph: sp.csr_array) -> Tensor:
    """A scipy CSR matrix as a sparse torch one."""
    cells = graph.tocoo()
    place = torch.from_numpy(np.stack([cells.row, cells.col]).astype(np.int64))
    return torch.sparse_coo_tensor(
        place, torch.from_numpy(cells.data.astype(np.float32)), cells.shape, check_invariants=True
    ).coalesce()
