"""The members that a node watches, and those of them that have been silent for too long.

With `heartbeats=all` each node watches all others. With `heartbeats=ring` the members stand in a ring, in the order of
their addresses, and each watches the two before it; it looks past a silent one, so that no member is left unwatched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from faultline.harness.world.ports import Clock
from faultline.systems_under_test.patterns.data_replication.heartbeat import LocalPause, TimeoutBasedFailureDetector

__all__ = ["NEIGHBOURS", "Silence", "neighbours"]

NEIGHBOURS = 2
"""The members that each one watches in the ring."""


def neighbours(own: str, members: Collection[str], direction: int, silent: Collection[str] = ()) -> list[str]:
    """Return the members next to `own`, in `direction` 1 or -1, until enough of them are not silent."""
    ring = sorted(members)
    place = ring.index(own)
    found: list[str] = []
    for step in range(1, len(ring)):
        found.append(ring[(place + direction * step) % len(ring)])
        if sum(address not in silent for address in found) == NEIGHBOURS:
            break
    return found


class Silence:
    """The detectors of the watched members. A check that comes late judges none of them: this node itself was away."""

    def __init__(self, clock: Clock, timeout_us: int, interval_us: int) -> None:
        self._clock = clock
        self._timeout_us = timeout_us
        self._interval_us = interval_us
        self._pause = LocalPause(clock, timeout_us)
        self._pause.promise(interval_us)
        self._detectors: dict[str, TimeoutBasedFailureDetector] = {}

    def watch(self, addresses: Iterable[str]) -> None:
        """Watch these members and no others. A newly watched member counts as just heard."""
        self._detectors = {address: self._detectors.get(address) or self._new() for address in addresses}

    def heard(self, address: str) -> None:
        """Take a sign of life; one of a member that is not watched is ignored."""
        detector = self._detectors.get(address)
        if detector is not None:
            detector.heartbeat_received()

    def forget(self, address: str) -> None:
        """Count the silence of the member from now on."""
        if address in self._detectors:
            self._detectors[address] = self._new()

    def check(self) -> tuple[str, ...] | None:
        """Return the silent members, in order; None when this node itself has slept. Call it every interval."""
        slept = self._pause.slept()
        self._pause.promise(self._interval_us)
        if slept:
            # Heartbeats that came meanwhile may still wait unread: each member gets a full timeout to be heard again.
            for address in self._detectors:
                self._detectors[address] = self._new()
            return None
        return tuple(address for address, detector in self._detectors.items() if not detector.check())

    def _new(self) -> TimeoutBasedFailureDetector:
        detector = TimeoutBasedFailureDetector(self._clock, self._timeout_us)
        detector.restart(self._timeout_us)
        return detector
