"""The system `transactional-kv`: keys spread over nodes, and transactions over any of them by two-phase commit.

By default nothing is replicated: the keys of a node that is down are away, and its promises block others. With
`replication_factor=3` each partition is a group of three nodes with a replicated log (`groups`, `group_replica`), and
as long as two of them live and reach each other, no transaction is blocked and none is lost.
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
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks
from faultline.systems_under_test.reference.transactional_kv.client import GroupClient, TransactionalKvClient
from faultline.systems_under_test.reference.transactional_kv.features import FEATURES
from faultline.systems_under_test.reference.transactional_kv.group_invariants import group_invariants
from faultline.systems_under_test.reference.transactional_kv.group_messages import GROUP_MESSAGES
from faultline.systems_under_test.reference.transactional_kv.group_node import GroupedNode
from faultline.systems_under_test.reference.transactional_kv.messages import MESSAGES
from faultline.systems_under_test.reference.transactional_kv.options import OPTIONS, SETTINGS, TransactionSettings
from faultline.systems_under_test.reference.transactional_kv.replicated_planted_bugs import BUGS
from faultline.systems_under_test.reference.transactional_kv.unreplicated_node import UnreplicatedNode
from faultline.systems_under_test.reference.transactions.invariants import transaction_invariants
from faultline.systems_under_test.reference.transactions.programs import FUNCTIONS
from faultline.systems_under_test.reference.transactions.promise import STRICT, reason_of_forgotten_transactions

__all__ = ["TransactionalKv"]


class TransactionalKv:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "transactional-kv"
    promise = "transactions over all keys are atomic and strictly serializable"
    summary = (
        "keys spread over nodes or replicated groups, transactions by two-phase commit, three policies for conflicts"
    )
    patterns: tuple[str, ...] = (
        "two-phase-commit",
        "write-ahead-log",
        "segmented-log",
        "versioned-value",
        "hybrid-clock",
        "lamport-clock",
        "singular-update-queue",
        "low-water-mark",
        "leader-and-followers",
        "replicated-log",
        "high-water-mark",
    )
    functions: tuple[str, ...] = FUNCTIONS
    answer_forms = ("conditions",)
    usual_workload = "txn-append"
    usual_nodes = 3
    # A transaction over five keys waits for twelve answers one after the other, seven of them behind a flush, or a
    # quorum's. On slow disks and links that alone takes longer than 375 ms, and with losses longer than 750 ms.
    domains = Domains(options={"client_timeout_ms": ("3000", "6000")})
    options: Mapping[str, OptionDescription] = OPTIONS
    tuning: Mapping[str, OptionDescription] = SETTINGS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*MESSAGES, *GROUP_MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> UnreplicatedNode | GroupedNode:
        """Return a node with empty memory. Raise `UsageError` for options or planted bugs it cannot use."""
        settings = TransactionSettings.read(options)
        node = GroupedNode if settings.is_replicated else UnreplicatedNode
        return node(ports, members, settings, BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> TransactionalKvClient:
        """Return a client. It talks to the nodes that hold the keys of its transactions, not to `node` first."""
        settings = TransactionSettings.read(options)
        return (GroupClient if settings.is_replicated else TransactionalKvClient)(ports, members, settings)

    def not_promised(self, asked: Asked) -> str | None:
        """Return a clause that says why the workload's checks need not hold; None when they must."""
        if asked.chose("isolation", "snapshot") and asked.workload in STRICT:
            return "with isolation=snapshot two transactions may each miss what the other writes"
        if asked.chose("read_only", "snapshot") and asked.workload in STRICT and not asked.chose("clock", "oracle"):
            return "with read_only=snapshot a read at the time of a slow clock misses new values, unless clock=oracle"
        if has_runaway_clocks(asked) and not asked.chose("replication_factor", "1"):
            return f"no leader's lease has a margin for clocks that run as {'+'.join(asked.faults)} lets them"
        return reason_of_forgotten_transactions(asked)

    def invariants(self) -> list[Invariant]:
        """Return new instances of the system's invariants."""
        return [*transaction_invariants(), *group_invariants()]
