"""The system `emergent-leader`: a cluster of equals, coordinated by its oldest member, that heals itself after a cut.

Clients ask any node who belongs to the cluster. A node answers only for a group that may serve: not while it belongs to
none, and not for a group below the minimum size.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.emergent.client import EmergentClient
from faultline.systems_under_test.reference.emergent.features import FEATURES
from faultline.systems_under_test.reference.emergent.invariants import emergent_invariants
from faultline.systems_under_test.reference.emergent.limits import not_promised
from faultline.systems_under_test.reference.emergent.messages import MESSAGES
from faultline.systems_under_test.reference.emergent.node import EmergentNode
from faultline.systems_under_test.reference.emergent.options import OPTIONS, EmergentSettings
from faultline.systems_under_test.reference.emergent.planted_bugs import PLANTED_BUGS, mutated_parts, node_class

__all__ = ["EmergentLeader"]


class EmergentLeader:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "emergent-leader"
    promise = "one coordinator per connected group, no two disjoint groups serve clients, and split groups merge"
    summary = "membership without elections: the oldest member coordinates, groups that were cut apart merge"
    patterns = ("emergent-leader", "heartbeat", "quorum", "generation-clock")
    functions = ("view",)
    answer_forms = ("memberships",)
    usual_workload = "membership"
    usual_nodes = 5
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = PLANTED_BUGS
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> EmergentNode:
        """A node with empty memory over `ports`. Raises UsageError for options or planted bugs it cannot use."""
        return node_class(planted_bugs)(ports, members, EmergentSettings.read(options), mutated_parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> EmergentClient:
        """A client of `node`."""
        return EmergentClient(ports, node, EmergentSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Why what a workload judges by need not hold, in a clause; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Fresh instances of the system's invariants."""
        return emergent_invariants()
