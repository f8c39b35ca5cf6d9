"""The clocks of a `transactional-kv` node behind one interface: hybrid, Lamport, or an oracle on the first node.

All times have the form of a hybrid timestamp; a Lamport counter and an oracle's number stand in its wall part.

With an oracle, participants do not move any clock of their own. They vote for the time just above the largest they have
seen; the time for the commit is asked for with the largest vote, and is above it and above all that was given out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.promise import Promise
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridClock, HybridTimestamp
from faultline.systems_under_test.patterns.distributed_time.lamport_clock import LamportClock
from faultline.systems_under_test.reference.transactional_kv.messages import OracleTime, OracleTimeRequest

__all__ = ["HybridTimes", "LamportTimes", "OracleTimes", "Times"]

_RESERVED_US = 100_000
_RESERVED_TICKS = 1_000


class Times(ABC):
    """The time just after the largest one seen; a base for the three. Implements `Stamps` and `CommitTimes`."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._latest = BEFORE_ALL

    @abstractmethod
    def tick(self) -> HybridTimestamp:
        """Return the next time after the largest one seen."""

    def update_to(self, time: HybridTimestamp) -> None:
        self._latest = max(self._latest, time)

    def ceiling(self, time: HybridTimestamp) -> HybridTimestamp:
        return HybridTimestamp(time.wall_us + _RESERVED_TICKS, 0)

    def accepts(self, time: HybridTimestamp) -> bool:
        """Return whether a request with this time can be served: a time from far ahead would drag all clocks along."""
        return True

    def start_time(self, seen: HybridTimestamp) -> Promise[HybridTimestamp]:
        self.update_to(seen)
        return _now(self.tick())

    def commit_time(self, voted: HybridTimestamp) -> Promise[HybridTimestamp]:
        """Return the largest vote."""
        self.update_to(voted)
        return _now(voted)

    def retry(self) -> None:  # noqa: B027  # a hook: only an oracle can be silent
        """Ask again, from time to time, for an answer that did not come."""


class HybridTimes(Times):
    """Times of a hybrid clock, which follow the wall clock."""

    def __init__(self, ports: Ports, forward_jump_us: int) -> None:
        super().__init__(ports)
        self._forward_jump_us = forward_jump_us
        self._clock = HybridClock(ports.clock.wall_us)

    def tick(self) -> HybridTimestamp:
        return self._clock.now()

    def update_to(self, time: HybridTimestamp) -> None:
        self._clock.update_to(time)

    def ceiling(self, time: HybridTimestamp) -> HybridTimestamp:
        """Return a time a tenth of a second ahead."""
        return HybridTimestamp(time.wall_us + _RESERVED_US, 0)

    def accepts(self, time: HybridTimestamp) -> bool:
        """Return whether `time` is within the permitted jump of the wall clock, or of the latest time taken over."""
        ahead_of = max(self._ports.clock.wall_us(), self._clock.latest_time.wall_us)
        return time.wall_us - ahead_of <= self._forward_jump_us


class LamportTimes(Times):
    """Times of a Lamport clock, which only count."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self._clock = LamportClock()

    def tick(self) -> HybridTimestamp:
        return HybridTimestamp(self._clock.tick(0), 0)

    def update_to(self, time: HybridTimestamp) -> None:
        self._clock.update_to(time.wall_us)


class OracleTimes(Times):
    """Start and commit times from an oracle; `send` reaches it."""

    def __init__(self, ports: Ports, oracle: NodeId, send: Callable[[NodeId, Any], None]) -> None:
        super().__init__(ports)
        self._oracle = oracle
        self._send = send
        self._number = 0
        self._asked: dict[int, tuple[int, Promise[HybridTimestamp]]] = {}

    def tick(self) -> HybridTimestamp:
        """Return the next time after the largest seen, without taking it."""
        return HybridTimestamp(self._latest.wall_us + 1, 0)

    def start_time(self, seen: HybridTimestamp) -> Promise[HybridTimestamp]:
        """Ask the oracle for a time."""
        return self._ask(above=0)

    def commit_time(self, voted: HybridTimestamp) -> Promise[HybridTimestamp]:
        """Ask the oracle, after the last vote, for a time above it.

        After a restart a participant votes above the ceiling it had reserved, which the oracle need not have reached.
        """
        return self._ask(above=voted.wall_us)

    def handle_time(self, answer: OracleTime) -> None:
        """Take the oracle's answer."""
        asked = self._asked.pop(answer.number, None)
        if asked is not None:
            asked[1].complete(answer.time)

    def retry(self) -> None:  # a hook: only an oracle can be silent
        """Ask again. When the oracle gives out two times for one request, only the first is used."""
        for number, (above, _) in self._asked.items():
            self._send(self._oracle, OracleTimeRequest(number, above))

    def _ask(self, above: int) -> Promise[HybridTimestamp]:
        self._number += 1
        promise: Promise[HybridTimestamp] = Promise()
        self._asked[self._number] = (above, promise)
        self._send(self._oracle, OracleTimeRequest(self._number, above))
        return promise


def _now(time: HybridTimestamp) -> Promise[HybridTimestamp]:
    promise: Promise[HybridTimestamp] = Promise()
    promise.complete(time)
    return promise
