"""The checkers that judge a run, and `check`, which judges a history from a program of one's own.

`CHECKERS` names each checker with a factory and one line about it. The module itself imports none of them, so that
listing checkers costs nothing; each name is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultline.checkers.table import CHECKERS, CheckerDescription
from faultline.exports import lazily

if TYPE_CHECKING:
    from faultline.checkers.availability import AvailabilityChecker
    from faultline.checkers.bookings import BookingsChecker
    from faultline.checkers.causal_pairs import CausalPairsChecker
    from faultline.checkers.classic.adya import AdyaG2Checker
    from faultline.checkers.classic.bank import BankChecker
    from faultline.checkers.classic.causal import CausalChecker
    from faultline.checkers.classic.causal_reverse import CausalReverseChecker
    from faultline.checkers.classic.clocks import ClockChecker
    from faultline.checkers.classic.counter import CounterChecker
    from faultline.checkers.classic.errors import UnhandledErrorsChecker
    from faultline.checkers.classic.lock import LockChecker
    from faultline.checkers.classic.log import LogChecker
    from faultline.checkers.classic.log_patterns import LogPatternChecker
    from faultline.checkers.classic.long_fork import LongForkChecker
    from faultline.checkers.classic.monotonic import MonotonicChecker
    from faultline.checkers.classic.queues import QueueChecker, TotalQueueChecker
    from faultline.checkers.classic.sessions import SessionsChecker
    from faultline.checkers.classic.set_full import SetFullChecker
    from faultline.checkers.classic.sets import SetChecker
    from faultline.checkers.classic.transfers import TransfersChecker
    from faultline.checkers.classic.unique_ids import UniqueIdsChecker
    from faultline.checkers.convergence import ConvergenceChecker
    from faultline.checkers.follower_reads import FollowerReadsChecker
    from faultline.checkers.invariants import InvariantChecker
    from faultline.checkers.isolation.strong import SerializabilityChecker, SnapshotIsolationChecker
    from faultline.checkers.isolation.weak import CausalConsistencyChecker, ReadAtomicChecker, ReadCommittedChecker
    from faultline.checkers.leased_lock import LeasedLockChecker
    from faultline.checkers.library.checking import check
    from faultline.checkers.library.result import Result
    from faultline.checkers.linearizability.checker import LinearizabilityChecker
    from faultline.checkers.linearizability.generic_search import Hooks
    from faultline.checkers.linearizability.proof import Proof
    from faultline.checkers.membership import MembershipChecker
    from faultline.checkers.memory.checker import (
        CausalConvergenceChecker,
        CausalMemoryChecker,
        PramChecker,
        SequentialChecker,
        WeakCausalChecker,
    )
    from faultline.checkers.memory.staleness import StalenessChecker
    from faultline.checkers.porcupine.model import PENDING, UNKNOWN, Model, NondeterministicModel, Operation
    from faultline.checkers.scans import ScansChecker
    from faultline.checkers.siblings import SiblingsChecker
    from faultline.checkers.stats import StatsChecker
    from faultline.checkers.transactions.checker import (
        ClosedPredicateChecker,
        CounterTransactionsChecker,
        ListAppendChecker,
        RwRegisterChecker,
        SetTransactionsChecker,
    )
    from faultline.checkers.transactions.proof import TransactionProof
    from faultline.checkers.vacuity import VacuityChecker
    from faultline.checkers.watches import WatchesChecker

__all__ = [
    "CHECKERS",
    "PENDING",
    "UNKNOWN",
    "AdyaG2Checker",
    "AvailabilityChecker",
    "BankChecker",
    "BookingsChecker",
    "CausalChecker",
    "CausalConsistencyChecker",
    "CausalConvergenceChecker",
    "CausalMemoryChecker",
    "CausalPairsChecker",
    "CausalReverseChecker",
    "CheckerDescription",
    "ClockChecker",
    "ClosedPredicateChecker",
    "ConvergenceChecker",
    "CounterChecker",
    "CounterTransactionsChecker",
    "FollowerReadsChecker",
    "Hooks",
    "InvariantChecker",
    "LeasedLockChecker",
    "LinearizabilityChecker",
    "ListAppendChecker",
    "LockChecker",
    "LogChecker",
    "LogPatternChecker",
    "LongForkChecker",
    "MembershipChecker",
    "Model",
    "MonotonicChecker",
    "NondeterministicModel",
    "Operation",
    "PramChecker",
    "Proof",
    "QueueChecker",
    "ReadAtomicChecker",
    "ReadCommittedChecker",
    "Result",
    "RwRegisterChecker",
    "ScansChecker",
    "SequentialChecker",
    "SerializabilityChecker",
    "SessionsChecker",
    "SetChecker",
    "SetFullChecker",
    "SetTransactionsChecker",
    "SiblingsChecker",
    "SnapshotIsolationChecker",
    "StalenessChecker",
    "StatsChecker",
    "TotalQueueChecker",
    "TransactionProof",
    "TransfersChecker",
    "UnhandledErrorsChecker",
    "UniqueIdsChecker",
    "VacuityChecker",
    "WatchesChecker",
    "WeakCausalChecker",
    "check",
]

_LIBRARY = {
    "Hooks": "faultline.checkers.linearizability.generic_search",
    "Proof": "faultline.checkers.linearizability.proof",
    "Result": "faultline.checkers.library.result",
    "TransactionProof": "faultline.checkers.transactions.proof",
    "check": "faultline.checkers.library.checking",
}
_MODEL = dict.fromkeys(
    ("PENDING", "UNKNOWN", "Model", "NondeterministicModel", "Operation"), "faultline.checkers.porcupine.model"
)
_MODULES = {description.class_name: description.module for description in CHECKERS.values()}

__getattr__, __dir__ = lazily(__name__, _MODULES | _LIBRARY | _MODEL)
