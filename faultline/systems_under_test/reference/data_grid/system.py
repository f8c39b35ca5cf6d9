"""Data grid: partitions with backups in the memory of members, which the oldest member hands out.

*Problem.* A cluster of equals is to keep data without electing a leader. Its oldest member decides where partitions
lie. But an emergent leader is no agreement: cut in two, each half has a coordinator, and each could hand out the same
partitions.

*Idea.* A member does not follow a coordinator only because it is the oldest. The coordinator makes a *table* in a
round: every live member promises to follow no earlier table, and tells which copies it holds. With
`minimum_size=majority` a round needs a majority of all nodes, so any two rounds have a member in common, and an owner
serves only under a *lease* that a majority has granted for its table.

    athens 1 coordinates    byzantium 2    cyrene 3            cyrene owns 7, byzantium backs it up
    cyrene falls silent
    athens ── collect ─▶ byzantium: "copy of 7, generation 4"  no grants for the old table from now on
    athens ── publish ─▶ byzantium owns 7 in generation 9      it waits for cyrene's lease to run out, then answers

With `minimum_size=none` both halves of a split go on, each with its data. At the merge the group that dissolves drops
its own, and the grid reports which acknowledged writes are lost and which keys both groups wrote.

*Invariants.* EL-I9 one owner per generation serves. EL-I10 answers are on all backups. EL-I11 the versions of tables
ascend. EL-I12 owners hold leases. EL-I13 dropped writes are reported. Beside them those of memberships.

*Tolerates.* Cuts of any kind, pauses, messages that are lost, late or repeated; crashes of as many nodes as there are
backups, until the rest has copied the data again.

*Does not tolerate.* The loss of all copies of a partition: data are in memory, and only the table is on the disks.

*Workloads.* All of single keys: `register`, `read-write`, `append`, `set`, `transfer` and others.

*Checkers.* Linearizability, and those of the workloads; the invariants.

*Planted bugs.* See `planted_bugs`.

Sources: Patterns of Distributed Systems ch. 29; the partition tables, backups and split-brain protection of Hazelcast
and Ignite; Lamport, Malkhi and Zhou, "Vertical Paxos and primary-backup replication" (2009); Gray and Cheriton,
"Leases" (1989).
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
from faultline.systems_under_test.reference.data_grid.client import FUNCTIONS, DataGridClient
from faultline.systems_under_test.reference.data_grid.features import FEATURES
from faultline.systems_under_test.reference.data_grid.invariants import grid_invariants
from faultline.systems_under_test.reference.data_grid.messages import MESSAGES
from faultline.systems_under_test.reference.data_grid.node import DataGridNode
from faultline.systems_under_test.reference.data_grid.options import OPTIONS, GridSettings
from faultline.systems_under_test.reference.data_grid.planted_bugs import BUGS
from faultline.systems_under_test.reference.shared.clock_faults import has_runaway_clocks

__all__ = ["DataGrid"]

_BACKUPS_FOR_CRASHES = 2
"""The backups with which a second crash, before the data of the first are copied again, leaves a copy."""

_ONE_CRASH_AT_A_TIME = frozenset(
    {"leadership", "partition", "pause", "packet", "retries", "loss", "clock", "clocks", "skew", "gentle-drift"}
    | {"steps", "connections", "wire", "link-down", "freeze", "squeeze", "fail-over", "followers"}
)
"""The shipped fault sets that end no process, or that of one node at a time."""

_FAILURE_MS_MAX = 600
"""The longest failure time-out with which a cluster is whole again when its clients are served for the last time."""

_FOUNDING_MS_MAX = 1_000
"""The longest round of a seed's questions with which all nodes have joined while clients work."""


class DataGrid:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "data-grid"
    promise = "every key is linearizable while a copy of it lives, also when owners fail and partitions move"
    summary = "partitions with backups in the memory of members, handed out by the oldest one and served under leases"
    patterns = ("emergent-leader", "fixed-partitions", "heartbeat", "quorum", "generation-clock", "idempotent-receiver")
    functions = FUNCTIONS
    usual_workload = "register"
    usual_nodes = 5
    # An aimed kill strikes at an event of one node, and the next at that of another: soon no copy is left.
    domains = Domains(nodes=(5, 5, 5, 5, 6, 7), events=())
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> DataGridNode:
        """Return a node with empty memory over `ports`. Raise `UsageError` for unusable options or bugs."""
        node_class = BUGS.node(DataGridNode, planted_bugs)
        return node_class(ports, members, GridSettings.read(options), BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> DataGridClient:
        """Return a client that asks `node` for the table first."""
        return BUGS.client(DataGridClient, planted_bugs)(ports, members, node, GridSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Return in a clause why the claim of the workload need not hold; None when it must."""
        if asked.chose("minimum_size", "none"):
            return "with minimum_size=none both halves of a split go on, and the merge drops one half's writes"
        if asked.number("join_attempts"):
            return f"a joiner gives up for good after join_attempts={asked.number('join_attempts')}"
        if has_runaway_clocks(asked):
            return f"{'+'.join(asked.faults)} lets clocks run away, beyond what leases allow for"
        return self._why_data_are_lost(asked) or self._why_it_is_late(asked)

    def _why_data_are_lost(self, asked: Asked) -> str | None:
        if not asked.ends_processes:
            return None
        if not _ONE_CRASH_AT_A_TIME.issuperset(asked.faults):
            return f"data are in memory, and {'+'.join(asked.faults)} may end all processes that hold a copy"
        if asked.number("backups") < _BACKUPS_FOR_CRASHES:
            return f"with backups={asked.number('backups')} two crashes in a row may lose all copies of a partition"
        return None

    def _why_it_is_late(self, asked: Asked) -> str | None:
        if asked.number("failure_timeout_ms") > _FAILURE_MS_MAX:
            timeout_ms = asked.options["failure_timeout_ms"]
            return f"with failure_timeout_ms={timeout_ms} failed owners are replaced later than a run waits"
        others = max(1, min(asked.number("seeds"), asked.nodes) - 1)
        round_ms = others * asked.number("join_timeout_ms")
        if round_ms > _FOUNDING_MS_MAX:
            return f"a seed asks {others} others for {round_ms} ms before it founds a cluster, which is late in a run"
        return None

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the invariants."""
        return grid_invariants()
