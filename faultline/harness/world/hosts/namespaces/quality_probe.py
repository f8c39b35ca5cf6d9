"""Proof with packets that links are as bad as they should be: datagrams sent from host to host, counted and timed.

They pass cut links, so that quality and cuts are proved independently; they carry no checksum of UDP, so that spoilt
ones are seen here and not thrown away by the kernel; and the kernel notes when each arrives, so that a slow reader
does not take an early one for late.
"""

from __future__ import annotations

import select
import socket
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.namespaces.datagrams import HostSockets, socket_in
from faultline.harness.world.hosts.namespaces.own_network import BUFFER_BYTES, enlarge_buffers
from faultline.harness.world.hosts.network.link_quality import PROBE_BYTES, ProbeResult, probes_needed
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.hosts.network.probe_marks import PROBE_TOS

__all__ = ["QualityProbe"]

_HEADER = struct.Struct("!IIQ")
_CHECK = struct.Struct("!I")
_SMALL = b"\0" * 32
_LARGE = b"\0" * (PROBE_BYTES - _HEADER.size - _CHECK.size)
_NO_CHECKSUM, _TIMESTAMPS = 11, 35
_TIMESTAMP = struct.Struct("@qq")
_PATIENCE_S = 1.0
_POLL_S = 0.005
_QUIET_S = 0.02
_DRAIN_EVERY = 32


def _probe_socket(network: Path, address: str) -> socket.socket:
    made = socket_in(network, address, PROBE_TOS)
    made.setsockopt(socket.SOL_SOCKET, _NO_CHECKSUM, 1)
    made.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
    enlarge_buffers(made, BUFFER_BYTES)
    made.setblocking(False)
    return made


class QualityProbe:
    """Sends bursts over links. `addresses` by host; `network_of` finds a host's namespace."""

    def __init__(self, addresses: Mapping[str, str], network_of: Callable[[str], Path]) -> None:
        self._sockets = HostSockets(addresses, network_of, _probe_socket)
        self._hosts = {address: host for host, address in addresses.items()}
        self._addresses = addresses
        self._round = 0

    def observe(
        self, expected: Mapping[HostLink, LinkQuality], settled: Callable[[Mapping[HostLink, int]], bool]
    ) -> dict[HostLink, ProbeResult]:
        """Send over each link what shows whether it has the quality expected of it, over all links at once.

        `settled` tells whether the bad links have done with all that was sent; until then late ones are waited for.
        """
        self._round += 1
        burst = _Burst(self._round, expected)
        targets = {target: self._sockets[target] for _, target in expected}
        for target in targets.values():
            _discard(target)
        self._send(burst, targets)
        deadline_s = time.monotonic() + _PATIENCE_S + burst.longest_s()
        while not burst.is_complete(settled) and time.monotonic() < deadline_s:
            self._gather(burst, targets, _POLL_S)
        while burst.may_have_more() and self._gather(burst, targets, _QUIET_S):
            pass
        return burst.results

    def close(self) -> None:
        """Close all sockets."""
        self._sockets.close()

    def _send(self, burst: _Burst, targets: Mapping[str, socket.socket]) -> None:
        sources = {source: self._sockets[source] for source, _ in burst.results}
        addresses = {name: target.getsockname() for name, target in targets.items()}
        sent = 0
        for number in range(max(result.sent for result in burst.results.values())):
            for (source, target), result in burst.results.items():
                if number < result.sent:
                    # A link that is down refuses at once; then it is lost, as it is on the way.
                    with suppress(OSError):
                        sources[source].sendto(burst.datagram((source, target), number), addresses[target])
                    sent += 1
                    if not sent % _DRAIN_EVERY:
                        self._gather(burst, targets, 0.0)

    def _gather(self, burst: _Burst, targets: Mapping[str, socket.socket], timeout_s: float) -> bool:
        """Take the datagrams that have come, or come within the time, and return whether there were any."""
        ready, _, _ = select.select(list(targets.values()), [], [], timeout_s)
        for name, target in targets.items():
            if target in ready:
                self._read(burst, name, target)
        return bool(ready)

    def _read(self, burst: _Burst, target: str, arriving: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                content, ancillary, _, sender = arriving.recvmsg(PROBE_BYTES, socket.CMSG_SPACE(_TIMESTAMP.size))
                source = self._hosts.get(sender[0])
                if source is not None and ancillary:
                    seconds, nanoseconds = _TIMESTAMP.unpack(ancillary[0][2])
                    burst.take((source, target), content, seconds * 1_000_000_000 + nanoseconds)


class _Burst:
    """The datagrams of one round, and what has come of them."""

    def __init__(self, number: int, expected: Mapping[HostLink, LinkQuality]) -> None:
        self._number = number
        self._expected = expected
        self._began_ns = time.time_ns()
        self._came: dict[HostLink, set[int]] = {link: set() for link in expected}
        self._highest = dict.fromkeys(expected, 0)
        self.results = {link: ProbeResult(probes_needed(quality)) for link, quality in expected.items()}

    def datagram(self, link: HostLink, number: int) -> bytes:
        """Return the datagram `number` on `link`, with the time of its sending and a check of its own."""
        body = _HEADER.pack(self._number, number, time.time_ns())
        body += _LARGE if self._expected[link].rate_kbit_per_s else _SMALL
        return _CHECK.pack(zlib.crc32(body)) + body

    def take(self, link: HostLink, content: bytes, arrived_ns: int) -> None:
        """Count what arrived; what belongs to an earlier round does not count."""
        result = self.results.get(link)
        if result is None or len(content) < _CHECK.size + _HEADER.size:
            return
        body = content[_CHECK.size :]
        result.span_us = max(result.span_us, (arrived_ns - self._began_ns) // 1_000)
        if _CHECK.unpack_from(content)[0] != zlib.crc32(body):
            result.corrupted += 1
            return
        burst, number, sent_ns = _HEADER.unpack_from(body)
        if burst != self._number:
            return
        if number in self._came[link]:
            result.duplicates += 1
            return
        result.overtaken += number < self._highest[link]
        self._highest[link] = max(number, self._highest[link])
        self._came[link].add(number)
        result.lateness_us.append((arrived_ns - sent_ns) // 1_000)

    def is_complete(self, settled: Callable[[Mapping[HostLink, int]], bool]) -> bool:
        """Return whether every datagram has come that ever will."""
        healthy = LinkQuality()
        bad = {link: result.sent for link, result in self.results.items() if self._expected[link] != healthy}
        rest = [result for link, result in self.results.items() if link not in bad]
        return all(len(result.lateness_us) >= result.sent for result in rest) and (not bad or settled(bad))

    def may_have_more(self) -> bool:
        """Return whether it is worth waiting for datagrams on their way from the kernel to us."""
        return any(
            len(result.lateness_us) != result.sent or self._expected[link].duplicate
            for link, result in self.results.items()
        )

    def longest_s(self) -> float:
        """Return the delay that the worst link adds to everything."""
        waits_s = [(quality.delay_us + quality.jitter_us) / 1e6 for quality in self._expected.values()]
        narrow = any(quality.rate_kbit_per_s for quality in self._expected.values())
        bad = any(quality != LinkQuality() for quality in self._expected.values())
        return max(waits_s, default=0.0) + (4.0 if bad else 0.0) + (4.0 if narrow else 0.0)


def _discard(arriving: socket.socket) -> None:
    """Forget what is left from earlier rounds."""
    with suppress(BlockingIOError):
        while True:
            arriving.recv(PROBE_BYTES)
