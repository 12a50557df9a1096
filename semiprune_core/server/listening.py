"""The sockets on which this process waits for browsers."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator


def send_at_once() -> None:
    """Let answers leave without waiting for the receipt of the piece before.

    Streamlit binds its sockets in a way that keeps asyncio from switching this on for the connections, and a small
    answer over a kept connection then takes 40 ms more. Connections inherit it from the socket that accepts them.
    """
    for listener in _listening():
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def is_listening(port: int) -> bool:
    """Whether this process waits at ``port``. A server other than Streamlit's has its own, and opens it later."""
    return any(listener.getsockname()[1] == port for listener in _listening())


def _listening() -> Iterator[socket.socket]:
    for number in os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else ():
        try:
            handle = socket.socket(fileno=os.dup(int(number)))
        except OSError:  # no socket, or closed meanwhile
            continue
        with handle:
            is_tcp = handle.family in (socket.AF_INET, socket.AF_INET6) and handle.type == socket.SOCK_STREAM
            if is_tcp and handle.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield handle
