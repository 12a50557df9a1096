"""Code that takes an input badly, to prove that the watch sees it."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from random import Random

from semiprune_core.errors import SourceError
from tests.fuzz.running import MOST_GROWTH, Said, TryOne


def misbehaving(base: Path) -> TryOne:
    """Does what the file ``allowed/what`` says."""
    what = (base / "allowed" / "what").read_text()

    def try_one(rng: Random) -> list[Said]:
        if what == "raises":
            raise KeyError("name")
        if what == "says nothing":
            raise SourceError("")
        if what == "names nothing":
            raise SourceError("This file cannot be read at all.", code="ERROR")
        if what == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        if what == "hangs":
            while True:
                pass
        if what == "grows":
            bytearray(b"x") * (MOST_GROWTH + (64 << 20))
        if what == "writes":
            (base / "outside" / "secret.png").write_bytes(b"")
        if what == "writes elsewhere":
            Path(f"/tmp/.semiprune-fuzz-{os.getpid()}").touch()
            Path(f"/tmp/.semiprune-fuzz-{os.getpid()}").unlink()
        if what == "calls":
            with socket.socket(type=socket.SOCK_DGRAM) as caller:
                caller.connect(("127.0.0.1", 9))
        return []

    return try_one
