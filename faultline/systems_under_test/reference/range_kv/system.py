"""The system `range-kv`: a store whose keys are divided by ranges, which split and move while clients go on.

Each partition has one copy, on one host: while a host is down, its ranges are away. The promise holds through crashes,
and while ranges are split and moved.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.universe import Domains
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.range_kv.client import FUNCTIONS, RangeClient
from faultline.systems_under_test.reference.range_kv.features import FEATURES
from faultline.systems_under_test.reference.range_kv.invariants import range_invariants
from faultline.systems_under_test.reference.range_kv.messages import MESSAGES
from faultline.systems_under_test.reference.range_kv.node import RangeNode
from faultline.systems_under_test.reference.range_kv.options import OPTIONS, RangeSettings
from faultline.systems_under_test.reference.range_kv.planted_bugs import BUGS

__all__ = ["RangeKv"]


class RangeKv:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "range-kv"
    promise = (
        "every key is linearizable, and a scan misses nothing that was there throughout, while ranges split and move"
    )
    summary = (
        "key ranges on one host each, split by size or load and moved by a coordinator, with generation-checked clients"
    )
    patterns = ("key-range-partitions", "write-ahead-log", "generation-clock")
    functions = FUNCTIONS
    # Keys of workloads are k0, k1 …: with one range to begin with, few runs have several before they end.
    domains = Domains(options={"splits": ("k2", "k12,k2", "k1,k3,k5")})
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> RangeNode:
        """Return a node with empty memory. Raise `UsageError` for options or planted bugs it cannot use."""
        return RangeNode(ports, members, RangeSettings.read(options), BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> RangeClient:
        """Return a client that asks the coordinator for the table, and the hosts for keys and ranges."""
        return RangeClient(ports, members[0], RangeSettings.read(options), BUGS.parts(planted_bugs).map)

    def invariants(self) -> list[Invariant]:
        """Return new instances of the system's invariants."""
        return range_invariants()
