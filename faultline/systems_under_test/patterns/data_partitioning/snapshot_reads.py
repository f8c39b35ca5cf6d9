"""Reads at a time, without locks, while transactions are about to write: a key read at one time always has one value.

Every value is stored under the commit time of its transaction. A participant votes with a time above all that it has
seen, and so above every time that was read here; the coordinator takes the largest vote. If there is a promise on a key
at or below the time of a read, the write may still get a time on either side of the read. So the read waits for the
outcome, with a bound. (CockroachDB fails it, Spanner waits.) An answer must hold after a restart too, so the log has a
*ceiling* above all times that were read.

Sources: Patterns of Distributed Systems ch. 21; Corbett et al., "Spanner" (OSDI 2012) §4.1.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from faultline.harness.world.ports import Ports, Timer
from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import RecordLog
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Ceiling,
    SnapshotServed,
    ValueStored,
    VersionKept,
)
from faultline.systems_under_test.patterns.data_replication.versioned_value import IndexedVersions
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.patterns.promise import Promise

__all__ = ["PromisedWrite", "ReadBlocked", "SnapshotReads", "Stamps"]


class ReadBlocked(Exception):
    """The outcome of a promised write at or below the time of the read stayed unknown for too long."""


class Stamps(Protocol):
    """The clock of the server, for the times of values."""

    def tick(self) -> HybridTimestamp:
        """Return a time above all that were seen here."""

    def update_to(self, time: HybridTimestamp) -> None:
        """Vote for no time at or below `time` any more."""

    def ceiling(self, time: HybridTimestamp) -> HybridTimestamp:
        """Return a time some way above `time`, up to which to reserve when `time` is read."""


class PromisedWrite(msgspec.Struct, frozen=True):
    """A promise on a key: its transaction, and the earliest time of the write."""

    id: TransactionId
    time: HybridTimestamp


class SnapshotReads:
    """The versions of one server, the promises on its keys, and the reads that wait for these."""

    def __init__(
        self,
        ports: Ports,
        log: RecordLog,
        stamps: Stamps,
        later: Callable[[int, Callable[[], None]], Timer],
        wait_us: int,
    ) -> None:
        self._ports = ports
        self._log = log
        self._stamps = stamps
        self._later = later
        self._wait_us = wait_us
        self.versions: IndexedVersions[HybridTimestamp] = IndexedVersions()
        self._promised: dict[str, PromisedWrite] = {}
        self._blocked: list[tuple[str, HybridTimestamp, Promise[Any]]] = []
        self.ceiling = BEFORE_ALL

    def latest(self, key: str) -> Any:
        """Return the present value of the key."""
        found = self.versions.latest(key)
        return None if found is None else found.value

    def is_unchanged_since(self, time: HybridTimestamp, key: str) -> bool:
        """Return whether no value was stored for `key` above `time`."""
        found = self.versions.latest(key)
        return found is None or found.version <= time

    def read_at(self, key: str, time: HybridTimestamp) -> Promise[Any]:
        """Return the value of `key` at `time`; it never changes later. Fails with ReadBlocked."""
        answer: Promise[Any] = Promise()
        self._note_read(time)
        if self._is_uncertain(key, time):
            self._ports.trace.sometimes("snapshot-read-waited")
            self._blocked.append((key, time, answer))
            self._later(self._wait_us, lambda: self._stop_waiting(key, answer))
        else:
            self._answer(key, time, answer)
        return answer

    def _note_read(self, time: HybridTimestamp) -> None:
        """Make sure that no vote is at or below `time` from now on, restarts included."""
        self._stamps.update_to(time)
        if time > self.ceiling:
            # Some way above, so that not every read costs a flush.
            self.ceiling = self._stamps.ceiling(time)
            self._log.append(Ceiling(self.ceiling))
            self._log.flush()

    def _is_uncertain(self, key: str, time: HybridTimestamp) -> bool:
        promised = self._promised.get(key)
        return promised is not None and promised.time <= time

    def _answer(self, key: str, time: HybridTimestamp, answer: Promise[Any]) -> None:
        found = self.versions.get(key, time)
        self._ports.trace.emit(SnapshotServed(key, time))
        answer.complete(None if found is None else found.value)

    def _stop_waiting(self, key: str, answer: Promise[Any]) -> None:
        if not answer.done:
            self._blocked = [waiting for waiting in self._blocked if waiting[2] is not answer]
            answer.fail(ReadBlocked(f"a promised write of {key} is not decided"))

    def promise(self, transaction: TransactionId, keys: Iterable[str], time: HybridTimestamp) -> None:
        """Note that these keys will be written at `time` or later, or not at all."""
        for key in keys:
            self._promised[key] = PromisedWrite(transaction, time)

    def promised_at(self, key: str) -> HybridTimestamp | None:
        """Return the earliest time of a promised write of `key`; None when none is promised."""
        promised = self._promised.get(key)
        return None if promised is None else promised.time

    def store(self, transaction: TransactionId, key: str, time: HybridTimestamp, value: Any) -> None:
        """Make the promised value visible from now on."""
        self.versions.put(key, time, value)
        self._ports.trace.emit(ValueStored(transaction, key, time))

    def settle(self, transaction: TransactionId, keys: Iterable[str]) -> None:
        """Remove the promise on these keys, which was kept or taken back, and answer the reads that waited for it."""
        for key in keys:
            promised = self._promised.get(key)
            if promised is not None and promised.id == transaction:
                del self._promised[key]
        if self._blocked:
            self._answer_blocked()

    def _answer_blocked(self) -> None:
        waiting, self._blocked = self._blocked, []
        for key, time, answer in waiting:
            if self._is_uncertain(key, time):
                self._blocked.append((key, time, answer))
            else:
                self._answer(key, time, answer)

    def records(self) -> Iterator[Ceiling | VersionKept]:
        """Return the records from which versions and ceiling come; the participant keeps those of promises."""
        yield from (VersionKept(key, time, value) for key, time, value in self.versions.entries())
        if self.ceiling > BEFORE_ALL:
            yield Ceiling(self.ceiling)

    def replay(self, record: Ceiling | VersionKept) -> None:
        """Take a stored version, or the time up to which reads may have been answered before the restart."""
        self._stamps.update_to(record.time)
        if isinstance(record, Ceiling):
            self.ceiling = max(self.ceiling, record.time)
        else:
            self.versions.put(record.key, record.time, record.value)
