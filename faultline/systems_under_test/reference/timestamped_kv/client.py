"""The client of `timestamped-kv`: it carries the largest stamp it has seen, and reads by the clock of its node.

To read, it asks its own node for the time and the key's owner for the value at that time. To write, it sends the value
to the owner together with the largest stamp it knows. A write that was not answered is not repeated: under a second
stamp it would be a second write.

A *pair* is two keys, `p/left` and `p/right`. To write a pair is to write the left key and then the right one; to read
it, to read the right key and then the left one *at the stamp of the right*: a reader of the effect must see the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any
from zlib import crc32

from faultline.harness.operation import Operation
from faultline.harness.outcome import UNSUPPORTED, Outcome, OutcomeRegistry, fail, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation
from faultline.systems_under_test.reference.timestamped_kv.messages import (
    ReadAt,
    ReadResponse,
    StampLearned,
    TimeRequest,
    TimeResponse,
    WriteAcknowledged,
    WriteBegun,
    WriteRequest,
    WriteResponse,
)
from faultline.systems_under_test.reference.timestamped_kv.node import CLOCK_TOO_FAR_AHEAD
from faultline.systems_under_test.reference.timestamped_kv.options import TimestampSettings

__all__ = ["READ_TIMEOUT", "TimestampedKvClient", "owner_of"]

READ_TIMEOUT = "read-restarted-too-often"
"""Every attempt to read found a version too close to its time."""

_DEFINITE = (UNSUPPORTED, CLOCK_TOO_FAR_AHEAD)
_ORDERED_BY_REAL_TIME = frozenset(("write", "commit"))

Step = Generator[Any, Any, Outcome]
"""An operation as a coroutine: yields what to send, or how long to wait, and is given the answer."""


def owner_of(key: str, members: tuple[NodeId, ...]) -> NodeId:
    """Return the node that keeps `key`."""
    return members[crc32(key.encode()) % len(members)]


class TimestampedKvClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: TimestampSettings) -> None:
        self._ports = ports
        self._members = members
        self._node = node
        self._settings = settings
        self._registry = OutcomeRegistry(_DEFINITE)
        self._seen = BEFORE_ALL
        self._number = 0
        self._step: Step | None = None
        self._request: tuple[NodeId, Callable[[int], Any]] | None = None
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Do nothing: a new client has seen no stamp yet."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`: read, write (a value), or the same of a pair."""
        self._open.begin(done, self._settings.client_timeout_us)
        key = operation.key if operation.key is not None else ""
        steps: dict[str, Callable[[], Step]] = {
            "read": lambda: self._read(key),
            "write": lambda: self._write(key, operation.value),
            "read-pair": lambda: self._read_pair(key),
            "write-pair": lambda: self._write_pair(key, operation.value),
        }
        if operation.f not in steps:
            self._finish(self._registry.outcome(UNSUPPORTED))
            return
        self._step = steps[operation.f]()
        self._go_on(None)

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; ignore a late one to an earlier request."""
        if message.request_number == self._number and self._request is not None:
            self._request = None
            self._go_on(message)

    def _write(self, key: str, value: Any) -> Step:
        if self._settings.wait in _ORDERED_BY_REAL_TIME:
            self._ports.trace.emit(WriteBegun())
        owner = owner_of(key, self._members)
        answer: WriteResponse = yield owner, lambda number: WriteRequest(number, key, value, self._seen)
        if answer.stamp is None:
            return self._registry.outcome(answer.error or TIMEOUT, owner)
        self._learn(owner, answer.stamp)
        if self._settings.wait in _ORDERED_BY_REAL_TIME:
            self._ports.trace.emit(WriteAcknowledged(answer.stamp))
        return ok(None, owner)

    def _read(self, key: str) -> Step:
        answer = yield from self._read_latest(key)
        return fail(READ_TIMEOUT) if answer is None else ok(answer.value, self._node)

    def _write_pair(self, key: str, value: Any) -> Step:
        outcome = yield from self._write(f"{key}/left", value)
        if outcome.kind != "ok":
            return outcome
        outcome = yield from self._write(f"{key}/right", value)
        # The left half is written already, so not even a refusal of the right half means that nothing happened.
        return outcome if outcome.kind == "ok" else self._registry.outcome(TIMEOUT, outcome.node)

    def _read_pair(self, key: str) -> Step:
        right = yield from self._read_latest(f"{key}/right")
        if right is None:
            return fail(READ_TIMEOUT)
        if right.stamp is None:
            return ok([None, None], self._node)
        left: ReadResponse = yield from self._read_at(f"{key}/left", right.stamp, 0)
        return ok([left.value, right.value], self._node)

    def _read_latest(self, key: str) -> Generator[Any, Any, ReadResponse | None]:
        """Return the newest value by the clock of the client's node; None if each was too close to a version."""
        read_time = yield from self._node_time()
        limit_us = read_time.wall_us + self._settings.max_offset_us if self._settings.wait == "restart" else 0
        for _ in range(self._settings.read_attempts):
            answer: ReadResponse = yield from self._read_at(key, read_time, limit_us)
            if answer.uncertain is None:
                return answer
            self._ports.trace.sometimes("read-restarted")
            if self._settings.restart_at == "version":
                # The limit stays: a version above it was written after the first try, and need not be seen.
                read_time = answer.uncertain
            else:
                yield self._settings.max_offset_us
                read_time = yield from self._node_time()
                limit_us = read_time.wall_us + self._settings.max_offset_us
        return None

    def _node_time(self) -> Generator[Any, Any, HybridTimestamp]:
        answer: TimeResponse = yield self._node, lambda number: TimeRequest(number, self._seen)
        return answer.read_time

    def _read_at(self, key: str, read_time: HybridTimestamp, limit_us: int) -> Generator[Any, Any, ReadResponse]:
        owner = owner_of(key, self._members)
        answer: ReadResponse = yield owner, lambda number: ReadAt(number, key, read_time, limit_us)
        if answer.stamp is not None:
            self._learn(owner, answer.stamp)
        return answer

    def _learn(self, owner: NodeId, stamp: HybridTimestamp) -> None:
        """Take over a stamp that came with an answer: the next write may follow from it."""
        self._seen = max(self._seen, stamp)
        self._ports.trace.emit(StampLearned(owner, stamp, self._seen))

    def _go_on(self, answer: Any) -> None:
        """Give the operation its answer, and send or wait as it asks for next."""
        assert self._step is not None
        try:
            wanted = self._step.send(answer)
        except StopIteration as stop:
            self._finish(stop.value)
            return
        if isinstance(wanted, int):
            self._open.expect(wanted, lambda: self._go_on(None))
        else:
            self._request = wanted
            self._transmit()

    def _transmit(self) -> None:
        assert self._request is not None
        self._number += 1
        target, message = self._request
        self._ports.network.send(target, message(self._number))
        is_write = isinstance(message(self._number), WriteRequest)
        wait_us = self._settings.client_timeout_us if is_write else self._settings.request_timeout_us
        self._open.expect(wait_us, self._handle_silence)

    def _handle_silence(self) -> None:
        if self._open.is_overdue:
            self._finish(self._registry.outcome(TIMEOUT))
            return
        self._ports.trace.sometimes("client-retried")
        self._ask_another_node()
        self._transmit()

    def _ask_another_node(self) -> None:
        """Turn to the next node for the time, which any node can tell; a key only its owner has."""
        assert self._request is not None
        target, message = self._request
        if isinstance(message(0), TimeRequest):
            self._node = self._members[(self._members.index(target) + 1) % len(self._members)]
            self._request = (self._node, message)

    def _finish(self, outcome: Outcome) -> None:
        self._step = self._request = None
        self._open.end(outcome)
