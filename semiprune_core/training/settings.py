"""What a training run is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from semiprune_core.checks import check_range
from semiprune_core.learning.presets import SSL_PRESETS
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.settings import Settings

KIND = "ssl"
TRIAL = "preflight"
ARTIFACT = "pseudo"
CUSTOM = "custom"
"""The preset's name where the settings come from nowhere else."""


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    """What a job of the kind ``ssl`` is given. ``ssl`` are the values of :class:`SSLSettings`."""

    ssl: dict[str, Any] = field(default_factory=dict)
    preset: str = CUSTOM
    seed: int = 0

    def check(self) -> None:
        check_range("seed", self.seed, low=0, high=2**31 - 1)
        SSLSettings.from_json(self.ssl)

    @property
    def training(self) -> SSLSettings:
        return SSLSettings.from_json(self.ssl)

    def flat(self) -> dict[str, Any]:
        """All settings in one level, as an artifact keeps them and a table shows them."""
        return {**self.training.to_json(), "preset": self.preset, "seed": self.seed}


def title_of(settings: TrainSettings) -> str:
    preset = SSL_PRESETS.title(settings.preset) if settings.preset in SSL_PRESETS else settings.preset
    return f"{ALGORITHMS.title(settings.training.algorithm)}, {preset}, seed {settings.seed}"
