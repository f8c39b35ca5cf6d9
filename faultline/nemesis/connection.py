"""Broken connections and links: `connection-kill`, `connection-reset` and `link-down`.

A cut is silent; these are heard. A killed connection ends with an error on both sides, and a node that still needs it
opens another: this tries what a node does with the messages that were under way. A reset refuses every connection while
it lasts, so that retries meet an error at once instead of a timeout. A link that is down parts its node from peers and
clients alike (the machine goes on and can still be managed, over a link of its own).

The first two act on all links between the nodes of the target and the rest, both ways; of the target `all`, on every
link.
"""

from __future__ import annotations

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort
from faultline.nemesis.standard import StandardNemesis, struck
from faultline.nemesis.targets import aimed, links_around

__all__ = ["CONNECTION_RESET", "LINK_DOWN", "ConnectionKill"]


class ConnectionKill:
    """The nemesis `connection-kill`: it happens once, and lets nodes connect anew at once."""

    kind = "connection-kill"
    summary = "ends the connections between nodes with an error; new ones may be opened"
    mark = "connections-killed"
    needs = frozenset({"connection-kill"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Kill all connections between the target and the rest; when none is open, hit no node and say so."""
        resolution = aimed(port, fault, seed)
        links = links_around(port, resolution)
        actuator = port.actuators["connection-kill"]
        before = dict(actuator.probe(links))
        count = sum(map(len, before.values()))
        if not count:
            return Injection(description=f"no connection of {' '.join(resolution.nodes)} was open{resolution.remark}")
        actuator.strike(links, frozenset().union(*before.values()))
        return Injection(
            nodes=resolution.nodes,
            links=tuple(links),
            description=f"killed {count} connections of {' '.join(resolution.nodes)}{resolution.remark}",
            state={"before": before},
        )

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every link: none of the connections of before may still be open."""
        before = injection.state.get("before", {})
        for link, names in port.actuators["connection-kill"].probe(tuple(before)).items():
            alive = names & before[link]
            if alive:
                return f"still open from {link[0]} to {link[1]}: {', '.join(sorted(alive))}"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Do nothing: a kill happens once."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Do nothing: connections may be opened again anyway."""


CONNECTION_RESET = StandardNemesis(
    kind="connection-reset",
    summary="answers everything nodes send each other with a connection reset",
    mark="connections-reset",
    acts_on="links",
    aims_at_nodes_up=False,
    setting=struck,
    description="connections of {nodes} are reset{remark}",
    complaint="connections are still taken over {missed}",
)
LINK_DOWN = StandardNemesis(
    kind="link-down",
    summary="takes nodes' network links down, as a pulled cable does",
    mark="links-down",
    aims_at_nodes_up=False,
    healthy=False,
    setting=struck,
    description="links of {nodes} are down{remark}",
    complaint="still up: the links of {missed}",
)
