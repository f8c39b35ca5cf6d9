"""The hand-cranked cluster with nodes of `emergent-leader`."""

from __future__ import annotations

from faultline.story.log_cluster import Cluster
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Membership
from faultline.systems_under_test.reference.emergent.messages import ViewRequest, ViewResponse
from faultline.systems_under_test.reference.emergent.system import EmergentLeader

__all__ = ["TIMEOUT_MS", "EmergentCluster"]

TIMEOUT_MS = 300


class EmergentCluster(Cluster):
    """Nodes that have found each other, unless the story begins earlier."""

    system_type = EmergentLeader

    def wait(self, milliseconds: int) -> None:
        self.pass_time(1_000 * milliseconds)

    def membership(self, node: str) -> Membership:
        membership: Membership | None = self.nodes[node].membership
        assert membership is not None, f"{node} belongs to no cluster"
        return membership

    def joined(self, node: str) -> bool:
        return self.nodes[node].membership is not None

    def live(self, node: str) -> list[str]:
        """The live members as `node` sees them, oldest first."""
        return [member.address for member in sorted(self.membership(node).live, key=lambda member: member.age)]

    def failed(self, node: str) -> list[str]:
        return sorted(member.address for member in self.membership(node).failed)

    def coordinators(self) -> set[str]:
        """Return the coordinators that the nodes of a cluster follow."""
        return {node.membership.coordinator.address for node in self.nodes.values() if node.membership is not None}

    def agreed(self) -> bool:
        """Every node that runs follows one and the same membership."""
        return len({str(node.membership) for node in self.nodes.values()}) == 1

    def ask(self, node: str, client: str = "client") -> ViewResponse:
        """Ask `node` for its view, and return the answer."""
        number = len(self.inbox.get(client, ())) + 1
        self.hand(client, node, ViewRequest(number))
        self.deliver()
        answer: ViewResponse = self.inbox[client][-1][1]
        return answer
