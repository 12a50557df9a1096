"""A network of its own for the calling thread and what it starts, where every packet to the outside is counted.

All addresses of the world are routed to the loopback of this network: a call is refused at once instead of leaving. A
packet socket takes down what is not for loopback and what asks a name server. It is the kernel that tells, so that
calls are seen whichever library makes them.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
RTM_NEWROUTE, REQUEST_CREATE_ACK, RTA_OIF = 24, 0x1 | 0x400 | 0x4, 4
TABLE_LOCAL, BOOT, SCOPE_HOST, RTN_LOCAL = 255, 3, 254, 2
ETH_P_ALL, PACKET_OUTGOING = 3, 4
SO_ATTACH_FILTER = 26
BYTE, HALF, IF_EQUAL, RETURN = 0x30, 0x28, 0x15, 0x06
NOT_PLAIN_LOOPBACK = (
    (BYTE, 0, 0, 0),
    (IF_EQUAL, 0, 4, 0x45),  # IPv4 without options
    (BYTE, 0, 0, 16),
    (IF_EQUAL, 0, 2, 127),  # to 127.x.x.x
    (HALF, 0, 0, 22),
    (IF_EQUAL, 0, 1, 53),  # to a port that is not a name server's
    (RETURN, 0, 0, 64),
    (RETURN, 0, 0, 0),
)
"""Keeps the traffic of the app itself out of the socket's buffer (classic BPF: operation, jumps, operand)."""


class Network:
    """A network without a way out; raises OSError where none may be made."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "unshare"):
            raise OSError("this system has no network namespaces")
        self._setns = libc.setns
        with open(own_network()) as before:
            _checked(libc.unshare(CLONE_NEWNET))
            try:
                self._inside = os.open(own_network(), os.O_RDONLY | os.O_CLOEXEC)
                self._packets = lead_all_to_loopback()
            finally:
                _checked(self._setns(before.fileno(), CLONE_NEWNET))

    @contextlib.contextmanager
    def entered(self) -> Iterator[Network]:
        """Sockets and processes that this thread makes meanwhile are in this network."""
        with open(own_network()) as before:
            _checked(self._setns(self._inside, CLONE_NEWNET))
            try:
                yield self
            finally:
                _checked(self._setns(before.fileno(), CLONE_NEWNET))

    def holds(self, pid: int) -> bool:
        return os.stat(f"/proc/{pid}/ns/net").st_ino == os.fstat(self._inside).st_ino

    def calls(self) -> list[str]:
        """The packets since the last look that were sent to the outside or to a name server."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packet, sender = self._packets.recvfrom(64)
                if sender[2] == PACKET_OUTGOING and (call := call_of(packet)):
                    found.append(call)
        return found

    def close(self) -> None:
        self._packets.close()
        os.close(self._inside)


def own_network() -> str:
    return "/proc/thread-self/ns/net"


def lead_all_to_loopback() -> socket.socket:
    """Set the loopback up as every address there is; the socket sees what is sent from now on."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    add_route_to_all(socket.AF_INET)
    with contextlib.suppress(OSError):  # where there is no IPv6 nothing leaves by it
        add_route_to_all(socket.AF_INET6)
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    packets.setblocking(False)
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in NOT_PLAIN_LOOPBACK))
    chain = struct.pack("HL", len(NOT_PLAIN_LOOPBACK), ctypes.addressof(program))
    packets.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, chain)
    return packets


def add_route_to_all(family: int) -> None:
    route = struct.pack("8BI", family, 0, 0, 0, TABLE_LOCAL, BOOT, SCOPE_HOST, RTN_LOCAL, 0)
    route += struct.pack("HHI", 8, RTA_OIF, socket.if_nametoindex("lo"))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("IHHII", 16 + len(route), RTM_NEWROUTE, REQUEST_CREATE_ACK, 1, 0) + route)
        (refused,) = struct.unpack_from("i", kernel.recv(256), 16)
    if refused:
        raise OSError(-refused, os.strerror(-refused))


def call_of(packet: bytes) -> str | None:
    """Where a packet goes, unless that is this machine itself: ``address:port``."""
    is_v4 = packet[0] >> 4 == 4
    address = ipaddress.ip_address(packet[16:20] if is_v4 else packet[24:40])
    port = int.from_bytes(packet[22:24] if is_v4 else packet[42:44])
    return None if address.is_loopback and port != 53 else f"{address}:{port}"


def _checked(answer: int) -> None:
    if answer:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
