"""After images were added: what is still to be drawn so that the labels stay a random sample of the whole pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from semiprune_core.labeling.drawing import Drawing, draw_uniform, first_copies

if TYPE_CHECKING:
    from semiprune_core.labeling.store import LabelStore
    from semiprune_core.project.pool import Pool


@dataclass(frozen=True)
class Extension:
    """A uniform drawing whose pool has grown by ``n_added`` distinct images: ``n_more`` of them are to be drawn."""

    drawing: Drawing
    count: int
    n_added: int
    n_more: int

    def draw(self, store: LabelStore, pool: Pool, *, annotator: str) -> Drawing:
        """Draw them: the same share of the grown pool, with the same seed, overlap and final test."""
        return store.drawings.draw(
            pool_hash=pool.hash,
            ids=pool.ids,
            duplicate_of=pool.duplicate_of,
            count=self.count,
            seed=self.drawing.seed,
            overlap=self.drawing.overlap,
            annotator=annotator,
        )


def extension(store: LabelStore, pool: Pool) -> Extension | None:
    """What the largest uniform drawing lacks on the present pool; None where it is a sample of all of it."""
    uniform = [drawing for drawing in store.drawings.all() if drawing.uniform]
    drawing = max(uniform, key=len, default=None)
    if drawing is None or drawing.pool_hash == pool.hash:
        return None
    leaders = first_copies(pool.duplicate_of)
    count = max(1, min(len(leaders), round(len(leaders) * len(drawing) / drawing.n_groups)))
    n_more = len(draw_uniform(pool.ids[leaders], count, seed=drawing.seed, earlier=drawing.ids)) - len(drawing)
    if n_more <= 0:
        return None
    return Extension(drawing, count, len(leaders) - drawing.n_groups, n_more)
