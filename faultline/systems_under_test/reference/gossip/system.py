"""The system `gossip`: metadata of every node, known to all nodes after a while, without a leader and without a quorum.

Each key belongs to one node, and only that node says something under it. A client reads what *its* node has heard. News
arrive some time, and no node falls behind what it knew; nothing is promised about when. Heartbeats in the gossip or
SWIM tell which nodes are up (option `detector`).
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
from faultline.systems_under_test.reference.gossip.client import GossipClient
from faultline.systems_under_test.reference.gossip.detector_invariants import detector_invariants
from faultline.systems_under_test.reference.gossip.features import FEATURES
from faultline.systems_under_test.reference.gossip.invariants import gossip_invariants
from faultline.systems_under_test.reference.gossip.messages import MESSAGES
from faultline.systems_under_test.reference.gossip.node import GossipNode
from faultline.systems_under_test.reference.gossip.options import DETECTORS, OPTIONS, GossipSettings
from faultline.systems_under_test.reference.gossip.planted_bugs import BUGS
from faultline.systems_under_test.reference.gossip.watching import WATCH_MESSAGES

__all__ = ["Gossip"]

_PROMISED = "metadata"
_INTERVAL_MS_MAX = 200
"""News need some rounds to reach all nodes, and reads from half a second after the heal on are judged."""

_TIMEOUT_MS_MAX = 2_000
"""The time within which clients must have given up their last writes, so that all read after them."""


class Gossip:
    """The system as the harness sees it: implements `NodeSystem`."""

    name = "gossip"
    promise = "all live, connected nodes know after some rounds what a node says, and no node's knowledge gets older"
    summary = "metadata spread by push-pull gossip with versions and generations; five detectors of failures"
    patterns = ("gossip-dissemination", "generation-clock", "heartbeat", "versioned-value")
    functions = ("read", "write", "view")
    usual_workload = "metadata"
    usual_nodes = 5
    # A value that is written and not read twice afterwards decides nothing: final reads must not be lost. SWIM takes a
    # member for dead when its answer needs longer than a short round, so links are not slower than that. With one peer
    # a round, news of nine nodes need half a second, so that a fixed detector must wait for longer. The two detectors
    # with messages of their own came later and are not drawn, so that the universes of every seed stay what they were.
    domains = Domains(
        nodes=(5, 5, 5, 3, 4, 6, 7, 9),
        options={
            "client_timeout_ms": ("500",),
            "detector": tuple(each for each in DETECTORS if each not in ("heartbeats", "lifeguard")),
            "down_after_ms": ("2000", "4000"),
        },
        weather={"loss": (), "reset": (), "latency_us_max": (600, 5_000)},
    )
    options: Mapping[str, OptionDescription] = OPTIONS
    planted_bugs: Mapping[str, PlantedBug] = BUGS.planted_bugs
    features: tuple[Feature, ...] = FEATURES
    messages: tuple[type[msgspec.Struct], ...] = (*MESSAGES, *WATCH_MESSAGES)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> GossipNode:
        """Return a node with empty memory over `ports`. Raise `UsageError` for unusable options or bugs."""
        node_class = BUGS.node(GossipNode, planted_bugs)
        return node_class(ports, members, GossipSettings.read(options), BUGS.parts(planted_bugs))

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> GossipClient:
        """Return a client that reads what `node` has heard."""
        return GossipClient(ports, members, node, GossipSettings.read(options))

    def not_promised(self, asked: Asked) -> str | None:
        """Return in a clause why the claim of the workload need not hold; None when it must."""
        if asked.number("gossip_interval_ms") > _INTERVAL_MS_MAX:
            interval_ms = asked.options["gossip_interval_ms"]
            return f"with gossip_interval_ms={interval_ms} news need longer than a run waits for them"
        if asked.number("client_timeout_ms") > _TIMEOUT_MS_MAX:
            timeout_ms = asked.options["client_timeout_ms"]
            return f"with client_timeout_ms={timeout_ms} a client may still wait for its write when others read last"
        if asked.weather.stale and asked.ends_processes:
            return "an owner that restarts forgets which writes it has executed, and executes a stale one again"
        if "read" in asked.functions and asked.workload != _PROMISED:
            return f"a node answers with what it has heard so far, and only the workload {_PROMISED} waits for the rest"
        return None

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the invariants."""
        return [*gossip_invariants(), *detector_invariants()]
