"""A command: its arguments, its work and its answer."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from semiprune_core.errors import InvalidSettingError
from semiprune_core.project.workspace import Workspace
from semiprune_core.registry import Registry


@dataclass(frozen=True)
class Outcome:
    """A command's result: ``value`` for ``--json``, ``text`` for people, ``failed`` for a non-zero exit."""

    value: Any
    text: str
    failed: bool = False


def assignments(flag: str, texts: Sequence[str], example: str) -> dict[str, Any]:
    """Repeated ``flag KEY=VALUE`` arguments as a dictionary; a value that is not JSON is text.

    >>> assignments("--set", ["lr=0.05", "flip=true", "net=wrn_28_2"], "lr=0.05")
    {'lr': 0.05, 'flip': True, 'net': 'wrn_28_2'}
    """
    values: dict[str, Any] = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key:
            raise InvalidSettingError(f"{flag} takes KEY=VALUE, such as {example}; got '{text}'.")
        try:
            values[key] = json.loads(value)
        except json.JSONDecodeError:
            values[key] = value
    return values


@dataclass
class Console:
    """Progress on the terminal as one redrawn line; silent where standard error is not a terminal."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    quiet: bool = False
    _stop: bool = False
    _begun: float = field(default_factory=time.monotonic)
    _drawn: float = 0.0

    @property
    def is_live(self) -> bool:
        return not self.quiet and self.stream.isatty()

    def catch_interrupts(self) -> None:
        """The first Ctrl+C asks for a clean stop, the second ends at once."""

        def on_interrupt(*_: object) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True

        signal.signal(signal.SIGINT, on_interrupt)

    def report(self, done: int, total: int, /, **facts: Any) -> None:
        now = time.monotonic()
        if not self.is_live or (now - self._drawn < 0.1 and done < total):
            return
        self._drawn = now
        share = done / total if total else 0.0
        left = (now - self._begun) / share * (1 - share) if share else None
        words = [f"{done:,} of {total:,} {facts.get('unit', 'steps')}"]
        words += [f"{left:.0f} s left"] if left is not None else []
        words += [f"{name} {value:.3g}" for name, value in facts.items() if isinstance(value, float)]
        bar = "█" * round(24 * share)
        self.stream.write(f"\r{bar:<24} {', '.join(words)}\x1b[K")
        if done >= total:
            self.stream.write("\n")
        self.stream.flush()

    def begin(self, title: str) -> None:
        """Start a stage: print its title and count the time left from here."""
        self.say(title)
        self._begun, self._drawn = time.monotonic(), 0.0

    def should_stop(self) -> bool:
        return self._stop

    def say(self, text: str) -> None:
        if not self.quiet:
            self.stream.write(text + "\n")
            self.stream.flush()


@dataclass(frozen=True)
class Command:
    """``configure`` adds the arguments, ``run`` does the work.

    A command with a workspace of its own sets ``makes_home`` to False and leaves the usual one alone.
    """

    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Workspace, Console], Outcome]
    makes_home: bool = True


COMMANDS: Registry[Command] = Registry("command")
