"""The planted bugs of `timestamped-kv`: each a record, and a change to one of the `Parts` or to the client.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any

from faultline.harness.system import PlantedBug
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.distributed_time.clock_bound_wait import PendingWrites
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.shared.planted_bugs import class_with_bugs, layered, together, with_bugs
from faultline.systems_under_test.reference.timestamped_kv.client import TimestampedKvClient
from faultline.systems_under_test.reference.timestamped_kv.clocks import HybridStamps, LamportStamps
from faultline.systems_under_test.reference.timestamped_kv.messages import (
    ReadAnswered,
    ReadAt,
    ReadResponse,
    WriteRequest,
)
from faultline.systems_under_test.reference.timestamped_kv.node import Parts
from faultline.systems_under_test.reference.timestamped_kv.waits import (
    Answered,
    CommitWait,
    NoWait,
    WriteWait,
    Written,
)

__all__ = ["PLANTED_BUGS", "client_class", "mutated_parts"]

_CAUSES = ("causal-pairs", "LMC-I3", "HYC-I1", "LMC-I4")

_RECORDS = (
    PlantedBug(
        name="ignore-request-stamp",
        pattern="lamport-clock",
        id="LMC-M1, HYC-M5",
        summary="a server stamps a write by its own clock alone, whatever the client has seen",
        shows_as="the effect gets a smaller stamp than its cause; who reads at the effect's stamp misses the cause",
        campaign="causes",
        caught_by=_CAUSES,
    ),
    PlantedBug(
        name="stamp-without-increment",
        pattern="lamport-clock",
        id="LMC-M2",
        summary="a server takes the maximum of the stamps and adds nothing",
        shows_as="cause and effect share a stamp; a second version of a key under one stamp stops the node",
        campaign="lamport-stamps",
        caught_by=(*_CAUSES, "node-crash"),
        options={"clock": "lamport"},
    ),
    PlantedBug(
        name="clock-not-restored",
        pattern="lamport-clock",
        id="LMC-M3, HYC-M7",
        summary="after a restart a server's clock begins anew, below the versions on its disk",
        shows_as="new versions are hidden below old ones",
        campaign="lamport-stamps",
        caught_by=(*_CAUSES, "node-crash"),
        options={"clock": "lamport"},
    ),
    PlantedBug(
        name="client-keeps-last-stamp",
        pattern="lamport-clock",
        id="LMC-M4",
        summary="a client remembers the last stamp it was given, not the largest",
        shows_as="the client's clock goes back, and what it writes next is stamped below what it knows",
        campaign="lamport-stamps",
        caught_by=_CAUSES,
        options={"clock": "lamport"},
    ),
    PlantedBug(
        name="wall-time-stamps",
        pattern="hybrid-clock",
        id="HYC-M1, LMC-M5",
        summary="a write is stamped with the wall time, and nothing else",
        shows_as="under wrong clocks effects come before causes, and new versions below old ones",
        campaign="causes",
        caught_by=(*_CAUSES, "node-crash"),
    ),
    PlantedBug(
        name="no-write-wait",
        pattern="clock-bound-wait",
        id="CBW-M1",
        summary="a write is shown and acknowledged at once",
        shows_as="a reader whose node's clock is slow misses an acknowledged write",
        campaign="write-wait",
        caught_by=("linearizability", "CBW-I1"),
        options={"wait": "write"},
    ),
    PlantedBug(
        name="answer-before-wait",
        pattern="clock-bound-wait",
        id="CBW-M2",
        summary="a write is acknowledged at once, and shown after the wait",
        shows_as="nobody sees an acknowledged write for as long as the writer waits",
        campaign="write-wait",
        caught_by=("linearizability", "CBW-I1"),
        options={"wait": "write"},
    ),
    PlantedBug(
        name="store-before-wait",
        pattern="clock-bound-wait",
        id="CBW-M3",
        summary="a write is shown at once, and acknowledged after the wait",
        shows_as="one reader sees the new value and a later one, whose node's clock is slow, the old one",
        campaign="write-wait",
        caught_by=("linearizability",),
        options={"wait": "write"},
    ),
    PlantedBug(
        name="stamp-earliest",
        pattern="clock-bound-wait",
        id="CBW-M4",
        summary="a write is stamped with the earliest the time may be",
        shows_as="a version is shown at or below a time that was read before",
        campaign="commit-wait",
        caught_by=("linearizability", "CBW-I1", "CBW-I3", "node-crash"),
        options={"wait": "commit"},
    ),
    PlantedBug(
        name="no-pending-check",
        pattern="clock-bound-wait",
        id="CBW-M6",
        summary="a reader does not wait for the writes before his time that are still waiting",
        shows_as="a version is shown at or below a time that was read before",
        campaign="commit-wait",
        caught_by=("CBW-I3",),
        options={"wait": "commit"},
    ),
    PlantedBug(
        name="no-read-wait",
        pattern="clock-bound-wait",
        id="CBW-M7",
        summary="a read at a time that is not past yet is answered at once",
        shows_as="a version is shown at or below a time that was read before",
        campaign="commit-wait",
        caught_by=("CBW-I3", "linearizability"),
        options={"wait": "commit"},
    ),
    PlantedBug(
        name="window-too-small",
        pattern="clock-bound-wait",
        id="CBW-M8",
        summary="a reader takes nothing above his time for uncertain",
        shows_as="a reader whose node's clock is slow misses an acknowledged write",
        campaign="read-restart",
        caught_by=("linearizability",),
        options={"wait": "restart"},
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""


class _IgnoreRequest:
    def tick(self, _: HybridTimestamp) -> HybridTimestamp:
        stamp: HybridTimestamp = super().tick(BEFORE_ALL)  # type: ignore[misc]  # mixed in before a class of stamps
        return stamp


class _WithoutIncrement(LamportStamps):
    def tick(self, seen: HybridTimestamp) -> HybridTimestamp:
        self.update_to(seen)
        return HybridTimestamp(self._clock.latest_time, 0)


class _NotRestored:
    def restore(self, _: HybridTimestamp) -> None:
        """The disk has versions, and the clock does not know."""


class _WallTime(HybridStamps):
    def tick(self, _: HybridTimestamp) -> HybridTimestamp:
        return HybridTimestamp(self._wall_us(), 0)


class _AnswerBeforeWait(WriteWait):
    def write(self, request: WriteRequest, written: Written) -> None:
        super().write(request, lambda _: None)
        written(self._issued)

    def _stamp(self, request: WriteRequest) -> HybridTimestamp:
        self._issued = super()._stamp(request)
        return self._issued


class _StoreBeforeWait(WriteWait):
    def write(self, request: WriteRequest, written: Written) -> None:
        stamp = self._stamp(request)
        self._show(request, stamp)
        passed_us = stamp.wall_us + self._settings.max_offset_us
        self._once(self._ports.clock.wall_us, passed_us, lambda: written(stamp))


class _StampEarliest(CommitWait):
    def _latest_us(self) -> int:
        return self._earliest_us()

    def _stamp(self, request: WriteRequest) -> HybridTimestamp:
        return HybridTimestamp(self._earliest_us(), 0)


class _NothingPends(PendingWrites):
    def at_or_before(self, key: str, read_time: HybridTimestamp) -> bool:
        return False


class _NoPendingCheck(CommitWait):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._pending = _NothingPends()


class _NoReadWait(CommitWait):
    def read(self, request: ReadAt, answered: Answered) -> None:
        super().read(request, lambda _: None)
        answered(self._answer(request))

    def _answer(self, request: ReadAt) -> ReadResponse:
        self._ports.trace.emit(ReadAnswered(request.key, request.read_time))
        return super()._answer(request)


def _waits(option: str, change: Callable[..., Any]) -> Callable[[Parts], Parts]:
    return lambda parts: replace(parts, waits={**parts.waits, option: change})


def _both_clocks(change: type[Any]) -> Callable[[Parts], Parts]:
    return together(layered("hybrid", change), layered("lamport", change))


_CHANGES: dict[str, Callable[[Parts], Parts]] = {
    "ignore-request-stamp": _both_clocks(_IgnoreRequest),
    "stamp-without-increment": layered("lamport", _WithoutIncrement),
    "clock-not-restored": _both_clocks(_NotRestored),
    "wall-time-stamps": layered("hybrid", _WallTime),
    "no-write-wait": _waits("write", NoWait),
    "answer-before-wait": _waits("write", _AnswerBeforeWait),
    "store-before-wait": _waits("write", _StoreBeforeWait),
    "stamp-earliest": _waits("commit", _StampEarliest),
    "no-pending-check": _waits("commit", _NoPendingCheck),
    "no-read-wait": _waits("commit", _NoReadWait),
}


class _KeepsLastStamp(TimestampedKvClient):
    def _learn(self, owner: NodeId, stamp: HybridTimestamp) -> None:
        self._seen = BEFORE_ALL
        super()._learn(owner, stamp)


class _WindowTooSmall(TimestampedKvClient):
    def _read_at(self, key: str, read_time: HybridTimestamp, limit_us: int) -> Generator[Any, Any, ReadResponse]:
        return super()._read_at(key, read_time, min(limit_us, read_time.wall_us))


_CLIENTS: dict[str, type[TimestampedKvClient]] = {
    "client-keeps-last-stamp": _KeepsLastStamp,
    "window-too-small": _WindowTooSmall,
}


def mutated_parts(names: Iterable[str]) -> Parts:
    """The parts of a node with the planted bugs `names`, the correct ones with none. Raises UsageError."""
    return with_bugs("timestamped-kv", names, Parts(), _CHANGES, elsewhere=_CLIENTS)


def client_class(names: Iterable[str]) -> type[TimestampedKvClient]:
    """The client with those of the planted bugs `names` that sit in it."""
    return class_with_bugs(names, TimestampedKvClient, _CLIENTS)
