"""Timestamped store: values under stamps of Lamport or hybrid clocks, and readers that trust a clock.

*Problem.* Keys live on several servers, each with a clock of its own. A client wants to read "the latest" by the clock
of the server it is near, and to be told neither the future nor an outdated past.

*Idea.* Every value is stored under the stamp its owner gave it (`lamport_clock`, `hybrid_clock`), and can be read as of
any time. Stamps alone order causes: a client that has seen the effect can ask for the cause at the effect's stamp, and
gets it. They do not order the writes of two clients that know nothing of each other: for that the writer or the reader
has to wait (`clock_bound_wait`, option `wait`).

    wait=none      a reader whose clock is slow misses acknowledged writes: an expected anomaly
    wait=write     the writer waits for max_offset        linearizable as long as clocks differ by no more
    wait=restart   the reader reads again                 linearizable as long as clocks differ by no more
    wait=commit    both wait for the error bound          linearizable as long as clocks are off by no more

*Invariants.* HYC-I1, LMC-I3, LMC-I4; with `wait=write` and `commit` CBW-I1, with `commit` CBW-I3.

*Tolerates.* Clock faults within the bound; lost, late and repeated messages; crashes (a key is away while its owner
is down).

*Does not tolerate.* Clocks beyond the bound, visibly: the fault set `clock` breaks every promise of `wait`.

*Workloads.* `causal-pairs` and `causal-writes` with any clock and wait; `read-write` with a wait.

*Checkers.* `causal-pairs`, `dependent-writes`, linearizability; the invariants.

*Planted bugs.* See `planted_bugs`.

Sources: Patterns of Distributed Systems ch. 22, 23 and 24. There is neither replication nor a transaction here.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.shared.clock_faults import has_wrong_clocks
from faultline.systems_under_test.reference.timestamped_kv.client import TimestampedKvClient
from faultline.systems_under_test.reference.timestamped_kv.features import FEATURES
from faultline.systems_under_test.reference.timestamped_kv.invariants import timestamped_kv_invariants
from faultline.systems_under_test.reference.timestamped_kv.messages import MESSAGES
from faultline.systems_under_test.reference.timestamped_kv.node import TimestampedKvNode
from faultline.systems_under_test.reference.timestamped_kv.options import OPTIONS, TimestampSettings
from faultline.systems_under_test.reference.timestamped_kv.planted_bugs import BUGS

__all__ = ["TimestampedKv"]

_CLOCK_FAULTS = frozenset({"clock-step", "clock-strobe", "clock-drift"})
_SKEW_MS = 100
"""The farthest that shipped fault sets with small skews put a clock from the true time."""


class TimestampedKv:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "timestamped-kv"
    promise = "causes are seen with their effects; with a wait, every key is a linearizable register while clocks keep"
    promise += " their bound"
    summary = "values under Lamport or hybrid stamps, read by the clock of any node, with or without clock-bound waits"
    patterns = ("write-ahead-log", "versioned-value", "lamport-clock", "hybrid-clock", "clock-bound-wait")
    functions = ("read", "write", "read-pair", "write-pair")
    usual_workload = "causal-pairs"
    usual_nodes = 3
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> TimestampedKvNode:
        """Return a node with empty memory over `ports`. Raise `UsageError` for unusable options or bugs."""
        return TimestampedKvNode(ports, TimestampSettings.read(options), BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> TimestampedKvClient:
        """Return a client that reads by the clock of `node`."""
        client_class = BUGS.client(TimestampedKvClient, planted_bugs)
        return client_class(ports, members, node, TimestampSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Return in a clause why the claim of the workload need not hold; None when it must."""
        if asked.chose("wait", "none"):
            # Stamps that clients carry order cause and effect. A wait promises the order of real time as well (CBW-I1).
            if asked.workload in ("causal-pairs", "causal-writes"):
                return None
            return "with wait=none no write waits for clocks to agree, and a slow one misses the newest value"
        if has_wrong_clocks(asked):
            return f"{'+'.join(asked.faults)} puts clocks further apart than any wait allows for"
        commit = asked.chose("wait", "commit")
        option, least = ("error_bound_ms", _SKEW_MS) if commit else ("max_offset_ms", 2 * _SKEW_MS)
        if asked.number(option) < least and not asked.fault_kinds.isdisjoint(_CLOCK_FAULTS):
            return f"{option}={asked.options[option]} is too short for clocks as {'+'.join(asked.faults)} sets them"
        return None

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the invariants."""
        return timestamped_kv_invariants()
