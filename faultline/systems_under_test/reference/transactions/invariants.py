"""The invariants of `transactional-kv`, checked on what its nodes report while a run goes on.

They conclude nothing from a node's intention, because it may die in the same instant. A participant hears of a
decision only after that is durable, and a new process reports the latest time at which an answer can have left before.
"""

from __future__ import annotations

import msgspec

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Finished,
    LockGranted,
    LocksAreBounded,
    LocksReleased,
    ParticipantStarted,
    Promised,
    SnapshotServed,
    ValueStored,
    WaitEnded,
    Wounded,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp

__all__ = [
    "DecisionsAgree",
    "LocksAreFreedInTheEnd",
    "LocksExclude",
    "NothingBelowARead",
    "OneTimePerTransaction",
    "TheOlderWounds",
    "WaitsHaveAReason",
    "transaction_invariants",
]


class DecisionsAgree(ReportingInvariant):
    """TPC-I2, on how transactions ended at participants. One that rolled back without a promise may learn anew after a
    restart: a crash forgets such a transaction, and of its steps only the first begins it again."""

    id = "TPC-I2"
    statement = "A transaction ends alike at all participants: committed under one time, or rolled back; for ever."
    events = (Finished, Promised, ParticipantStarted)

    def __init__(self) -> None:
        self._ends: dict[TransactionId, dict[str, Finished]] = {}
        self._promised: set[tuple[str, TransactionId]] = set()
        self._forgettable: dict[str, list[TransactionId]] = {}

    def observe(self, time_us: int, node: str, event: Finished | Promised | ParticipantStarted, report: Report) -> None:
        """Compare with the end at other participants, or here before; forget what a crash forgets."""
        if isinstance(event, Promised):
            self._promised.add((node, event.id))
        elif isinstance(event, ParticipantStarted):
            for forgotten in self._forgettable.pop(node, ()):
                self._ends[forgotten].pop(node, None)
        else:
            self._end(time_us, node, event, report)

    def _end(self, time_us: int, node: str, event: Finished, report: Report) -> None:
        ends = self._ends.setdefault(event.id, {})
        for first, end in ends.items():
            if end.time != event.time:
                sentence = f"Transaction {event.id} {_told(end)} at {first} and {_told(event)} at {node}."
                self._breach(report, time_us, node, sentence)
                return
        ends[node] = event
        if event.time is None and (node, event.id) not in self._promised:
            self._forgettable.setdefault(node, []).append(event.id)


class LocksExclude(ReportingInvariant):
    """TPC-I6: readers share a lock, a writer has it alone; and a prepared transaction loses none."""

    id = "TPC-I6"
    statement = "No two owners of a lock conflict, and a prepared transaction keeps its locks until it knows its end."
    events = (LockGranted, LocksReleased, ParticipantStarted, Promised, Finished, Wounded)

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, dict[TransactionId, LockMode]]] = {}
        self._promised: dict[str, dict[TransactionId, None]] = {}

    def observe(self, time_us: int, node: str, event: msgspec.Struct, report: Report) -> None:
        """Follow the owners of every lock."""
        promised = self._promised.setdefault(node, {})
        if isinstance(event, ParticipantStarted):
            self._owners[node] = {}
            promised.clear()
        elif isinstance(event, LockGranted):
            self._grant(time_us, node, event, report)
        elif isinstance(event, Promised):
            promised[event.id] = None
        elif isinstance(event, Finished):
            promised.pop(event.id, None)
        elif isinstance(event, Wounded) and event.was_prepared:
            sentence = f"{node} took a lock of transaction {event.victim.id}, which was prepared, for {event.by.id}."
            self._breach(report, time_us, node, sentence)
        elif isinstance(event, LocksReleased):
            self._release(time_us, node, event, report)

    def _grant(self, time_us: int, node: str, event: LockGranted, report: Report) -> None:
        owners = self._owners.setdefault(node, {}).setdefault(event.key, {})
        for other, mode in owners.items():
            if other != event.id and LockMode.WRITE in (mode, event.mode):
                sentence = (
                    f"{node} gave {event.key} to transaction {event.id} to {event.mode.value} while {other} had it to"
                    f" {mode.value}."
                )
                self._breach(report, time_us, node, sentence)
        if owners.get(event.id) is not LockMode.WRITE:
            owners[event.id] = event.mode

    def _release(self, time_us: int, node: str, event: LocksReleased, report: Report) -> None:
        if event.id in self._promised[node]:
            sentence = (
                f"{node} released the locks of transaction {event.id}, which is prepared, without knowing its end."
            )
            self._breach(report, time_us, node, sentence)
        for owners in self._owners.setdefault(node, {}).values():
            owners.pop(event.id, None)


class TheOlderWounds(ReportingInvariant):
    """TPC-R26: wounds follow age, so that transactions cannot wait in a circle."""

    id = "TPC-R26"
    statement = "A transaction is wounded by an older one only."
    events = (Wounded,)

    def observe(self, time_us: int, node: str, event: Wounded, report: Report) -> None:
        """Compare the ages."""
        if not event.victim.is_younger_than(event.by):
            sentence = f"At {node} transaction {event.by.id} wounded {event.victim.id}, which is older."
            self._breach(report, time_us, node, sentence)


