"""Who has been silent for too long, among the members a node watches."""

from __future__ import annotations

from collections.abc import Iterable

from faultline.harness.world.ports import Clock
from faultline.systems_under_test.patterns.data_replication.heartbeat import LocalPause, TimeoutBasedFailureDetector

__all__ = ["Silence"]


class Silence:
    """One detector per watched member. A check that comes late judges nobody: it is this node that was away."""

    def __init__(self, clock: Clock, timeout_us: int, interval_us: int) -> None:
        self._clock = clock
        self._timeout_us = timeout_us
        self._interval_us = interval_us
        self._pause = LocalPause(clock, timeout_us)
        self._pause.promise(interval_us)
        self._detectors: dict[str, TimeoutBasedFailureDetector] = {}

    def watch(self, addresses: Iterable[str]) -> None:
        """Watch these and nobody else. A newly watched member has just been heard, as it were."""
        self._detectors = {address: self._detectors.get(address) or self._new() for address in addresses}

    def heard(self, address: str) -> None:
        """A sign of life; of a member that is not watched it means nothing."""
        detector = self._detectors.get(address)
        if detector is not None:
            detector.heartbeat_received()

    def forget(self, address: str) -> None:
        """Count its silence from now."""
        if address in self._detectors:
            self._detectors[address] = self._new()

    def check(self) -> tuple[str, ...] | None:
        """Who is silent, in order; None when this node itself has slept. To be called every interval."""
        slept = self._pause.slept()
        self._pause.promise(self._interval_us)
        if slept:
            for address in self._detectors:
                self._detectors[address] = self._new()
            return None
        return tuple(address for address, detector in self._detectors.items() if not detector.check())

    def _new(self) -> TimeoutBasedFailureDetector:
        detector = TimeoutBasedFailureDetector(self._clock, self._timeout_us)
        detector.restart(self._timeout_us)
        return detector
