"""What a training run is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from semiprune_core.checks import check_choice, check_range
from semiprune_core.embeddings.encoders import DEFAULT
from semiprune_core.learning.frozen.settings import HEADS, FrozenSettings
from semiprune_core.learning.presets import SSL_PRESETS, preset_for, ssl_preset
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.results.pseudo import FINETUNED, FROZEN, SCRATCH
from semiprune_core.settings import Settings

KIND = "ssl"
TRIAL = "preflight"
ARTIFACT = "pseudo"
CUSTOM = "custom"
"""The preset's name where the settings come from nowhere else."""
AUTO = "auto"
STARTS = {
    AUTO: "Auto",
    FROZEN: "Pretrained features",
    FINETUNED: "Fine-tuned",
    SCRATCH: "From scratch",
}
"""Where learning begins, and its name for people."""
PACKAGED_ENCODER = DEFAULT
FINETUNED_ENCODER = DEFAULT.split("+")[0]
"""A net begins with the weights of one."""
BUDGET = 180.0
"""Seconds that Auto may take in all before it asks more of a person's time."""


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    """What a job of the kind ``ssl`` is given.

    From scratch, ``ssl`` are the values of :class:`SSLSettings`. On pretrained features, ``frozen`` are those of
    :class:`FrozenSettings`, and ``encoder`` is whose features; fine-tuned, it is whose weights the net begins with.
    Auto has both kinds of values, and ``budget`` seconds for all it tries.
    """

    ssl: dict[str, Any] = field(default_factory=dict)
    preset: str = CUSTOM
    seed: int = 0
    start: str = AUTO
    frozen: dict[str, Any] = field(default_factory=dict)
    encoder: str = PACKAGED_ENCODER
    budget: float = BUDGET

    def check(self) -> None:
        check_range("seed", self.seed, low=0, high=2**31 - 1)
        check_choice("start", self.start, tuple(STARTS))
        check_range("budget", self.budget, low=0)
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

    @property
    def is_finetuned(self) -> bool:
        return self.start == FINETUNED

    @property
    def is_auto(self) -> bool:
        return self.start == AUTO

    def flat(self) -> dict[str, Any]:
        """All settings in one level, as an artifact keeps them and a table shows them."""
        if self.is_frozen:
            return {"start": self.start, "encoder": self.encoder, **self.head.to_json(), "seed": self.seed}
        net = {**self.training.to_json(), "preset": self.preset, "seed": self.seed}
        if self.is_auto:
            features = {"encoder": self.encoder, "frozen": self.head.to_json()}
            return {"start": self.start, "budget": self.budget, **features, **net}
        if self.is_finetuned:
            del net["net"]  # the encoder is the net
            return {"start": self.start, "encoder": self.encoder, **net}
        return net

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> Self:
        """The settings behind an artifact, which may be older than this version: what is not known is left out."""
        start, seed = values.get("start", SCRATCH), int(values["seed"])
        if start == FROZEN:
            return cls(start=start, frozen=_known(FrozenSettings, values), encoder=values["encoder"], seed=seed)
        ssl = _known(SSLSettings, values)
        if start == SCRATCH:
            return cls(start=start, ssl=ssl, preset=values["preset"], seed=seed)
        if start == FINETUNED:
            return cls(start=start, ssl=ssl, preset=values["preset"], seed=seed, encoder=values["encoder"])
        return cls(
            start=start,
            ssl=ssl,
            preset=values["preset"],
            seed=seed,
            frozen=_known(FrozenSettings, values["frozen"]),
            encoder=values["encoder"],
            budget=values["budget"],
        )

    @classmethod
    def from_job(cls, values: Mapping[str, Any]) -> Self:
        """The settings of a job, which may be older than this version: what is not known is left out."""
        known = {
            "start": values.get("start", SCRATCH),  # all there was, once
            "ssl": _known(SSLSettings, values["ssl"]),
            "frozen": _known(FrozenSettings, values.get("frozen", {})),
        }
        return cls.from_json({**values, **known})


def asked_settings(
    *,
    start: str | None = None,
    algorithm: str | None = None,
    preset: str | None = None,
    encoder: str | None = None,
    seed: int = 0,
    budget: float = BUDGET,
    nproc: int = 1,
    changes: Mapping[str, Any],
) -> TrainSettings:
    """The preset with ``changes``; the algorithm's own settings go to its options.

    Who asks for an algorithm, a preset or several processes and names no start wants that run and no other.
    """
    start = start or (SCRATCH if algorithm or preset or nproc > 1 else AUTO)
    name = algorithm or "fixmatch"
    kind = ALGORITHMS[name]  # a misspelt one gets a suggestion
    encoder = encoder or (FINETUNED_ENCODER if start == FINETUNED else PACKAGED_ENCODER)
    if start == FROZEN:
        head = {"head": "ssl", "algorithm": name} if algorithm else {}
        return TrainSettings(start=start, frozen={**head, **changes}, encoder=encoder, seed=seed)
    preset = preset or preset_for(start)
    ssl = ssl_preset(preset, name)
    own = kind.from_json(ssl.options).to_json()
    outer: dict[str, Any] = {}
    options = dict(ssl.options)
    for key, value in changes.items():
        if key in own and key not in ssl.to_json():
            options[key] = value
        elif key.startswith("options."):
            options[key.removeprefix("options.")] = value
        else:
            outer[key] = value
    return TrainSettings(
        ssl=ssl.replace(**{**outer, "options": {**options, **outer.get("options", {})}}).to_json(),
        preset=preset,
        seed=seed,
        start=start,
        encoder=encoder,
        budget=budget,
    )


def _known(kind: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the ``values`` that ``kind`` still has."""
    names = {setting.name for setting in dataclasses.fields(kind)}
    return {name: value for name, value in values.items() if name in names}


def title_of(settings: TrainSettings, taken: str | None = None) -> str:
    """For people; ``taken`` is the start that Auto chose, where it has."""
    if settings.is_auto:
        chosen = f"Auto: {STARTS[taken].lower()}" if taken else "Auto"
        return f"{chosen}, seed {settings.seed}"
    if settings.is_frozen:
        return f"{HEADS[settings.head.head]} on {settings.encoder} features, seed {settings.seed}"
    if settings.is_finetuned:
        return f"{ALGORITHMS.title(settings.training.algorithm)}, {settings.encoder} fine-tuned, seed {settings.seed}"
    preset = SSL_PRESETS.title(settings.preset) if settings.preset in SSL_PRESETS else settings.preset
    return f"{ALGORITHMS.title(settings.training.algorithm)}, {preset}, seed {settings.seed}"
