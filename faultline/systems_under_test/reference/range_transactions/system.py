"""Transactions on ranges: a small Spanner, whose ranges split and move while transactions are open.

*Problem.* Keys are spread over nodes by ranges that follow the load, so they are split and moved all the time. A
transaction over several ranges must not care: it commits on all of them or on none, and a reader anywhere that begins
after it ended sees it, though no two clocks agree.

*Idea.* Two-phase commit between *ranges*, not nodes (`two_phase_commit`, `key_range_partitions`). A coordinator keeps
keys, and finds their ranges when it sends; a range is known by its id and generation, and takes its promises along when
it moves (`ranges`). Clocks know their error, and a commit gets a time that is past before it is told
(`clock_bound_wait`, `times`). Transactions that only read do so at one time, without locks, over any number of ranges.

    wait=commit    coordinators wait while participants are prepared      strictly serializable
    wait=restart   readers read anew what they cannot place in time       serializable, and every snapshot adds up

*Invariants.* KRP-I1 the ranges cover all keys. KRP-I4 one host per range and generation. TPC-S15 a range carries its
promises through every split and move. CBW-I4 a commit is past when it is told. CBW-I1 the versions of a key ascend.
TPC-I2 to TPC-I9 and HYC-I5 for each range, wherever it is.

*Tolerates.* Splits and moves at any moment of a transaction; crashes of any node, lost, late and repeated messages;
clocks that are wrong within the bound.

*Does not tolerate.* Clocks beyond the bound: then a reader may miss what was acknowledged. Neither ranges nor their
table are replicated: a node that is down takes its ranges away, and while the coordinator of the table is down nothing
splits or moves and no client learns of a change; a disk that is lost is lost. Old versions are kept for ever.

*Workloads.* `bank`, `booking`, `txn-append`, `txn-register`, `lost-update`, `write-skew` and `predicates`.

*Checkers.* `bank`, `booking`, `list-append`, `rw-register`, `closed-predicate`; the invariants.

*Planted bugs.* See `planted_bugs`.

Sources: Patterns of Distributed Systems ch. 20, 21 and 24; Corbett et al., "Spanner: Google's Globally-Distributed
Database" (OSDI 2012); CockroachDB for the reads that restart.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.universe import Domains
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.range_transactions.client import RangeTransactionsClient
from faultline.systems_under_test.reference.range_transactions.features import FEATURES
from faultline.systems_under_test.reference.range_transactions.invariants import range_transactions_invariants
from faultline.systems_under_test.reference.range_transactions.messages import MESSAGES
from faultline.systems_under_test.reference.range_transactions.options import (
    OPTIONS,
    SETTINGS,
    RangeTransactionSettings,
)
from faultline.systems_under_test.reference.range_transactions.planted_bugs import BUGS
from faultline.systems_under_test.reference.range_transactions.stored_node import StoredNode
from faultline.systems_under_test.reference.shared.clock_faults import has_wrong_clocks
from faultline.systems_under_test.reference.transactions.programs import FUNCTIONS
from faultline.systems_under_test.reference.transactions.promise import STRICT, reason_of_forgotten_transactions

__all__ = ["RangeTransactions"]

_CLOCK_FAULTS = frozenset({"clock-step", "clock-strobe", "clock-drift"})
_SKEW_MS = 100
"""The farthest that shipped fault sets with small skews put a clock from the true time."""


class RangeTransactions:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "range-transactions"
    promise = (
        "transactions over all keys are strictly serializable, while ranges split and move and clocks keep their bound"
    )
    summary = "ranges that split and move under two-phase commit, with commit wait and snapshot reads: a small Spanner"
    patterns: tuple[str, ...] = (
        "two-phase-commit",
        "key-range-partitions",
        "clock-bound-wait",
        "write-ahead-log",
        "versioned-value",
        "hybrid-clock",
        "generation-clock",
        "singular-update-queue",
        "low-water-mark",
    )
    functions: tuple[str, ...] = FUNCTIONS
    answer_forms = ("conditions",)
    usual_workload = "txn-append"
    usual_nodes = 3
    # A transaction over five keys waits for twelve answers one after the other, and then for the clock. Where ranges
    # move all the time, a single attempt often meets one that moves.
    domains = Domains(options={"client_timeout_ms": ("3000", "6000"), "attempts_max": ("6", "12", "24")})
    options: Mapping[str, OptionDescription] = OPTIONS
    tuning: Mapping[str, OptionDescription] = SETTINGS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> StoredNode:
        """Return a node with empty memory. Raise `UsageError` for options or planted bugs it cannot use."""
        return StoredNode(ports, members, RangeTransactionSettings.read(options), BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> RangeTransactionsClient:
        """Return a client that asks the first member for the table, and reads at one time by the clock of `node`."""
        settings = RangeTransactionSettings.read(options)
        return RangeTransactionsClient(ports, members[0], node, settings, BUGS.parts(planted_bugs).executor)

    def not_promised(self, asked: Asked) -> str | None:
        """Return a clause that says why the workload's checks need not hold; None when they must."""
        forgotten = reason_of_forgotten_transactions(asked)
        if forgotten is not None:
            return forgotten
        if asked.chose("wait", "restart"):
            if asked.workload in STRICT:
                return "with wait=restart a snapshot may miss a commit and show another one that began after it"
            return None
        if asked.workload not in STRICT:
            return None
        if has_wrong_clocks(asked):
            return f"{'+'.join(asked.faults)} puts clocks further from the true time than commits wait for"
        if asked.number("error_bound_ms") < _SKEW_MS and not asked.fault_kinds.isdisjoint(_CLOCK_FAULTS):
            bound = asked.options["error_bound_ms"]
            return f"error_bound_ms={bound} is too short for clocks as {'+'.join(asked.faults)} sets them"
        return None

    def invariants(self) -> list[Invariant]:
        """Return new instances of the system's invariants."""
        return range_transactions_invariants()
