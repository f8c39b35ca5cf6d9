"""Proof with packets: does a datagram from one host reach another?

The harness has a socket in each host's network namespace, so that it can speak as any host.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.namespaces.own_network import made_in
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.hosts.network.probe_marks import UNDEGRADED_TOS

__all__ = ["DatagramProbe", "HostSockets", "socket_in"]

PASSING_TIMEOUT_S = 1.0
LOST_TIMEOUT_S = 0.02
"""Within one machine a frame is delivered before the sender's call returns; this is for a machine in distress."""
_AGAIN_S = 0.1
"""The time after which a datagram is sent again: one that comes before a port has been opened is dropped."""


def socket_in(network: Path, address: str, type_of_service: int = UNDEGRADED_TOS) -> socket.socket:
    """Return a datagram socket on `address` in the network namespace `network`. Raises HarnessError."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, type_of_service)
            made.bind((address, 0))
        except OSError:
            made.close()
            raise
        return made

    try:
        return made_in(network, make)
    except OSError as error:
        raise HarnessError(
            f"No socket on {address} can be made in {network}: {error}.", "Is the host's link up?"
        ) from error


class HostSockets:
    """A socket in each host, made when it is first asked for and anew after a reboot.

    `addresses` by host; `network_of` finds a host's namespace; `make` makes a socket in it, on an address.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        network_of: Callable[[str], Path],
        make: Callable[[Path, str], socket.socket] = socket_in,
    ) -> None:
        self._addresses = addresses
        self._network_of = network_of
        self._make = make
        self._sockets: dict[str, tuple[int, socket.socket]] = {}

    def __getitem__(self, host: str) -> socket.socket:
        network = self._network_of(host)
        inode = network.stat().st_ino
        known = self._sockets.get(host)
        if known is None or known[0] != inode:
            if known is not None:
                known[1].close()
            known = self._sockets[host] = (inode, self._make(network, self._addresses[host]))
        return known[1]

    def close(self) -> None:
        """Close all sockets."""
        for _, made in self._sockets.values():
            made.close()
        self._sockets.clear()


class DatagramProbe:
    """Sends datagrams between hosts, which pass degraded links unharmed: they ask only whether a link is cut."""

    def __init__(self, addresses: Mapping[str, str], network_of: Callable[[str], Path]) -> None:
        self._sockets = HostSockets(addresses, network_of)
        self._sent = 0

    def passes(self, link: HostLink, *, expected: bool) -> bool:
        """Return whether a datagram gets through; where it is expected to, it may take its time."""
        return bool(self.passing([link], expected={link} if expected else set()))

    def passing(self, links: Collection[HostLink], *, expected: Set[HostLink]) -> frozenset[HostLink]:
        """Return those of `links` on which a datagram gets through; on those `expected` to, it may take its time."""
        under_way: dict[bytes, HostLink] = {}
        arriving = self._send(links, under_way)
        passed: set[HostLink] = set()
        began_s = sent_s = time.monotonic()
        while missing := [link for link in links if link not in passed]:
            # Whatever the time, we look: this thread may have slept while they arrived.
            now_s = time.monotonic()
            passed |= {under_way[content] for content in _arrived(arriving) if content in under_way}
            awaited = [link for link in missing if link in expected and link not in passed]
            if now_s - began_s > (PASSING_TIMEOUT_S if awaited else LOST_TIMEOUT_S):
                break
            if awaited and now_s - sent_s > _AGAIN_S:
                sent_s = now_s
                self._send(awaited, under_way)
        return frozenset(passed)

    def _send(self, links: Collection[HostLink], under_way: dict[bytes, HostLink]) -> list[socket.socket]:
        """Send a datagram over each of `links`, and note it; the sockets on which they arrive."""
        arriving = {target: self._sockets[target] for _, target in links}
        for source, target in links:
            self._sent += 1
            content = f"{self._sent}".encode()
            # Late ones of earlier probes do not count.
            under_way[content] = (source, target)
            # One that is refused at once, as over a link that is down, does not get through either.
            with suppress(OSError):
                self._sockets[source].sendto(content, arriving[target].getsockname())
        return list(arriving.values())

    def close(self) -> None:
        """Close all sockets."""
        self._sockets.close()


def _arrived(sockets: Collection[socket.socket]) -> list[bytes]:
    """Return the datagrams that arrive within a moment."""
    ready, _, _ = select.select(sockets, [], [], LOST_TIMEOUT_S / 4)
    arrived = []
    for arriving in ready:
        with suppress(BlockingIOError):
            while True:
                arrived.append(arriving.recv(64, socket.MSG_DONTWAIT))
    return arrived