class WaitsHaveAReason(ReportingInvariant):
    """TPC-I7: a wait that comes to its bound had an owner of the lock in its way."""

    id = "TPC-I7"
    statement = (
        "A transaction that waits for a lock waits for an owner of it, and under wait-die only for younger ones."
    )
    events = (WaitEnded,)

    def observe(self, time_us: int, node: str, event: WaitEnded, report: Report) -> None:
        """Compare its age with those of the owners it waited for."""
        older = [owner for owner in event.owners if not owner.is_younger_than(event.ref)]
        if not event.owners:
            sentence = f"At {node} transaction {event.ref.id} waited in vain for {event.key}, which was free."
            self._breach(report, time_us, node, sentence)
        elif event.dies and older:
            sentence = f"At {node} transaction {event.ref.id} waited for {older[0].id}, which is older."
            self._breach(report, time_us, node, sentence)


class LocksAreFreedInTheEnd(ReportingInvariant):
    """TPC-I8: some time after the heal no lock is older than any transaction can be."""

    id = "TPC-I8"
    statement = "After everything is healed no transaction keeps locks, prepared or not, for longer than it may live."
    events = (LockGranted, LocksReleased, ParticipantStarted, LocksAreBounded)

    def __init__(self) -> None:
        self._since: dict[str, dict[TransactionId, int]] = {}
        self._held_us_max = 0

    def observe(self, time_us: int, node: str, event: msgspec.Struct, report: Report) -> None:
        """Follow the owners of locks; a restart keeps those of prepared transactions, and reports them again."""
        since = self._since.setdefault(node, {})
        if isinstance(event, LocksAreBounded):
            self._held_us_max = event.held_us_max
        elif isinstance(event, ParticipantStarted):
            since.clear()
        elif isinstance(event, LockGranted):
            since.setdefault(event.id, time_us)
        elif isinstance(event, LocksReleased):
            since.pop(event.id, None)

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Report a breach for each lock that is held too long after the faults."""
        for node, since in self._since.items():
            for transaction, held_us in since.items():
                if end_us - max(held_us, healed_us) > self._held_us_max:
                    sentence = f"{node} keeps locks of transaction {transaction} to the end, long after the last fault."
                    self._breach(report, end_us, node, sentence)


class NothingBelowARead(ReportingInvariant):
    """TPC-I9: a snapshot that was read never changes.

    A value that a crash took back before it was durable is stored again under the same time; earlier readers saw it.
    """

    id = "TPC-I9"
    statement = "No value is stored at or below a time at which its key has been read."
    events = (SnapshotServed, ValueStored, ParticipantStarted)

    def __init__(self) -> None:
        self._read: dict[str, dict[str, HybridTimestamp]] = {}
        self._stored: set[tuple[str, TransactionId, str, HybridTimestamp]] = set()

    def observe(self, time_us: int, node: str, event: msgspec.Struct, report: Report) -> None:
        """Remember the highest read of each key; compare what is stored for the first time."""
        read = self._read.setdefault(node, {})
        if isinstance(event, SnapshotServed):
            read[event.key] = max(event.time, read.get(event.key, BEFORE_ALL))
        elif isinstance(event, ParticipantStarted):
            self._read[node] = {key: min(time, event.ceiling) for key, time in read.items()}
        elif isinstance(event, ValueStored):
            stored = (node, event.id, event.key, event.time)
            if stored not in self._stored and event.time <= read.get(event.key, BEFORE_ALL):
                sentence = f"{node} stored {event.key} at a time at or below one at which it had been read."
                self._breach(report, time_us, node, sentence)
            self._stored.add(stored)


class OneTimePerTransaction(ReportingInvariant):
    """HYC-I5: the values of a transaction have one version."""

    id = "HYC-I5"
    statement = "All values of a transaction are stored under one time."
    events = (ValueStored,)

    def __init__(self) -> None:
        self._times: dict[TransactionId, tuple[str, HybridTimestamp]] = {}

    def observe(self, time_us: int, node: str, event: ValueStored, report: Report) -> None:
        """Compare with the transaction's other values."""
        first, time = self._times.setdefault(event.id, (node, event.time))
        if time != event.time:
            sentence = f"{first} and {node} stored values of transaction {event.id} under different times."
            self._breach(report, time_us, node, sentence)


def _told(end: Finished) -> str:
    return "was rolled back" if end.time is None else f"was committed under {end.time.wall_us}.{end.time.ticks}"


def transaction_invariants() -> list[Invariant]:
    """Return new instances, for one run."""
    return [
        DecisionsAgree(),
        LocksExclude(),
        TheOlderWounds(),
        WaitsHaveAReason(),
        LocksAreFreedInTheEnd(),
        NothingBelowARead(),
        OneTimePerTransaction(),
    ]
