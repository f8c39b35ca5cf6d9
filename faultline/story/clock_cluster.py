"""The hand-cranked cluster with nodes of `timestamped-kv`: every node's clock shows what the test says, in seconds."""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster, StaggeredPorts
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.timestamped_kv.messages import (
    ReadAt,
    ReadResponse,
    TimeRequest,
    WriteRequest,
    WriteResponse,
)
from faultline.systems_under_test.reference.timestamped_kv.system import TimestampedKv

__all__ = ["SECOND_US", "TITLE", "ClockCluster", "at", "count"]

SECOND_US = 1_000_000
TITLE = "title"


def at(seconds: int, ticks: int = 0) -> HybridTimestamp:
    """The stamp at so many seconds of the story."""
    return HybridTimestamp(seconds * SECOND_US, ticks)


def count(number: int) -> HybridTimestamp:
    """The stamp of a Lamport clock that shows `number`."""
    return HybridTimestamp(number, 0)


class _ClockPorts(StaggeredPorts):
    """The clocks begin at zero, so that a story can be told in seconds."""

    def wall_us(self) -> int:
        return self.now_us - SECOND_US + self.wall_offset_us


class ClockCluster(Cluster):
    """Nodes of timestamped-kv, and clients who ask one thing at a time."""

    system_type = TimestampedKv
    ports_type = _ClockPorts

    def set_clock(self, node: str, seconds: float) -> None:
        """Make the wall clock of `node` show so many seconds."""
        ports = self.ports[node]
        ports.wall_offset_us += int(seconds * SECOND_US) - ports.wall_us()

    def pass_seconds(self, seconds: float) -> None:
        self.pass_time(int(seconds * SECOND_US))

    def write(self, client: str, owner: str, value: Any, seen: HybridTimestamp = BEFORE_ALL, key: str = TITLE) -> None:
        """Hand a write to the owner of the key; `stamp_of` tells when it was acknowledged."""
        self.hand(client, owner, WriteRequest(self._next(client), key, value, seen))

    def stamp_of(self, client: str) -> HybridTimestamp | None:
        """The stamp of the client's last acknowledged write."""
        stamp: HybridTimestamp | None = self._answer(client, WriteResponse, "stamp")
        return stamp

    def error_of(self, client: str) -> str | None:
        error: str | None = self._answer(client, WriteResponse, "error")
        return error

    def read_time(self, client: str, node: str, seen: HybridTimestamp = BEFORE_ALL) -> HybridTimestamp:
        """The time at which `node` would let the client read."""
        self.hand(client, node, TimeRequest(self._next(client), seen))
        self.deliver()
        time: HybridTimestamp = self.inbox[client][-1][1].read_time
        return time

    def read_at(
        self, client: str, owner: str, read_time: HybridTimestamp, limit_us: int = 0, key: str = TITLE
    ) -> ReadResponse | None:
        """Ask the owner for the key at that time; None as long as it waits."""
        number = self._next(client)
        self.hand(client, owner, ReadAt(number, key, read_time, limit_us))
        return self.answer_to(client, number)

    def answer_to(self, client: str, number: int) -> ReadResponse | None:
        self.deliver()
        found = [message for _, message in self.inbox.get(client, ()) if message.request_number == number]
        return found[0] if found else None

    def last_read(self, client: str) -> ReadResponse | None:
        """The answer to the client's last request, if it has come."""
        return self.answer_to(client, self._numbers[client])

    def read_via(self, client: str, node: str, owner: str, max_offset_us: int = 0) -> Any:
        """Read the title by the clock of `node`; the value, which must be there at once."""
        time = self.read_time(client, node)
        limit_us = time.wall_us + max_offset_us if max_offset_us else 0
        answer = self.read_at(client, owner, time, limit_us)
        assert answer is not None
        return answer.value

    @property
    def _numbers(self) -> dict[str, int]:
        numbers: dict[str, int] = self.__dict__.setdefault("numbers", {})
        return numbers

    def _next(self, client: str) -> int:
        self._numbers[client] = self._numbers.get(client, 0) + 1
        return self._numbers[client]

    def _answer(self, client: str, kind: type, field: str) -> Any:
        self.deliver()
        answers = [message for _, message in self.inbox.get(NodeId(client), ()) if isinstance(message, kind)]
        return getattr(answers[-1], field) if answers else None
