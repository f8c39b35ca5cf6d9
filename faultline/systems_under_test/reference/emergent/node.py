"""A node of `emergent-leader`: a member of the cluster that tells clients who the members are."""

from __future__ import annotations

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Membership
from faultline.systems_under_test.reference.emergent.messages import ViewRequest, ViewResponse
from faultline.systems_under_test.reference.emergent.options import EmergentSettings
from faultline.systems_under_test.reference.membership.member import ClusterMember, MemberParts

__all__ = ["NOT_ENOUGH_MEMBERS", "NOT_JOINED", "EmergentNode"]

NOT_JOINED = "not-joined"
"""The node belongs to no cluster, so it serves no client."""

NOT_ENOUGH_MEMBERS = "not-enough-members"
"""The node's group is below the minimum size, so it might be the smaller half."""


class EmergentNode(ClusterMember):
    """One node: implements `Node` over its ports."""

    def __init__(
        self, ports: Ports, members: tuple[NodeId, ...], settings: EmergentSettings, parts: MemberParts
    ) -> None:
        super().__init__(ports, members, settings, parts)
        self._minimum = settings.minimum
        self._handlers[ViewRequest] = self._handle_view

    def _handle_view(self, source: NodeId, request: ViewRequest) -> None:
        membership = self.membership
        if membership is None:
            self.ports.network.send(source, ViewResponse(request.request_number, error=NOT_JOINED))
        elif not self._may_serve(membership):
            self.ports.trace.sometimes("not-enough-members")
            self.ports.network.send(source, ViewResponse(request.request_number, error=NOT_ENOUGH_MEMBERS))
        else:
            view = {
                "version": membership.version,
                "coordinator": membership.coordinator.address,
                "live": sorted(member.address for member in membership.live),
            }
            self.ports.network.send(source, ViewResponse(request.request_number, view))

    def _may_serve(self, membership: Membership) -> bool:
        return membership.may_serve(self._minimum)
