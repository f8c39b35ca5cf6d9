"""Reads at a time, beside transactions that are about to write: no locks, and never two answers for one time.

Every value is stored under the commit time of its transaction. A participant votes with a time above everything it has
seen, so that what it votes for lies above every time that was read here; the coordinator takes the largest. If there
is a promise on a key at or below the time of a read, nobody knows yet on which side the write will be: the read waits
for the outcome, with a bound. (CockroachDB fails it, Spanner waits.) What was read must stay so over a restart, so the
log has a *ceiling* above all times that were read.

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
    """The outcome of a promised write at or below the time of the read is not known, for too long."""


class Stamps(Protocol):
    """The clock of the server, for the times of values."""

    def tick(self) -> HybridTimestamp:
        """A time above everything seen here."""

    def update_to(self, time: HybridTimestamp) -> None:
        """Vote for nothing at or below `time` any more."""

    def ceiling(self, time: HybridTimestamp) -> HybridTimestamp:
        """A time some way above `time`: how far to reserve when `time` is read."""


class PromisedWrite(msgspec.Struct, frozen=True):
    """A promise on a key: whose, and at which time at the earliest."""

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
        """What the key holds now."""
        found = self.versions.latest(key)
        return None if found is None else found.value

    def is_unchanged_since(self, time: HybridTimestamp, key: str) -> bool:
        """Has nothing been stored for `key` above `time`?"""
        found = self.versions.latest(key)
        return found is None or found.version <= time

    def read_at(self, key: str, time: HybridTimestamp) -> Promise[Any]:
        """What `key` held at `time`: now or in the future it says the same. Fails with ReadBlocked."""
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
        """From now on, restarts included, nothing is voted for at or below `time`."""
        self._stamps.update_to(time)
        if time > self.ceiling:
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
        """These keys will be written at `time` or later, or not at all."""
        for key in keys:
            self._promised[key] = PromisedWrite(transaction, time)

    def store(self, transaction: TransactionId, key: str, time: HybridTimestamp, value: Any) -> None:
        """The promised value is visible from now on."""
        self.versions.put(key, time, value)
        self._ports.trace.emit(ValueStored(transaction, key, time))

    def settle(self, transaction: TransactionId, keys: Iterable[str]) -> None:
        """The promise on these keys is kept or taken back: who waited for it reads now."""
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
        """The records from which versions and ceiling come; promises are the participant's."""
        yield from (VersionKept(key, time, value) for key, time, value in self.versions.entries())
        if self.ceiling > BEFORE_ALL:
            yield Ceiling(self.ceiling)

    def replay(self, record: Ceiling | VersionKept) -> None:
        """What was stored; or up to which time may have been read before the restart."""
        self._stamps.update_to(record.time)
        if isinstance(record, Ceiling):
            self.ceiling = max(self.ceiling, record.time)
        else:
            self.versions.put(record.key, record.time, record.value)
