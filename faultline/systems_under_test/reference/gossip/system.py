"""The system `gossip`: metadata of every node, known to all after a while, without a leader and without a quorum.

Each key belongs to one node, which alone says something under it; a client reads what *its* node has heard. Nothing is
promised about when news arrive, except that they do, and that nobody falls behind what he knew. Which nodes are up is
judged by heartbeats in the gossip or by SWIM (option `detector`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.promises import Asked
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.reference.gossip.client import GossipClient
from faultline.systems_under_test.reference.gossip.features import FEATURES
from faultline.systems_under_test.reference.gossip.invariants import gossip_invariants
from faultline.systems_under_test.reference.gossip.limits import not_promised
from faultline.systems_under_test.reference.gossip.messages import MESSAGES
from faultline.systems_under_test.reference.gossip.node import GossipNode
from faultline.systems_under_test.reference.gossip.options import OPTIONS, GossipSettings
from faultline.systems_under_test.reference.gossip.planted_bugs import PLANTED_BUGS, mutated_parts, node_class

__all__ = ["Gossip"]


class Gossip:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "gossip"
    promise = (
        "what a node says is known to all live, connected nodes after some rounds, and nobody's knowledge gets older"
    )
    summary = "metadata spread by push-pull gossip with versions and generations; heartbeats, phi accrual or SWIM"
    patterns = ("gossip-dissemination", "generation-clock", "heartbeat", "versioned-value")
    functions = ("read", "write", "view")
    usual_workload = "metadata"
    usual_nodes = 5
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = PLANTED_BUGS
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = MESSAGES

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> GossipNode:
        """A node with empty memory over `ports`. Raises UsageError for options or planted bugs it cannot use."""
        return node_class(planted_bugs)(ports, members, GossipSettings.read(options), mutated_parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> GossipClient:
        """A client that reads what `node` has heard."""
        return GossipClient(ports, members, node, GossipSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Why what a workload judges by need not hold, in a clause; None when it must."""
        return not_promised(asked)

    def invariants(self) -> list[Invariant]:
        """Fresh instances of the system's invariants."""
        return gossip_invariants()
