"""The planted bugs of `emergent-leader`: each a class that changes one of its parts, or the node.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Member, Membership
from faultline.systems_under_test.reference.emergent.node import EmergentNode
from faultline.systems_under_test.reference.membership.member import MemberParts
from faultline.systems_under_test.reference.membership.messages import JoinRequest, SplitBrainJoin
from faultline.systems_under_test.reference.membership.watching import Silence
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "emergent-leader",
    MemberParts,
    pattern="emergent-leader",
    campaign="emergent",
    caught_by=("membership", "EL-I3", "EL-I4", "EL-I5", "EL-R14"),
)
_RESTARTS = BUGS.group(campaign="emergent-restarts")


@BUGS.plant("claim-past-the-living", "EL-M1", part="node")
class _ClaimsPastTheLiving(EmergentNode):
    """A member claims the coordination when an older one is silent, though another older one lives.

    Shows as: a member takes over although an older one lives.
    """

    def _may_remove(self, membership: Membership, gone: tuple[str, ...]) -> bool:
        older = {member.address for member in membership.older_than(self.address)}
        return self.is_coordinator or bool(older & set(gone))


@_RESTARTS.plant("claim-refused-for-a-younger", "EL-M2", part="node")
class _ClaimRefused(EmergentNode):
    """The next oldest does not claim when a younger member is silent too.

    Shows as: when the coordinator and another member fail together, no member coordinates any more.
    """

    def _may_remove(self, membership: Membership, gone: tuple[str, ...]) -> bool:
        older = {member.address for member in membership.older_than(self.address)}
        return super()._may_remove(membership, gone) and (self.is_coordinator or set(gone) <= older)


@BUGS.plant("members-remove-each-other", "EL-M3", part="node")
class _AllMembersRemove(EmergentNode):
    """Every member removes the others that it finds silent.

    Shows as: many members make memberships.
    """

    def _may_remove(self, membership: Membership, gone: tuple[str, ...]) -> bool:
        return True


@BUGS.plant("update-without-version-check", "EL-M4", part="node")
class _NoVersionCheck(EmergentNode):
    """Every membership that arrives is installed, however old.

    Shows as: a node's version goes back.
    """

    def _version_seen(self) -> int:
        return 0


@_RESTARTS.plant("joined-twice", "EL-M7", part="node")
class _JoinedTwice(EmergentNode):
    """A join from an address that is listed makes a second entry.

    Shows as: a membership has an address twice.
    """

    def _admit(self, membership: Membership, request: JoinRequest, *, was_here: bool) -> None:
        double = membership.with_member(request.joiner, request.instance, request.version_seen, request.largest_seen)
        kept = membership.member(request.joiner)
        if kept is not None:
            double = msgspec.structs.replace(double, live=(*double.live, kept))
        self._make(double, membership)
        self._join_replies.expect(request.joiner, request.instance, double.version, ())


@_RESTARTS.plant("rejoins-with-its-old-age", "EL-M8", part="node")
class _OldAge(EmergentNode):
    """A member that comes back gets the age it had.

    Shows as: a restarted coordinator takes over again, knowing nothing.
    """

    def _admit(self, membership: Membership, request: JoinRequest, *, was_here: bool) -> None:
        known = {member.address: member for member in (*membership.live, *membership.failed)}
        admitted = membership.with_member(request.joiner, request.instance, request.version_seen, request.largest_seen)
        if request.joiner in known:
            live = [
                Member(m.address, known[m.address].age, m.instance) if m.address == request.joiner else m
                for m in admitted.live
            ]
            admitted = msgspec.structs.replace(admitted, live=tuple(live))
        self._make(admitted, membership)
        self._join_replies.expect(request.joiner, request.instance, admitted.version, ())


@BUGS.plant(
    "minimum-never-reached",
    "EL-M9",
    part="node",
    campaign="emergent-majority",
    caught_by=("membership", "stats"),
    options={"minimum": "3"},
)
class _MinimumNeverReached(EmergentNode):
    """A group serves only above its minimum size, not at it.

    Shows as: the larger half refuses its clients too.
    """

    def _may_serve(self, membership: Membership) -> bool:
        return super()._may_serve(membership) and super()._may_serve(membership.without([self.address]))


@BUGS.plant("no-minimum", "EL-M10", part="node", caught_by=("membership",))
class _NoMinimum(EmergentNode):
    """A group serves whatever its size.

    Shows as: both halves of a cut cluster serve.
    """

    def _may_serve(self, membership: Membership) -> bool:
        return True


@_RESTARTS.plant("failed-list-not-cleared", "EL-M13", part="node")
class _FailedListKept(EmergentNode):
    """A member that comes back stays in the list of the failed.

    Shows as: a member is live and failed at once.
    """

    def _make(self, membership: Membership, before: Membership | None, silent: tuple[str, ...] = ()) -> None:
        if before is not None:
            failed = (*before.failed, *(m for m in membership.failed if m not in before.failed))
            membership = msgspec.structs.replace(membership, failed=failed)
        super()._make(membership, before, silent)


@_RESTARTS.plant("strangers-ignored", "EL-M14", part="node")
class _StrangersIgnored(EmergentNode):
    """A coordinator answers only the search of members that it believes failed itself.

    Shows as: a seed that founded a cluster of its own after a restart stays alone.
    """

    def _handle_split_brain(self, source: NodeId, message: SplitBrainJoin) -> None:
        if self.membership is not None and self.membership.is_failed(message.coordinator.address):
            super()._handle_split_brain(source, message)


@BUGS.plant("no-pause-guard", "EL-M18", part="silence", campaign="emergent-pauses", caught_by=("EL-I8",))
class _NoPauseGuard(Silence):
    """A coordinator that slept takes what it missed for the silence of the others.

    Shows as: after a pause it removes all other members.
    """

    def check(self) -> tuple[str, ...] | None:
        return tuple(address for address, detector in self._detectors.items() if not detector.check())
