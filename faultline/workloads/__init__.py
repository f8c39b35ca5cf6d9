"""Workloads: the operations of clients, the promise of the store about them, and the checkers that decide.

Found by entry points (`faultline.workloads`). With Faultline come `register`, `read-write` for stores that offer no
compare-and-set, `siblings` for stores that answer with concurrent values, and `cart` for applications that resolve
them; `transfer`, `counter`, `set`, `append`, `log-order`, `sequential`, `sessions` and `unique-ids` for stores that
offer more than registers.

A workload names the `functions` that it invokes, and a system those that its clients perform; a run in which they do
not fit is refused before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultline.exports import lazily

if TYPE_CHECKING:
    from faultline.workloads.appends import Appends, LogOrder
    from faultline.workloads.bank import Bank
    from faultline.workloads.booking import Bookings
    from faultline.workloads.carts import Carts
    from faultline.workloads.causal_pairs import CausalPairs
    from faultline.workloads.counters import Counters, Sessions, UniqueIds
    from faultline.workloads.dependent_writes import CausalWrites, DependentWrites, MovedSessions
    from faultline.workloads.follower_reads import BoundedStaleness, FollowerReads, ReadYourWrites
    from faultline.workloads.locks import Locks
    from faultline.workloads.membership import Memberships
    from faultline.workloads.metadata import Metadata
    from faultline.workloads.predicates import Predicates
    from faultline.workloads.queues import Queues
    from faultline.workloads.read_write import ReadWrite
    from faultline.workloads.register import Register
    from faultline.workloads.scans import Scans
    from faultline.workloads.sets import Sequential, Sets
    from faultline.workloads.siblings import SiblingWrites
    from faultline.workloads.transactions import (
        AppendTransactions,
        LongFork,
        LostUpdates,
        RegisterTransactions,
        WriteSkew,
    )
    from faultline.workloads.transfer import Transfers
    from faultline.workloads.watches import KeyWatches, Watches

__all__ = [
    "AppendTransactions",
    "Appends",
    "Bank",
    "Bookings",
    "BoundedStaleness",
    "Carts",
    "CausalPairs",
    "CausalWrites",
    "Counters",
    "DependentWrites",
    "FollowerReads",
    "KeyWatches",
    "Locks",
    "LogOrder",
    "LongFork",
    "LostUpdates",
    "Memberships",
    "Metadata",
    "MovedSessions",
    "Predicates",
    "Queues",
    "ReadWrite",
    "ReadYourWrites",
    "Register",
    "RegisterTransactions",
    "Scans",
    "Sequential",
    "Sessions",
    "Sets",
    "SiblingWrites",
    "Transfers",
    "UniqueIds",
    "Watches",
    "WriteSkew",
]

_MODULES = {
    "Appends": "faultline.workloads.appends",
    "LogOrder": "faultline.workloads.appends",
    "Bank": "faultline.workloads.bank",
    "Bookings": "faultline.workloads.booking",
    "Carts": "faultline.workloads.carts",
    "CausalPairs": "faultline.workloads.causal_pairs",
    "CausalWrites": "faultline.workloads.dependent_writes",
    "Counters": "faultline.workloads.counters",
    "Sessions": "faultline.workloads.counters",
    "UniqueIds": "faultline.workloads.counters",
    "DependentWrites": "faultline.workloads.dependent_writes",
    "MovedSessions": "faultline.workloads.dependent_writes",
    "BoundedStaleness": "faultline.workloads.follower_reads",
    "FollowerReads": "faultline.workloads.follower_reads",
    "ReadYourWrites": "faultline.workloads.follower_reads",
    "Locks": "faultline.workloads.locks",
    "Memberships": "faultline.workloads.membership",
    "Metadata": "faultline.workloads.metadata",
    "Predicates": "faultline.workloads.predicates",
    "Queues": "faultline.workloads.queues",
    "ReadWrite": "faultline.workloads.read_write",
    "Register": "faultline.workloads.register",
    "Scans": "faultline.workloads.scans",
    "Sequential": "faultline.workloads.sets",
    "Sets": "faultline.workloads.sets",
    "SiblingWrites": "faultline.workloads.siblings",
    "AppendTransactions": "faultline.workloads.transactions",
    "LongFork": "faultline.workloads.transactions",
    "LostUpdates": "faultline.workloads.transactions",
    "RegisterTransactions": "faultline.workloads.transactions",
    "WriteSkew": "faultline.workloads.transactions",
    "Transfers": "faultline.workloads.transfer",
    "KeyWatches": "faultline.workloads.watches",
    "Watches": "faultline.workloads.watches",
}

__getattr__, __dir__ = lazily(__name__, _MODULES)
