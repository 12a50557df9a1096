"""Every setting of a training run in words: what it does, what it may be, where it belongs. For forms and help.

The words stand below the field in its class where its author put them, and here where the name was enough for code.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from dataclasses import dataclass
from typing import Any

from semiprune_core.learning.settings import CROPS, PRECISIONS, SSLSettings
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.settings import Settings

GROUPS: dict[str, tuple[str, ...]] = {
    "Network and schedule": ("net", "epochs", "steps_per_epoch", "batch_size", "unlabeled_ratio", "checkpoint_every"),
    "Optimiser": ("lr", "momentum", "nesterov", "weight_decay", "decay_norms", "clip_norm", "precision"),
    "Image views": ("shift", "crop", "n_ops", "strength", "cutout"),
    "Measuring": ("held_out", "refit", "cross_fit"),
}
UNLABELED_GROUP = "Unlabeled images"
"""What is in no other group, the algorithm's own settings first."""
ELSEWHERE = ("algorithm", "options", "flip")
"""Settings that a form asks for in places of their own."""
CHOICES: dict[str, tuple[str, ...]] = {
    "precision": PRECISIONS,
    "crop": CROPS,
    "distribution_alignment": ("none", "labels", "uniform"),
}
ABOUT = {
    "net": "The network to train. Larger networks can learn more and take longer.",
    "epochs": "How many times the run pauses to measure itself; its length is epochs times steps per epoch.",
    "batch_size": "Labeled images per step. Fewer need less memory.",
    "lr": "Learning rate at the start; it then falls along a cosine.",
    "momentum": "How much of the previous step's direction carries over.",
    "nesterov": "Look ahead along the momentum before each step.",
    "weight_decay": "How strongly weights are pulled towards zero.",
    "ema_decay": "How slowly the averaged network, which gives the pseudo-labels, follows the one in training.",
    "threshold": "How sure the model must be of an unlabeled image before it learns from its own prediction (tau).",
    "unlabeled_weight": "Weight of the loss on unlabeled images relative to labeled ones (lambda_u).",
    "fairness_weight": "Weight of the term that keeps predictions spread over the classes (w_f).",
    "ramp": "Fraction of the run over which the unlabeled weight grows from 0 to its full value.",
    "flip": "Mirror images left to right. Turn off for digits, signs and letters, where left and right matter.",
    "algorithm": "How the run learns from unlabeled images.",
    "options": "The algorithm's own settings.",
}
OWN = {
    ("freematch", "momentum"): "How slowly the thresholds follow the model's confidence (lambda).",
    ("flexmatch", "warm_up"): "Count images without a confident label as a class of their own; thresholds rise slowly.",
}


@dataclass(frozen=True)
class SettingHelp:
    """One setting. ``kind`` is bool, int, float or str; ``choices`` the legal values where they are few."""

    name: str
    title: str
    about: str
    kind: type
    default: Any
    choices: tuple[str, ...] = ()


def title_of(name: str) -> str:
    """
    >>> title_of("unlabeled_ratio")
    'Unlabeled ratio'
    """
    words = {"lr": "Learning rate", "ema_decay": "EMA decay", "n_ops": "Strong operations"}
    return words.get(name, name.replace("_", " ").capitalize())


@functools.cache
def help_for(cls: type[Settings], algorithm: str | None = None) -> dict[str, SettingHelp]:
    """The settings of ``cls`` by name, in their order; ``algorithm`` where they are an algorithm's own."""
    words = _words(cls)
    help_by_name = {}
    for field in dataclasses.fields(cls):
        default = field.default if field.default is not dataclasses.MISSING else None
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        about = OWN.get((algorithm or "", field.name)) or words.get(field.name) or ABOUT.get(field.name, "")
        choices = CHOICES.get(field.name, ())
        help_by_name[field.name] = SettingHelp(field.name, title_of(field.name), about, type(default), default, choices)
    return help_by_name


def ssl_help() -> dict[str, SettingHelp]:
    return help_for(SSLSettings)


def algorithm_help(name: str) -> dict[str, SettingHelp]:
    return help_for(ALGORITHMS[name], name)  # type: ignore[arg-type]  # mypy takes a class with __eq__ for unhashable


def ssl_help_by_group() -> dict[str, list[SettingHelp]]:
    """The settings of an SSL run under their headings; one that is in no list joins the unlabeled images."""
    everything = ssl_help()
    taken = {name for names in GROUPS.values() for name in names} | set(ELSEWHERE)
    groups = {title: [everything[name] for name in names if name in everything] for title, names in GROUPS.items()}
    groups[UNLABELED_GROUP] = [setting for name, setting in everything.items() if name not in taken]
    return groups


def _words(cls: type) -> dict[str, str]:
    """The strings below the fields of a class and its bases."""
    words: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, after in zip(body.body, body.body[1:]):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                words[field.target.id] = str(after.value.value)
    return words
