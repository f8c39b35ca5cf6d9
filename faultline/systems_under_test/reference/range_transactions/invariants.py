"""The invariants of `range-transactions`: those of a participant for each range, wherever it is, those of a table of
ranges, and those that only a split, a move or a clock can break.

A range reports under its own name, so that its history goes on at its next host. A report of a host precedes the
durability of its record by an instant. After a crash in between the host reports its promises again, as they are.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Finished,
    LocksAreBounded,
    Promised,
    ValueStored,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.range_transactions.messages import (
    CommitTold,
    RangeCarried,
    RangeEvent,
    RangeHeld,
)
from faultline.systems_under_test.reference.ranges.invariants import RangesTile
from faultline.systems_under_test.reference.transactions.events_in_events import decoded, finish, interested
from faultline.systems_under_test.reference.transactions.invariants import (
    LocksAreFreedInTheEnd,
    transaction_invariants,
)

__all__ = [
    "CommitsArePastWhenTold",
    "OneHostPerGeneration",
    "PromisesTravelWithTheirRange",
    "TransactionsOnRanges",
    "VersionsAscend",
    "range_transactions_invariants",
]


class TransactionsOnRanges:
    """The invariants of transactions with ranges for nodes; breaches carry their ids."""

    id = "TPC-I6"
    statement = "Each range keeps the invariants of a participant, from TPC-I2 to TPC-I9 and HYC-I5, on any node."
    events = (RangeEvent, LocksAreBounded)
    needs_order = True

    def __init__(self) -> None:
        self._bounds = LocksAreFreedInTheEnd()
        others = [each for each in transaction_invariants() if not isinstance(each, LocksAreFreedInTheEnd)]
        self._invariants = interested([*others, self._bounds])

    def observe(self, time_us: int, node: str, event: RangeEvent | LocksAreBounded, report: Report) -> None:
        """Show the event as a report of the range."""
        if isinstance(event, LocksAreBounded):
            self._bounds.observe(time_us, node, event, report)
            return
        for kind, invariant in self._invariants.get(event.kind, ()):
            invariant.observe(time_us, event.name, decoded(event.event, kind), report)

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Finish the invariants that look at the end of a run."""
        finish(self._invariants, healed_us, end_us, report)


class OneHostPerGeneration(ReportingInvariant):
    """A range in one generation is served by one node only; a change of the host is a new generation."""

    id = "KRP-I4"
    statement = "Each generation of a range is served by one node, and none after a newer one."
    events = (RangeHeld,)
    needs_order = True

    def __init__(self) -> None:
        self._newest: dict[int, tuple[int, str]] = {}

    def observe(self, time_us: int, node: str, event: RangeHeld, report: Report) -> None:
        """Compare with the newest generation of the range that was served anywhere."""
        partition = event.partition
        newest, host = self._newest.get(partition.id, (0, node))
        words = f"{node} serves range {partition.id} in generation {partition.generation}"
        # The host itself may have lost the newer one in a crash, before it was durable and told of.
        if partition.generation < newest and host != node:
            self._breach(report, time_us, node, f"{words} after {host} had served generation {newest}.")
        elif partition.generation == newest and host != node:
            self._breach(report, time_us, node, f"{words}, which {host} serves.")
        else:
            self._newest[partition.id] = (partition.generation, node)


class PromisesTravelWithTheirRange(ReportingInvariant):
    """TPC-S15: what was promised on the keys of a range before a split or a move is promised after it."""

    id = "TPC-S15"
    statement = "A range that was split or moved has every promise on its keys that was open before, with all locks."
    events = (RangeEvent, RangeCarried)
    needs_order = True

    def __init__(self) -> None:
        self._promised: dict[str, dict[TransactionId, dict[str, LockMode]]] = {}

    def observe(self, time_us: int, node: str, event: RangeEvent | RangeCarried, report: Report) -> None:
        """Follow the promises of each range, and compare when another one continues it."""
        if isinstance(event, RangeCarried):
            self._compare(time_us, node, event, report)
            return
        promised = self._promised.setdefault(event.name, {})
        if event.kind == "Promised":
            told = decoded(event.event, Promised)
            promised[told.id] = told.locks
        elif event.kind == "Finished":
            promised.pop(decoded(event.event, Finished).id, None)
        elif event.kind == "ParticipantStarted":
            # It reports again what it has promised.
            promised.clear()

    def _compare(self, time_us: int, node: str, event: RangeCarried, report: Report) -> None:
        found = {each.id: each.locks for each in event.promises}
        partition = event.partition
        for transaction, locks in self._promised.get(event.origin, {}).items():
            here = {key: mode for key, mode in locks.items() if partition.range.contains(key)}
            missing = sorted(here.keys() - found.get(transaction, {}).keys())
            if missing:
                sentence = (
                    f"{node} took over range {partition.id} in generation {partition.generation} without the lock of"
                    f" transaction {transaction} on {missing[0]}, which is prepared."
                )
                self._breach(report, time_us, node, sentence)


class CommitsArePastWhenTold(ReportingInvariant):
    """CBW-I4, for transactions (CBW-R25): by its coordinator's own clock, a commit is past when it is told."""

    id = "CBW-I4"
    statement = "A commit is told to a client only once its time is past on every clock that keeps the bound."
    events = (CommitTold,)

    def observe(self, time_us: int, node: str, event: CommitTold, report: Report) -> None:
        """Compare the time of the commit with the earliest that the true time may be."""
        ahead_us = event.time.wall_us - event.earliest_us
        if ahead_us >= 0:
            sentence = f"{node} told of the commit of transaction {event.id} {ahead_us} us before its time was past."
            self._breach(report, time_us, node, sentence)


class VersionsAscend(ReportingInvariant):
    """CBW-I1, for one key: a lock is passed on from one commit to the next, and times follow."""

    id = "CBW-I1"
    statement = "The versions of a key have ascending times, in the order in which their transactions commit."
    events = (RangeEvent,)
    needs_order = True

    def __init__(self) -> None:
        self._last: dict[str, tuple[HybridTimestamp, TransactionId]] = {}

    def observe(self, time_us: int, node: str, event: RangeEvent, report: Report) -> None:
        """Compare a version with the last one of its key; a crash may have one stored twice."""
        if event.kind != "ValueStored":
            return
        stored: Any = decoded(event.event, ValueStored)
        last = self._last.get(stored.key)
        if last is not None and last[1] != stored.id and stored.time <= last[0]:
            sentence = f"{node} stored {stored.key} of transaction {stored.id} at or below the time of {last[1]}."
            self._breach(report, time_us, node, sentence)
        self._last[stored.key] = (stored.time, stored.id)


def range_transactions_invariants() -> list[Invariant]:
    """Return new instances, for one run."""
    return [
        RangesTile(),
        OneHostPerGeneration(),
        PromisesTravelWithTheirRange(),
        CommitsArePastWhenTold(),
        VersionsAscend(),
        TransactionsOnRanges(),
    ]
