"""The hand-cranked cluster with nodes of `gossip`: peers are chosen by chance, or the scene says who meets whom."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster, StaggeredPorts
from faultline.systems_under_test.reference.gossip.system import Gossip

__all__ = ["ROUND_US", "GossipCluster"]

ROUND_US = 100_000


class _ChancePorts(StaggeredPorts):
    """Chance that depends on who asks, what for, and when."""

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return low_us + crc32(f"{self.node_id} {stream} {self.now_us}".encode()) % (high_us - low_us)


class GossipCluster(Cluster):
    """Nodes of gossip, each with what it has heard."""

    system_type = Gossip
    ports_type = _ChancePorts

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.sent: list[Any] = []
        super().__init__(*arguments, **options)

    def post(self, source: str, target: str, message: Any) -> None:
        self.sent.append(message)
        super().post(source, target, message)

    def rounds(self, count: int) -> None:
        """Let every node gossip so many times, with peers of its own choice."""
        self.pass_time(count * ROUND_US)

    def open_exchange(self, source: str, target: str) -> None:
        """Let chance fall on `target` as the next peer of `source`; deliver nothing."""
        self.look(source, _open_exchange, target)

    def say(self, node: str, key: str, value: Any) -> None:
        self.look(node, _say, key, value)

    def known(self, node: str, owner: str, key: str = "address") -> Any:
        return self.knowledge(node, key).get(owner)

    def knowledge(self, node: str, key: str) -> dict[str, Any]:
        """Return the values that `node` knows under `key`, by the nodes that said them."""
        return dict(self.look(node, _knowledge, key))

    def acquaintances(self, node: str) -> list[str]:
        """Return the nodes of which `node` has heard, itself included."""
        return list(self.look(node, _acquaintances))

    def agree(self) -> bool:
        digests = [self.look(name, _digest) for name in self.nodes]
        return all(digest == digests[0] for digest in digests)


def _open_exchange(node: Any, target: str) -> None:
    node.ports.network.send(NodeId(target), node._opening())


def _say(node: Any, key: str, value: Any) -> None:
    node.say(key, value)


def _knowledge(node: Any, key: str) -> dict[str, Any]:
    values = {owner: node.metadata.get(owner, key) for owner in node.metadata.nodes()}
    return {owner: value for owner, value in values.items() if value is not None}


def _acquaintances(node: Any) -> list[str]:
    return list(node.metadata.nodes())


def _digest(node: Any) -> dict[str, tuple[int, int]]:
    return dict(node.metadata.digest())
