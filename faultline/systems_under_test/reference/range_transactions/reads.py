"""Reads of one range at a time, without locks, and the client that reads anew when a version cannot be placed.

A range answers a read at `time` once no prepared transaction may still write the key at or below it. With
`wait=restart` a version above `time`, up to the limit, may belong to a write that ended before the read began, on a
faster clock. So does a promise there: its decision may be told already, elsewhere. The reader is told to read at that
time instead, and meets whatever became of it.

It then reads *all* of its keys anew, also those that it had (CBW-R14): else two keys would be as of two times. The
limit stays that of the first time (CBW-R11), so that each step comes nearer to it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from faultline.harness.world.ports import NodeId, Ports, Trace
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import (
    Answer,
    Call,
    Pause,
    Program,
    TransactionAborted,
    TransactionExecutor,
    Verb,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.distributed_time.clock_bound_wait import uncertain_version
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.range_transactions.messages import READ_AGAIN, ReadWithin
from faultline.systems_under_test.reference.transactions.messages import Reply
from faultline.systems_under_test.reference.transactions.requests import REFUSED, ParticipantRequests, RequestTimes

__all__ = ["RangeRequests", "ReadAnew", "SnapshotExecutor"]

_RESTARTS_MAX = 20

_Steps = Generator[Call | Pause, Answer, Any]


class RangeRequests(ParticipantRequests):
    """The requests to the participant of a range; reads at a time come with the limit of their uncertainty."""

    def __init__(self, ports: Ports, times: RequestTimes, participant: Participant) -> None:
        super().__init__(ports, times, participant)
        self.handlers[ReadWithin] = self._handle_read_within

    def _handle_read_within(self, source: NodeId, request: ReadWithin) -> None:
        if self._accepts(source, request.number, request.time):
            value = self._participant.snapshots.read_at(request.key, request.time)
            value.then(
                lambda found: self._reply(source, self._placed(request, found)),
                lambda _: self._reply(source, Reply(request.number, REFUSED)),
            )

    def _placed(self, request: ReadWithin, found: Any) -> Reply:
        """Return the value, or the time to read at instead."""
        later = uncertain_version(self._stamps(request.key), request.time, request.limit_us)
        if later is None:
            return Reply(request.number, value=found)
        return Reply(request.number, READ_AGAIN, time=later)

    def _stamps(self, key: str) -> list[HybridTimestamp]:
        """Return the times of the versions of `key`, and the earliest of one that is promised."""
        snapshots = self._participant.snapshots
        promised = snapshots.promised_at(key)
        return [*snapshots.versions.versions(key), *([] if promised is None else [promised])]


class ReadAnew(Exception):
    """A version was met that cannot be placed: all keys must be read at its time."""


class SnapshotExecutor(TransactionExecutor):
    """The executor of one client; `window_us` is how far above its time a read may doubt versions, 0 for not at all."""

    def __init__(
        self,
        host_of: Callable[[str], NodeId],
        attempts_max: int,
        time_server: NodeId,
        window_us: int,
        trace: Trace,
    ) -> None:
        """Read at the time of `time_server`, and report the reads that begin anew to `trace`."""
        super().__init__(host_of, attempts_max, time_server)
        self._window_us = window_us
        self._trace = trace
        self._time: HybridTimestamp | None = None
        self._limit_us = 0
        self._keys_read = 0

    def read_at_one_time(self, program: Callable[[], Program]) -> _Steps:
        """Carry out a transaction that only reads at one time, anew at a later one as often as that is needed."""
        self._time, self._limit_us = None, 0
        for _ in range(_RESTARTS_MAX):
            self._keys_read = 0
            try:
                return (yield from super().read_at_one_time(program))
            except ReadAnew:
                self._trace.sometimes("read-restarted")
                if self._keys_read:
                    self._trace.sometimes("read-restarted-over-several-keys")
        raise TransactionAborted

    def _ask(self, node: NodeId, verb: str, *arguments: Any) -> _Steps:
        if verb == Verb.READ_TIME:
            return (yield from self._time_to_read(node, *arguments))
        if verb == Verb.READ_AT:
            return (yield from self._read_at(node, *arguments))
        return (yield from super()._ask(node, verb, *arguments))

    def _time_to_read(self, node: NodeId, seen: HybridTimestamp) -> _Steps:
        if self._time is None:
            told = yield from super()._ask(node, Verb.READ_TIME, seen)
            assert told.time is not None
            self._time = told.time
            self._limit_us = told.time.wall_us + self._window_us if self._window_us else 0
        return Answer(None, time=self._time)

    def _read_at(self, node: NodeId, key: str, time: HybridTimestamp) -> _Steps:
        answer = yield Call(node, Verb.READ_AT, (key, time, self._limit_us))
        if answer.error == READ_AGAIN:
            # Values of an earlier time must not stand beside one of this time.
            self._time = answer.time
            raise ReadAnew
        if answer.error is not None:
            raise TransactionAborted
        self._keys_read += 1
        return answer
