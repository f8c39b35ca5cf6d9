"""SWIM's prober and its news on the ports of a node of `gossip`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.swim_probing import Membership, News, Prober
from faultline.systems_under_test.reference.gossip.messages import (
    Acknowledgement,
    NewsMessage,
    Ping,
    PingRequest,
)
from faultline.systems_under_test.reference.gossip.options import GossipSettings

__all__ = ["Probing"]

_HELPERS = 3


class Probing:
    """The probing of one peer in each period; it never begins, and knows of no dead, unless the detector is `swim`."""

    def __init__(
        self,
        ports: Ports,
        settings: GossipSettings,
        generation: int,
        choose: Callable[[list[str], int, str], list[str]],
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._choose = choose
        self._membership = Membership(ports.node_id, generation)
        self._prober = Prober(self._ping, self._ask_for_me, self._declare_dead)
        self._known: list[str] = []

    def begin_period(self, known: Iterable[str] = ()) -> None:
        """Judge the peer of the last period and probe another one."""
        self._known = [node for node in known if node != self._ports.node_id]
        for target in self._choose(self._known, 1, "probe"):
            self._prober.probe(target)
            # Half a period is left for helpers to answer before the next one judges the peer.
            self._ports.timers.after(self._settings.gossip_interval_us // 2, self._helpers_for(target))

    def is_up(self, node: str) -> bool:
        """Return whether `node` was never declared dead, or has refuted it since."""
        return not self._membership.is_dead(node)

    def news(self) -> list[News]:
        """Return the news to send with every gossip, so that lost news arrive late instead of never."""
        return self._membership.all() if self._settings.detector == "swim" else []

    def hear(self, news: Iterable[News]) -> None:
        """Take in news, and pass on the fresh ones at once."""
        if fresh := self._membership.hear(news):
            self._mark(fresh)
            for peer in self._choose(self._known, 1, "news"):
                self._ports.network.send(NodeId(peer), NewsMessage(fresh))

    def handle_ping(self, source: NodeId, message: Ping) -> None:
        """Answer a probe of this node."""
        self._ports.network.send(source, Acknowledgement(message.number, self._ports.node_id, message.asked_by))

    def handle_request(self, source: NodeId, message: PingRequest) -> None:
        """Probe `message.target` for `source`; its answer comes back through this node."""
        self._ports.network.send(NodeId(message.target), Ping(message.number, source))

    def handle_acknowledgement(self, message: Acknowledgement) -> None:
        """Note that the node is there, or pass the answer on to the node that asked."""
        if message.asked_by == self._ports.node_id:
            self._prober.acknowledged(message.node, message.number)
        else:
            self._ports.network.send(NodeId(message.asked_by), message)

    def _ping(self, target: str, number: int) -> None:
        self._ports.network.send(NodeId(target), Ping(number, self._ports.node_id))

    def _helpers_for(self, target: str) -> Callable[[], None]:
        return lambda: self._ask_helpers(target)

    def _ask_helpers(self, target: str) -> None:
        others = [node for node in self._known if node != target]
        self._prober.ask_helpers(self._choose(others, _HELPERS, "helper"))

    def _ask_for_me(self, helper: str, target: str, number: int) -> None:
        self._ports.network.send(NodeId(helper), PingRequest(number, target))

    def _declare_dead(self, node: str) -> None:
        if fresh := self._membership.declare_dead(node):
            self._mark(fresh)
            for peer in self._choose(self._known, self._settings.fanout, "news"):
                self._ports.network.send(NodeId(peer), NewsMessage(fresh))

    def _mark(self, fresh: Iterable[News]) -> None:
        for item in fresh:
            self._ports.trace.sometimes("node-marked-down" if item.is_dead else "node-marked-up")
