"""The table of checkers: each name with a factory and one line about it.

The module imports none of them, so that listing checkers costs nothing; each is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from faultline.harness.workload import Checker

__all__ = ["CHECKERS", "CheckerDescription"]


class CheckerDescription(NamedTuple):
    """A checker by name: what it looks at, in one line, and where its class is."""

    name: str
    summary: str
    module: str
    class_name: str

    def __call__(self, **options: Any) -> Checker:
        """Return a checker with these keyword options of its class."""
        return cast("Checker", self._class()(**options))

    def _class(self) -> Any:
        return getattr(importlib.import_module(self.module), self.class_name)


CHECKERS: Mapping[str, CheckerDescription] = {
    description.name: description
    for description in (
        CheckerDescription(
            "linearizability",
            "every key behaves like one register that does one thing at a time",
            "faultline.checkers.linearizability.checker",
            "LinearizabilityChecker",
        ),
        CheckerDescription(
            "invariants",
            "no invariant inside the system was seen broken",
            "faultline.checkers.invariants",
            "InvariantChecker",
        ),
        CheckerDescription(
            "availability",
            "after everything is healed, the system answers again within a bound",
            "faultline.checkers.availability",
            "AvailabilityChecker",
        ),
        CheckerDescription(
            "stats",
            "operations counted by function and outcome; every function succeeded at least once",
            "faultline.checkers.stats",
            "StatsChecker",
        ),
        CheckerDescription(
            "siblings",
            "no acknowledged write is lost without a concurrent sibling, and replicas converge",
            "faultline.checkers.siblings",
            "SiblingsChecker",
        ),
        CheckerDescription(
            "convergence",
            "after the faults all nodes know the same, and know which nodes are up",
            "faultline.checkers.convergence",
            "ConvergenceChecker",
        ),
        CheckerDescription(
            "membership",
            "no two disjoint groups serve clients, and after the heal there is one cluster",
            "faultline.checkers.membership",
            "MembershipChecker",
        ),
        CheckerDescription(
            "scans",
            "a scan has everything that was there throughout, once, in order, and nothing that was not",
            "faultline.checkers.scans",
            "ScansChecker",
        ),
        CheckerDescription(
            "causal-pairs",
            "who reads an effect finds its cause at the effect's stamp",
            "faultline.checkers.causal_pairs",
            "CausalPairsChecker",
        ),
        CheckerDescription(
            "dependent-writes",
            "a client that has read an effect finds its cause, and no session goes back",
            "faultline.checkers.dependent_writes",
            "DependentWritesChecker",
        ),
        CheckerDescription(
            "booking",
            "two things that belong together are booked by one guest, who keeps them, or not at all",
            "faultline.checkers.bookings",
            "BookingsChecker",
        ),
        CheckerDescription(
            "follower-reads",
            "reads that need not be fresh show own writes, never go back, keep a bound, invent nothing",
            "faultline.checkers.follower_reads",
            "FollowerReadsChecker",
        ),
        CheckerDescription(
            "leased-lock",
            "no two clients believe to hold one lease at a time, and stale fencing tokens are refused",
            "faultline.checkers.leased_lock",
            "LeasedLockChecker",
        ),
        CheckerDescription(
            "watches",
            "watchers miss no event, get none twice or out of order or made up, and are told of every gap",
            "faultline.checkers.watches",
            "WatchesChecker",
        ),
        CheckerDescription(
            "vacuity",
            "the run tested something: faults bit while operations were in flight, and final reads followed",
            "faultline.checkers.vacuity",
            "VacuityChecker",
        ),
        CheckerDescription(
            "set",
            "elements whose add was acknowledged are in the last read, and nothing else",
            "faultline.checkers.classic.sets",
            "SetChecker",
        ),
        CheckerDescription(
            "set-full",
            "no element of a set is lost, made up or doubled, over the life of each",
            "faultline.checkers.classic.set_full",
            "SetFullChecker",
        ),
        CheckerDescription(
            "queue",
            "what comes out of a queue was put in, and no more often",
            "faultline.checkers.classic.queues",
            "QueueChecker",
        ),
        CheckerDescription(
            "total-queue",
            "what is put into a queue comes out, once, and nothing else does",
            "faultline.checkers.classic.queues",
            "TotalQueueChecker",
        ),
        CheckerDescription(
            "unique-ids",
            "no identifier is handed out twice",
            "faultline.checkers.classic.unique_ids",
            "UniqueIdsChecker",
        ),
        CheckerDescription(
            "counter",
            "reads of a counter lie within what the additions around them allow",
            "faultline.checkers.classic.counter",
            "CounterChecker",
        ),
        CheckerDescription(
            "bank",
            "accounts always add up to the same, and none is overdrawn",
            "faultline.checkers.classic.bank",
            "BankChecker",
        ),
        CheckerDescription(
            "transfers",
            "each transfer counts exactly once in the balance of both accounts",
            "faultline.checkers.classic.transfers",
            "TransfersChecker",
        ),
        CheckerDescription(
            "long-fork",
            "no two reads see two writes in opposite orders",
            "faultline.checkers.classic.long_fork",
            "LongForkChecker",
        ),
        CheckerDescription(
            "causal-register",
            "a register's reads see the writes that causally precede them",
            "faultline.checkers.classic.causal",
            "CausalChecker",
        ),
        CheckerDescription(
            "causal-reverse",
            "a client that sees a write sees those acknowledged before it began",
            "faultline.checkers.classic.causal_reverse",
            "CausalReverseChecker",
        ),
        CheckerDescription(
            "adya-g2",
            "of two inserts that exclude one another by predicate one fails",
            "faultline.checkers.classic.adya",
            "AdyaG2Checker",
        ),
        CheckerDescription(
            "monotonic",
            "values never go back, for a process, a worker or all together",
            "faultline.checkers.classic.monotonic",
            "MonotonicChecker",
        ),
        CheckerDescription(
            "sessions",
            "the four session guarantees on versioned values",
            "faultline.checkers.classic.sessions",
            "SessionsChecker",
        ),
        CheckerDescription(
            "lock",
            "holds of a lock do not overlap, fencing tokens grow, stale ones are refused",
            "faultline.checkers.classic.lock",
            "LockChecker",
        ),
        CheckerDescription(
            "log",
            "a log with offsets loses, doubles and reorders nothing, and is polled in order",
            "faultline.checkers.classic.log",
            "LogChecker",
        ),
        CheckerDescription(
            "sequential",
            "one order of all operations, in which each client's keep their own, explains every read",
            "faultline.checkers.memory.checker",
            "SequentialChecker",
        ),
        CheckerDescription(
            "causal-memory",
            "each client has one order of all writes and its reads, with causes before effects",
            "faultline.checkers.memory.checker",
            "CausalMemoryChecker",
        ),
        CheckerDescription(
            "causal-convergence",
            "causes come before effects, and all clients agree on the order of writes",
            "faultline.checkers.memory.checker",
            "CausalConvergenceChecker",
        ),
        CheckerDescription(
            "weak-causal",
            "each read by itself is explained by an order of what its client knew",
            "faultline.checkers.memory.checker",
            "WeakCausalChecker",
        ),
        CheckerDescription(
            "pram",
            "each client has one order of all writes and its reads, each client's in its own order",
            "faultline.checkers.memory.checker",
            "PramChecker",
        ),
        CheckerDescription(
            "staleness",
            "how stale the reads of registers are, in versions and in time; within bounds, where some are given",
            "faultline.checkers.memory.staleness",
            "StalenessChecker",
        ),
        CheckerDescription(
            "rw-read-committed",
            "transactions on registers never see what was aborted, nor go back while they read",
            "faultline.checkers.isolation.weak",
            "ReadCommittedChecker",
        ),
        CheckerDescription(
            "rw-read-atomic",
            "transactions on registers see others altogether or not at all",
            "faultline.checkers.isolation.weak",
            "ReadAtomicChecker",
        ),
        CheckerDescription(
            "rw-causal",
            "transactions on registers that know of something know of what led to it",
            "faultline.checkers.isolation.weak",
            "CausalConsistencyChecker",
        ),
        CheckerDescription(
            "rw-snapshot-isolation",
            "transactions on registers read from snapshots, and no two that overlap write the same key",
            "faultline.checkers.isolation.strong",
            "SnapshotIsolationChecker",
        ),
        CheckerDescription(
            "rw-serializable",
            "transactions on registers behave as if they had run one by one",
            "faultline.checkers.isolation.strong",
            "SerializabilityChecker",
        ),
        CheckerDescription(
            "errors",
            "unexpected errors, grouped by code",
            "faultline.checkers.classic.errors",
            "UnhandledErrorsChecker",
        ),
        CheckerDescription(
            "log-patterns",
            "no node's log tells of a panic or of damage",
            "faultline.checkers.classic.log_patterns",
            "LogPatternChecker",
        ),
        CheckerDescription(
            "clock",
            "how wrong each clock was over time",
            "faultline.checkers.classic.clocks",
            "ClockChecker",
        ),
        CheckerDescription(
            "list-append",
            "transactions of appends to lists and reads of them keep what their consistency model promises",
            "faultline.checkers.transactions.checker",
            "ListAppendChecker",
        ),
        CheckerDescription(
            "rw-register",
            "transactions of writes to registers and reads of them keep what their consistency model promises",
            "faultline.checkers.transactions.checker",
            "RwRegisterChecker",
        ),
        CheckerDescription(
            "txn-set",
            "transactions of adds to grow-only sets and reads of them keep what their consistency model promises",
            "faultline.checkers.transactions.checker",
            "SetTransactionsChecker",
        ),
        CheckerDescription(
            "txn-counter",
            "transactions of increments of counters and reads of them keep what their consistency model promises",
            "faultline.checkers.transactions.checker",
            "CounterTransactionsChecker",
        ),
        CheckerDescription(
            "closed-predicate",
            "transactions that write objects and ask for those that fulfil a condition keep their consistency model",
            "faultline.checkers.transactions.checker",
            "ClosedPredicateChecker",
        ),
    )
}
