"""Broken connections and links: `connection-kill`, `connection-reset` and `link-down`.

A cut is silent; these are heard. A killed connection ends with an error on both sides, and whoever cares opens another:
it tries what a node does with the messages that were under way. A reset refuses every connection while it lasts, so
that retries meet an error at once instead of a timeout. A link that is down parts its node from peers and clients alike
(the machine goes on and can still be managed, over a link of its own).

They act on all links between the nodes of the target and the rest, both ways; of the target `all`, on every link.
"""

from __future__ import annotations

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import NodeId
from faultline.nemesis.targets import aimed, links_around

__all__ = ["ConnectionKill", "ConnectionReset", "LinkDown"]


class ConnectionKill:
    """The nemesis `connection-kill`: it happens once, and lets nodes connect anew at once."""

    kind = "connection-kill"
    summary = "ends the connections between nodes with an error; new ones may be opened"
    mark = "connections-killed"
    needs = frozenset({"connection-kill"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Kill all connections between the target and the rest; when there is none, hit nobody and say so."""
        resolution = aimed(port, fault, seed)
        links = links_around(port, resolution)
        before = {link: port.connections(link) for link in links}
        count = sum(map(len, before.values()))
        if not count:
            return Injection(description=f"no connection of {' '.join(resolution.nodes)} was open{resolution.remark}")
        port.kill_connections(links)
        return Injection(
            nodes=resolution.nodes,
            links=tuple(links),
            description=f"killed {count} connections of {' '.join(resolution.nodes)}{resolution.remark}",
            state={"before": before},
        )

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe: none of the connections of before may still be open."""
        for link, names in injection.state.get("before", {}).items():
            alive = names & port.connections(link)
            if alive:
                return f"still open from {link[0]} to {link[1]}: {', '.join(sorted(alive))}"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A kill happens once."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Nothing keeps connections from being opened again."""


class ConnectionReset:
    """The nemesis `connection-reset`: connections end, and new ones are refused until the fault ends."""

    kind = "connection-reset"
    summary = "answers everything nodes send each other with a connection reset"
    mark = "connections-reset"
    needs = frozenset({"connection-reset"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Let connections between the target and the rest be reset."""
        resolution = aimed(port, fault, seed)
        links = links_around(port, resolution)
        port.reset_connections(links)
        description = f"connections of {' '.join(resolution.nodes)} are reset{resolution.remark}"
        return Injection(nodes=resolution.nodes, links=tuple(links), description=description, state={"links": links})

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe: try to open a connection over each link."""
        if not injection.links:
            return "there are no links to reset connections on in a cluster of one node"
        links = injection.state["links"]
        refused = port.resets_connections(links)
        open_links = [f"{source}->{target}" for source, target in links if (source, target) not in refused]
        return f"connections are still taken over {', '.join(open_links)}" if open_links else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A reset goes on by itself."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Let connections be again."""
        port.admit_connections(injection.state["links"])


class LinkDown:
    """The nemesis `link-down`: the node's network link is down until the fault ends."""

    kind = "link-down"
    summary = "takes nodes' network links down, as a pulled cable does"
    mark = "links-down"
    needs = frozenset({"link-down"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Take the links of the target down, those excepted that are down already."""
        resolution = aimed(port, fault, seed)
        mine = [node for node in resolution.nodes if not port.is_link_down(NodeId(node))]
        for node in mine:
            port.take_link_down(NodeId(node))
        description = f"links of {' '.join(resolution.nodes)} are down{resolution.remark}"
        return Injection(nodes=resolution.nodes, description=description, state={"mine": mine})

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every node's link."""
        still_up = [node for node in injection.nodes if not port.is_link_down(NodeId(node))]
        return f"still up: the links of {' '.join(still_up)}" if still_up else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A link that is down stays down."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Bring the links up that this injection took down."""
        for node in injection.state["mine"]:
            port.bring_link_up(NodeId(node))
