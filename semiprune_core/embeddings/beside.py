"""Several encoders as one: their features side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Beside(nn.Module):
    """(n, 3, side, side), normalised as the first net was trained to see it, to the features of all ``nets``."""

    def __init__(
        self, nets: Sequence[nn.Module], means: Sequence[Sequence[float]], stds: Sequence[Sequence[float]]
    ) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)
        first_mean, first_std = (torch.tensor(values[0]).view(1, 3, 1, 1) for values in (means, stds))
        for number, (mean, std) in enumerate(zip(means, stds, strict=True)):
            own_mean, own_std = (torch.tensor(values).view(1, 3, 1, 1) for values in (mean, std))
            self.register_buffer(f"scale{number}", first_std / own_std, persistent=False)
            self.register_buffer(f"shift{number}", (first_mean - own_mean) / own_std, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(self.parts(x), 1)

    def parts(self, x: Tensor) -> list[Tensor]:
        """The features of each net."""
        return [
            net(x * getattr(self, f"scale{number}") + getattr(self, f"shift{number}")).flatten(1)
            for number, net in enumerate(self.nets)
        ]
