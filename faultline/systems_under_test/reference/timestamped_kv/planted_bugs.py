"""The planted bugs of `timestamped-kv`: each a class that changes one of the `Parts`, or the client.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.distributed_time.clock_bound_wait import PendingWrites
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs
from faultline.systems_under_test.reference.timestamped_kv.client import TimestampedKvClient
from faultline.systems_under_test.reference.timestamped_kv.clocks import HybridStamps, LamportStamps
from faultline.systems_under_test.reference.timestamped_kv.messages import (
    ReadAnswered,
    ReadAt,
    ReadResponse,
    TimeRequest,
    TimeResponse,
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

__all__ = ["BUGS"]

_CAUSES = ("causal-pairs", "LMC-I3", "HYC-I1", "LMC-I4")

BUGS = PlantedBugs("timestamped-kv", Parts)
_LAMPORT = BUGS.group(
    pattern="lamport-clock", campaign="lamport-stamps", caught_by=_CAUSES, options={"clock": "lamport"}
)
_WRITE_WAIT = BUGS.group(
    pattern="clock-bound-wait",
    campaign="write-wait",
    caught_by=("linearizability", "CBW-I1"),
    options={"wait": "write"},
)
_COMMIT_WAIT = BUGS.group(
    pattern="clock-bound-wait",
    campaign="commit-wait",
    caught_by=("CBW-I3", "linearizability"),
    options={"wait": "commit"},
)


@BUGS.plant(
    "ignore-request-stamp",
    "LMC-M1, HYC-M5",
    part=("hybrid", "lamport"),
    pattern="lamport-clock",
    campaign="causes",
    caught_by=_CAUSES,
)
class _IgnoreRequest:
    """A server stamps a write by its own clock alone, whatever the client has seen.

    Shows as: the effect gets a smaller stamp than its cause; a read at the effect's stamp misses the cause.
    """

    def tick(self, _: HybridTimestamp) -> HybridTimestamp:
        stamp: HybridTimestamp = super().tick(BEFORE_ALL)  # type: ignore[misc]  # mixed in before a class of stamps
        return stamp


@_LAMPORT.plant("stamp-without-increment", "LMC-M2", part="lamport", caught_by=(*_CAUSES, "node-crash"))
class _WithoutIncrement(LamportStamps):
    """A server takes the maximum of the stamps and adds nothing.

    Shows as: cause and effect share a stamp; a second version of a key under one stamp stops the node.
    """

    def tick(self, seen: HybridTimestamp) -> HybridTimestamp:
        self.update_to(seen)
        return HybridTimestamp(self._clock.latest_time, 0)


@_LAMPORT.plant("clock-not-restored", "LMC-M3, HYC-M7", part=("hybrid", "lamport"), caught_by=(*_CAUSES, "node-crash"))
class _NotRestored:
    """After a restart a server's clock begins anew, below the versions on its disk.

    Shows as: new versions are hidden below old ones.
    """

    def restore(self, _: HybridTimestamp) -> None:
        """Forget that versions with stamps are on the disk."""


@_LAMPORT.plant("client-keeps-last-stamp", "LMC-M4", part="client")
class _KeepsLastStamp(TimestampedKvClient):
    """A client remembers the last stamp it was given, not the largest.

    Shows as: the client's clock goes back, and its next write is stamped below a version that it knows.
    """

    def _learn(self, owner: NodeId, stamp: HybridTimestamp) -> None:
        self._seen = BEFORE_ALL
        super()._learn(owner, stamp)


@BUGS.plant(
    "reader-forgets-its-stamp",
    "HYC-M8",
    part="client",
    pattern="hybrid-clock",
    campaign="causal-writes",
    caught_by=("dependent-writes",),
)
class _ForgetsItsStamp(TimestampedKvClient):
    """A reader asks its node for the time without the largest stamp that it has seen.

    Shows as: under wrong clocks a client that has read an effect reads its cause as of an earlier time.
    """

    def _node_time(self) -> Generator[Any, Any, HybridTimestamp]:
        answer: TimeResponse = yield self._node, lambda number: TimeRequest(number, BEFORE_ALL)
        return answer.read_time


@BUGS.plant(
    "wall-time-stamps",
    "HYC-M1, LMC-M5",
    part="hybrid",
    pattern="hybrid-clock",
    campaign="causes",
    caught_by=(*_CAUSES, "node-crash"),
)
class _WallTime(HybridStamps):
    """A write is stamped with the wall time, and nothing else.

    Shows as: under wrong clocks effects come before causes, and new versions below old ones.
    """

    def tick(self, _: HybridTimestamp) -> HybridTimestamp:
        return HybridTimestamp(self._wall_us(), 0)


@_WRITE_WAIT.plant("no-write-wait", "CBW-M1", part="waits.write", replaces=True)
class _NoWriteWait(NoWait):
    """A write is shown and acknowledged at once.

    Shows as: a reader whose node's clock is slow misses an acknowledged write.
    """


@_WRITE_WAIT.plant("answer-before-wait", "CBW-M2", part="waits.write")
class _AnswerBeforeWait(WriteWait):
    """A write is acknowledged at once, and shown after the wait.

    Shows as: no reader sees an acknowledged write for as long as the writer waits.
    """

    def write(self, client: str, request: WriteRequest, written: Written) -> None:
        super().write(client, request, lambda _: None)
        written(self._issued)

    def _stamp(self, request: WriteRequest) -> HybridTimestamp:
        self._issued = super()._stamp(request)
        return self._issued


@_WRITE_WAIT.plant("store-before-wait", "CBW-M3", part="waits.write", caught_by=("linearizability",))
class _StoreBeforeWait(WriteWait):
    """A write is shown at once, and acknowledged after the wait.

    Shows as: one reader sees the new value and a later one, whose node's clock is slow, the old one.
    """

    def write(self, client: str, request: WriteRequest, written: Written) -> None:
        stamp = self._stamp(request)
        self._show(client, request, stamp)
        passed_us = stamp.wall_us + self._settings.max_offset_us
        self._once(self._ports.clock.wall_us, passed_us, lambda: written(stamp))


@_COMMIT_WAIT.plant(
    "stamp-earliest", "CBW-M4", part="waits.commit", caught_by=("linearizability", "CBW-I1", "CBW-I3", "node-crash")
)
class _StampEarliest(CommitWait):
    """A write is stamped with the earliest possible time.

    Shows as: a version is shown at or below a time that was read before.
    """

    def _latest_us(self) -> int:
        return self._earliest_us()

    def _stamp(self, request: WriteRequest) -> HybridTimestamp:
        return HybridTimestamp(self._earliest_us(), 0)


class _NothingPends(PendingWrites):
    def at_or_before(self, key: str, read_time: HybridTimestamp) -> bool:
        return False


@_COMMIT_WAIT.plant("no-pending-check", "CBW-M6", part="waits.commit", caught_by=("CBW-I3",))
class _NoPendingCheck(CommitWait):
    """A reader does not wait for the writes before its time that are still waiting.

    Shows as: a version is shown at or below a time that was read before.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._pending = _NothingPends()


@_COMMIT_WAIT.plant("no-read-wait", "CBW-M7", part="waits.commit")
class _NoReadWait(CommitWait):
    """A read at a time that is not past yet is answered at once.

    Shows as: a version is shown at or below a time that was read before.
    """

    def read(self, request: ReadAt, answered: Answered) -> None:
        super().read(request, lambda _: None)
        answered(self._answer(request))

    def _answer(self, request: ReadAt) -> ReadResponse:
        self._ports.trace.emit(ReadAnswered(request.key, request.read_time))
        return super()._answer(request)


@BUGS.plant(
    "window-too-small",
    "CBW-M8",
    part="client",
    pattern="clock-bound-wait",
    campaign="read-restart",
    caught_by=("linearizability",),
    options={"wait": "restart"},
)
class _WindowTooSmall(TimestampedKvClient):
    """A reader takes no version above its time for uncertain.

    Shows as: a reader whose node's clock is slow misses an acknowledged write.
    """

    def _read_at(self, key: str, read_time: HybridTimestamp, limit_us: int) -> Generator[Any, Any, ReadResponse]:
        return super()._read_at(key, read_time, min(limit_us, read_time.wall_us))
