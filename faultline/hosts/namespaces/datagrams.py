"""Proof with packets: does a datagram from one host reach another?

A socket belongs for ever to the network namespace in which it was made. So a thread enters each host's namespace
once, makes a socket there and ends, and the harness can then speak as any host at the cost of a system call.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.hosts.links import HostLink

__all__ = ["DatagramProbe", "socket_in"]

PASSING_TIMEOUT_S = 1.0
LOST_TIMEOUT_S = 0.02
"""Within one machine a frame is delivered before the sender's call returns; this is for a machine in distress."""
_NETWORK = 0x40000000


def socket_in(network: Path, address: str) -> socket.socket:
    """A datagram socket on `address` in the network namespace `network`. Raises HarnessError."""
    made: list[socket.socket] = []
    errors: list[OSError] = []

    def make() -> None:
        try:
            _enter(network)
            made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            made[0].bind((address, 0))
        except OSError as error:
            errors.append(error)

    # Only the thread changes over, and it ends here.
    thread = threading.Thread(target=make, name="enter-namespace")
    thread.start()
    thread.join()
    if errors:
        for half_made in made:
            half_made.close()
        raise HarnessError(f"The host's network {network} cannot be entered: {errors[0]}.", "Does the host still run?")
    return made[0]


def _enter(network: Path) -> None:
    descriptor = os.open(network, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(descriptor, _NETWORK):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(descriptor)


class DatagramProbe:
    """Sends datagrams between hosts. `addresses` by host, `network_of` finds a host's namespace anew after a reboot."""

    def __init__(self, addresses: Mapping[str, str], network_of: Callable[[str], Path]) -> None:
        self._addresses = addresses
        self._network_of = network_of
        self._sockets: dict[str, tuple[int, socket.socket]] = {}
        self._sent = 0

    def passes(self, link: HostLink, *, expected: bool) -> bool:
        """Does a datagram get through? When it is expected to, it may take its time."""
        source, target = self._socket(link[0]), self._socket(link[1])
        self._sent += 1
        content = f"{self._sent}".encode()
        target.settimeout(PASSING_TIMEOUT_S if expected else LOST_TIMEOUT_S)
        try:
            source.sendto(content, target.getsockname())
            # Late ones of earlier probes do not count.
            while target.recv(64) != content:
                pass
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close all sockets."""
        for _, made in self._sockets.values():
            made.close()
        self._sockets.clear()

    def _socket(self, host: str) -> socket.socket:
        network = self._network_of(host)
        inode = network.stat().st_ino
        known = self._sockets.get(host)
        if known is None or known[0] != inode:
            if known is not None:
                known[1].close()
            known = self._sockets[host] = (inode, socket_in(network, self._addresses[host]))
        return known[1]
