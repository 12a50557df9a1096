"""The public functions as docs/library.md prints them: names and defaults, without types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import semiprune_core as sp
from semiprune_core.embeddings.encoders import DEFAULT, PAIR

FUNCTIONS = ("embed", "learn", "train_dynamics", "score", "select", "prune", "evaluate", "open")
METHODS = ("train", "train_dynamics", "select", "finish", "export")
WIDTH = 116


def shown(name: str, function: Callable[..., Any]) -> str:
    """``name(a, b=1, *, c=2)``, broken into lines."""
    words, starred = [], False
    for one in inspect.signature(function).parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        mark = {one.VAR_KEYWORD: "**", one.VAR_POSITIONAL: "*"}.get(one.kind, "")
        default = PAIR if one.default == DEFAULT else one.default
        words.append(mark + one.name + ("" if one.default is one.empty else f"={default!r}".replace("'", '"')))
    lines = [f"{name}("]
    for number, word in enumerate(words):
        piece = word + (", " if number < len(words) - 1 else ")")
        if len(lines[-1] + piece.rstrip()) > WIDTH:
            lines.append("    ")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines) + (")" if not words else "")


def all_shown() -> dict[str, str]:
    functions = {name: shown(f"sp.{name}", getattr(sp, name)) for name in FUNCTIONS}
    methods = {f"Project.{name}": shown(f"project.{name}", getattr(sp.Project, name)) for name in METHODS}
    return functions | methods
