"""What a training run is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from semiprune_core.checks import check_choice, check_range
from semiprune_core.learning.frozen.settings import HEADS, FrozenSettings
from semiprune_core.learning.presets import SSL_PRESETS
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.results.pseudo import FROZEN, SCRATCH
from semiprune_core.settings import Settings

KIND = "ssl"
TRIAL = "preflight"
ARTIFACT = "pseudo"
CUSTOM = "custom"
"""The preset's name where the settings come from nowhere else."""
STARTS = {
    FROZEN: "Pretrained features",
    SCRATCH: "From scratch",
}
"""Where learning begins, and its name for people."""
PACKAGED_ENCODER = "efficientnet_lite0"


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    """What a job of the kind ``ssl`` is given.

    From scratch, ``ssl`` are the values of :class:`SSLSettings`. On pretrained features, ``frozen`` are those of
    :class:`FrozenSettings`, and ``encoder`` is whose features.
    """

    ssl: dict[str, Any] = field(default_factory=dict)
    preset: str = CUSTOM
    seed: int = 0
    start: str = SCRATCH
    frozen: dict[str, Any] = field(default_factory=dict)
    encoder: str = PACKAGED_ENCODER

    def check(self) -> None:
        check_range("seed", self.seed, low=0, high=2**31 - 1)
        check_choice("start", self.start, tuple(STARTS))
        SSLSettings.from_json(self.ssl)
        FrozenSettings.from_json(self.frozen)

    @property
    def training(self) -> SSLSettings:
        return SSLSettings.from_json(self.ssl)

    @property
    def head(self) -> FrozenSettings:
        return FrozenSettings.from_json(self.frozen)

    @property
    def is_frozen(self) -> bool:
        return self.start == FROZEN

    def flat(self) -> dict[str, Any]:
        """All settings in one level, as an artifact keeps them and a table shows them."""
        if self.is_frozen:
            return {"start": self.start, "encoder": self.encoder, **self.head.to_json(), "seed": self.seed}
        return {**self.training.to_json(), "preset": self.preset, "seed": self.seed}

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> Self:
        """The settings behind an artifact, which may be older than this version: what is not known is left out."""
        kind = FrozenSettings if values.get("start") == FROZEN else SSLSettings
        own = {name: value for name, value in values.items() if name in _names(kind)}
        seed = int(values["seed"])
        if kind is FrozenSettings:
            return cls(start=FROZEN, frozen=own, encoder=values["encoder"], seed=seed)
        return cls(ssl=own, preset=values["preset"], seed=seed)

    @classmethod
    def from_job(cls, values: Mapping[str, Any]) -> Self:
        """The settings of a job, which may be older than this version: what is not known is left out."""
        ssl = {name: value for name, value in values["ssl"].items() if name in _names(SSLSettings)}
        frozen = {name: value for name, value in values.get("frozen", {}).items() if name in _names(FrozenSettings)}
        return cls.from_json({**values, "ssl": ssl, "frozen": frozen})


def _names(settings: type[Settings]) -> set[str]:
    return {setting.name for setting in dataclasses.fields(settings)}


def title_of(settings: TrainSettings) -> str:
    if settings.is_frozen:
        return f"{HEADS[settings.head.head]} on {settings.encoder} features, seed {settings.seed}"
    preset = SSL_PRESETS.title(settings.preset) if settings.preset in SSL_PRESETS else settings.preset
    return f"{ALGORITHMS.title(settings.training.algorithm)}, {preset}, seed {settings.seed}"
