"""What a job can do, and where it is written down.

A kind is a function ``run(context: JobContext) -> dict | None`` under a name in :data:`JOB_KINDS`. :func:`homes` finds
the module that registers it, so that a kind is imported by the worker that runs it and by nobody else: importing
``semiprune_core.jobs`` never imports torch. What a worker imports is decided here and never by a file of a job.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import semiprune_core
from semiprune_core.errors import UnknownNameError
from semiprune_core.registry import Registry

if TYPE_CHECKING:
    from semiprune_core.jobs.context import JobContext

JobFunction = Callable[["JobContext"], Mapping[str, Any] | None]

JOB_KINDS: Registry[JobFunction] = Registry("job kind", required=("title",))
DECORATOR = re.compile(r"^@JOB_KINDS\.register\((.*?)\)\n(?=@|def )", re.MULTILINE | re.DOTALL)


class Home(NamedTuple):
    """The module that registers a kind, and what must be known of it before that is imported."""

    module: str
    title: str
    device: str = "cpu"


@cache
def homes() -> dict[str, Home]:
    """Where each kind is registered, read from the source of the core: importing it all would load torch."""
    root = Path(semiprune_core.__file__).parent
    found: dict[str, Home] = {}
    for path in sorted(root.rglob("*.py")):
        module = ".".join((root.name, *path.relative_to(root).with_suffix("").parts))
        for arguments in DECORATOR.findall(path.read_text("utf-8")):
            kind, home = _registered(arguments, module)
            if kind in found:
                raise ValueError(f"{found[kind].module} and {module} both register the job kind '{kind}'. Rename one.")
            found[kind] = home
    return found


def _registered(arguments: str, module: str) -> tuple[str, Home]:
    """A kind and what is said of it, all of it literals."""
    call = ast.parse(f"register({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    try:
        (kind,) = (ast.literal_eval(value) for value in call.args)
        facts = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except ValueError as error:
        raise ValueError(f"{module} registers a job kind whose name or facts are no literals.") from error
    return kind, Home(module, facts["title"], facts.get("device", "cpu"))


def home_of(kind: str) -> Home:
    """What is known of ``kind`` without importing it; an unknown name is refused with a suggestion."""
    if kind in JOB_KINDS:
        facts = JOB_KINDS.facts(kind)
        return Home("", str(facts["title"]), str(facts.get("device", "cpu")))
    if kind not in homes():
        known = Registry[Home]("job kind")
        for name in {*homes(), *JOB_KINDS}:
            known.register(name)(Home("", name))
        known[kind]  # raises, with the known names
    return homes()[kind]


def load_kind(kind: str) -> JobFunction:
    """The function of ``kind``, importing its home where that has not happened yet."""
    if kind not in JOB_KINDS:
        home = home_of(kind)
        importlib.import_module(home.module)
        if kind not in JOB_KINDS:
            raise UnknownNameError(f"The module {home.module} does not register the job kind '{kind}'.")
    return JOB_KINDS[kind]
