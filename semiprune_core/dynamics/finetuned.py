"""Supervised nets that begin with an encoder's weights."""

from __future__ import annotations

from collections.abc import Callable

from semiprune_core.embeddings.start import open_pretrained
from semiprune_core.learning.pretrained import Pretrained
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.training.settings import FINETUNED_ENCODER


def finetuned_start(project: Project, pool: Pool, encoder: str = FINETUNED_ENCODER) -> Callable[[], Pretrained]:
    """Opens the encoder anew for each net, which uses it up."""
    size = int(pool.images().shape[1])
    return lambda: open_pretrained(encoder, size, guard=project.workspace.guard)
