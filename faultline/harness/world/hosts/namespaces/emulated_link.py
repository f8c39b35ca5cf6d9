"""The treatment of packets on a degraded link: a pure function of the link's quality, the packet and the time.

The model is that of Linux's netem: a packet is lost, or it waits – for its turn when the link has a rate, then for the
link's delay – and goes on, perhaps twice, perhaps with a flipped bit. Packets keep their order under jitter; only those
that are drawn for reordering skip the delay and overtake. As in the local world, draws are a function of (seed, link,
number of the packet).
"""

from __future__ import annotations

from dataclasses import dataclass

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.weather import DRAW_RANGE, draw, salt, uniform

__all__ = ["EmulatedLink", "PacketCounters", "Treatment", "with_flipped_bit"]

BACKLOG_NS_MAX = 2_000_000_000
"""A link with a rate lets packets wait for their turn so long; what comes on top of that is lost, as in a router."""
_TCP, _UDP = 6, 17
_CHECKSUM_AT = {_TCP: 16, _UDP: 6}
_MIXED = 0x9E3779B9


@dataclass(slots=True)
class PacketCounters:
    """The fates of the packets of one link; the harness's own probes are not among them."""

    seen: int = 0
    delayed: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0


@dataclass(frozen=True, slots=True)
class Treatment:
    """A packet goes on at `due_ns`, `copies` times, 0 when it is lost; with a flipped bit when `flip` draws one."""

    due_ns: int
    copies: int = 1
    flip: int | None = None


class EmulatedLink:
    """One directed link of `quality`. `counters` say what its packets met with, the harness's own probes excepted."""

    def __init__(self, seed: int, source: str, target: str) -> None:
        self.quality = LinkQuality()
        self.counters = PacketCounters()
        self._salts = {
            name: salt(seed, name, source, target) for name in ("loss", "duplicate", "jitter", "reorder", "corrupt")
        }
        self._number = 0
        self._last_due_ns = 0
        self._busy_until_ns = 0

    def degrade(self, quality: LinkQuality) -> None:
        """Treat packets by `quality` from now on; they no longer wait for those that came before."""
        self.quality = quality
        self._last_due_ns = self._busy_until_ns = 0

    def treat(self, byte_count: int, now_ns: int, *, probe: bool = False) -> Treatment:
        """Return the treatment of the packet that has just come."""
        self._number += 1
        counters = PacketCounters() if probe else self.counters
        counters.seen += 1
        due_ns = self._sent_ns(byte_count, now_ns)
        if self._happens("loss", self.quality.loss) or due_ns - now_ns > BACKLOG_NS_MAX:
            counters.lost += 1
            return Treatment(now_ns, copies=0)
        self._busy_until_ns = due_ns
        due_ns = self._delayed_ns(due_ns, counters)
        counters.delayed += due_ns > now_ns
        twice = self._happens("duplicate", self.quality.duplicate)
        counters.duplicated += twice
        flips = self._happens("corrupt", self.quality.corrupt)
        counters.corrupted += flips
        flip = draw(self._salts["corrupt"], self._number ^ _MIXED) if flips else None
        return Treatment(due_ns, 1 + twice, flip)

    def _sent_ns(self, byte_count: int, now_ns: int) -> int:
        """Return the time at which the packet has left at the link's rate."""
        if not self.quality.rate_kbit_per_s:
            return now_ns
        return max(now_ns, self._busy_until_ns) + byte_count * 8_000_000 // self.quality.rate_kbit_per_s

    def _delayed_ns(self, due_ns: int, counters: PacketCounters) -> int:
        if self._happens("reorder", self.quality.reorder):
            counters.reordered += 1
            return due_ns
        jitter_us = uniform(self._salts["jitter"], self._number, 0, self.quality.jitter_us)
        due_ns += (self.quality.delay_us + jitter_us) * 1_000
        self._last_due_ns = max(due_ns, self._last_due_ns)
        return self._last_due_ns

    def _happens(self, what: str, share: float) -> bool:
        return share > 0 and draw(self._salts[what], self._number) < share * DRAW_RANGE


def with_flipped_bit(packet: bytes, chosen: int) -> bytes:
    """Return an IPv4 packet with a bit flipped behind its headers, or in the transport's checksum when it is empty.

    The checksum is left as it was, so that the receiver can notice; headers are spared, since a wrong address would
    be another fault.
    """
    start = _payload_at(packet)
    bits = (len(packet) - start) * 8
    if bits <= 0:
        transport = (packet[0] & 0xF) * 4
        start, bits = transport + _CHECKSUM_AT.get(packet[9], 0), 16
    place = chosen % bits
    changed = bytearray(packet)
    changed[start + place // 8] ^= 1 << place % 8
    return bytes(changed)


def _payload_at(packet: bytes) -> int:
    transport = (packet[0] & 0xF) * 4
    if packet[9] == _TCP:
        return transport + (packet[transport + 12] >> 4) * 4
    return transport + 8
