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
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridClock, HybridTimestamp
from faultline.systems_under_test.patterns.distributed_time.lamport_clock import LamportClock
from faultline.systems_under_test.patterns.promise import Promise
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
        """See `Stamps`."""

    def update_to(self, time: HybridTimestamp) -> None:
        """See `Stamps`."""
        self._latest = max(self._latest, time)

    def ceiling(self, time: HybridTimestamp) -> HybridTimestamp:
        """See `Stamps`."""
        return HybridTimestamp(time.wall_us + _RESERVED_TICKS, 0)

    def accepts(self, time: HybridTimestamp) -> bool:
        """Can a request with this time be served? One from too far ahead would drag all clocks along."""
        return True

    def start_time(self, seen: HybridTimestamp) -> Promise[HybridTimestamp]:
        """See `CommitTimes`."""
        self.update_to(seen)
        return _now(self.tick())

    def commit_time(self, voted: HybridTimestamp) -> Promise[HybridTimestamp]:
        """See `CommitTimes`: the largest vote."""
        self.update_to(voted)
        return _now(voted)

    def retry(self) -> None:  # noqa: B027  # a hook: only an oracle can be silent
        """From time to time: ask again for what was not answered."""


class HybridTimes(Times):
    """Times of a hybrid clock, which follow the wall clock."""

    def __init__(self, ports: Ports, forward_jump_us: int) -> None:
        super().__init__(ports)
        self._forward_jump_us = forward_jump_us
        self._clock = HybridClock(ports.clock.wall_us)

    def tick(self) -> HybridTimestamp:
        """See `Stamps`."""
        return self._clock.now()

    def update_to(self, time: HybridTimestamp) -> None:
        """See `Stamps`."""
        self._clock.update_to(time)

    def ceiling(self, time: HybridTimestamp) -> HybridTimestamp:
        """See `Stamps`: a tenth of a second ahead."""
        return HybridTimestamp(time.wall_us + _RESERVED_US, 0)

    def accepts(self, time: HybridTimestamp) -> bool:
        """Not more than the permitted jump ahead of the wall clock, or of what this node has taken over already."""
        ahead_of = max(self._ports.clock.wall_us(), self._clock.latest_time.wall_us)
        return time.wall_us - ahead_of <= self._forward_jump_us


class LamportTimes(Times):
    """Times of a Lamport clock, which only count."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self._clock = LamportClock()

    def tick(self) -> HybridTimestamp:
        """See `Stamps`."""
        return HybridTimestamp(self._clock.tick(0), 0)

    def update_to(self, time: HybridTimestamp) -> None:
        """See `Stamps`."""
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
        """See `Stamps`: the next time after the largest seen, which is not taken."""
        return HybridTimestamp(self._latest.wall_us + 1, 0)

    def start_time(self, seen: HybridTimestamp) -> Promise[HybridTimestamp]:
        """See `CommitTimes`: from the oracle."""
        return self._ask(above=0)

    def commit_time(self, voted: HybridTimestamp) -> Promise[HybridTimestamp]:
        """See `CommitTimes`: from the oracle, asked after the last vote, and above it.

        After a restart a participant votes above the ceiling it had reserved, which the oracle need not have reached.
        """
        return self._ask(above=voted.wall_us)

    def handle_time(self, answer: OracleTime) -> None:
        """The oracle's answer."""
        asked = self._asked.pop(answer.number, None)
        if asked is not None:
            asked[1].complete(answer.time)

    def retry(self) -> None:  # a hook: only an oracle can be silent
        """Ask again; a time that is given out twice for one request is used once."""
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
