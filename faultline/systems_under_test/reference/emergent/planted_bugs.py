"""The planted bugs of `emergent-leader`: each a record, and a change to one of its `Parts` or to the node.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec

from faultline.harness.system import PlantedBug
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Member, Membership
from faultline.systems_under_test.reference.emergent.messages import JoinRequest, SplitBrainJoin
from faultline.systems_under_test.reference.emergent.node import EmergentNode, Parts
from faultline.systems_under_test.reference.emergent.silence import Silence
from faultline.systems_under_test.reference.shared.planted_bugs import class_with_bugs, with_bugs

__all__ = ["PLANTED_BUGS", "mutated_parts", "node_class"]

_PATTERN = "emergent-leader"
_AGREEMENT = ("membership", "EL-I3", "EL-I4", "EL-I5", "EL-R14")

_RECORDS = (
    PlantedBug(
        name="claim-past-the-living",
        pattern=_PATTERN,
        id="EL-M1",
        summary="a member claims the coordination when the silent ones are older, though others that live are too",
        shows_as="somebody takes over although an older member lives",
        campaign="emergent",
        caught_by=_AGREEMENT,
    ),
    PlantedBug(
        name="claim-refused-for-a-younger",
        pattern=_PATTERN,
        id="EL-M2",
        summary="the next oldest does not claim when a younger member is silent too",
        shows_as="when the coordinator and another fail together nobody coordinates any more",
        campaign="emergent-restarts",
        caught_by=_AGREEMENT,
    ),
    PlantedBug(
        name="everybody-removes",
        pattern=_PATTERN,
        id="EL-M3",
        summary="every member removes whom it finds silent",
        shows_as="memberships are made by many",
        campaign="emergent",
        caught_by=_AGREEMENT,
    ),
    PlantedBug(
        name="update-without-version-check",
        pattern=_PATTERN,
        id="EL-M4",
        summary="every membership that comes is installed, however old",
        shows_as="a node's version goes back",
        campaign="emergent",
        caught_by=_AGREEMENT,
    ),
    PlantedBug(
        name="joined-twice",
        pattern=_PATTERN,
        id="EL-M7",
        summary="a join from an address that is listed makes a second entry",
        shows_as="a membership has an address twice",
        campaign="emergent-restarts",
        caught_by=_AGREEMENT,
    ),
    PlantedBug(
        name="rejoins-with-its-old-age",
        pattern=_PATTERN,
        id="EL-M8",
        summary="a member that comes back gets the age it had",
        shows_as="a restarted coordinator takes over again, knowing nothing",
        campaign="emergent-restarts",
        caught_by=_AGREEMENT,
    ),
    PlantedBug(
        name="minimum-never-reached",
        pattern=_PATTERN,
        id="EL-M9",
        summary="a group serves only above its minimum size, not at it",
        shows_as="the larger half refuses its clients too",
        campaign="emergent-majority",
        caught_by=("membership", "stats"),
        options={"minimum": "3"},
    ),
    PlantedBug(
        name="no-minimum",
        pattern=_PATTERN,
        id="EL-M10",
        summary="a group serves whatever its size",
        shows_as="both halves of a cut cluster serve",
        campaign="emergent",
        caught_by=("membership",),
    ),
    PlantedBug(
        name="failed-list-not-cleared",
        pattern=_PATTERN,
        id="EL-M13",
        summary="a member that comes back stays in the list of the failed",
        shows_as="a member is live and failed at once",
        campaign="emergent-restarts",
        caught_by=_AGREEMENT,
    ),
    PlantedBug(
        name="strangers-ignored",
        pattern=_PATTERN,
        id="EL-M14",
        summary="a coordinator answers only the search of those whom it believes failed itself",
        shows_as="a seed that founded a cluster of its own after a restart stays alone",
        campaign="emergent-restarts",
        caught_by=_AGREEMENT,
    ),
    PlantedBug(
        name="no-pause-guard",
        pattern=_PATTERN,
        id="EL-M18",
        summary="a coordinator that slept judges the silence of the others by what it missed",
        shows_as="after a pause it removes everybody",
        campaign="emergent-pauses",
        caught_by=("EL-I8",),
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""


class _ClaimRefused(EmergentNode):
    def _may_remove(self, membership: Membership, gone: tuple[str, ...]) -> bool:
        older = {member.address for member in membership.older_than(self.address)}
        return super()._may_remove(membership, gone) and (self.is_coordinator or set(gone) <= older)


class _ClaimsPastTheLiving(EmergentNode):
    def _may_remove(self, membership: Membership, gone: tuple[str, ...]) -> bool:
        older = {member.address for member in membership.older_than(self.address)}
        return self.is_coordinator or bool(older & set(gone))


class _EverybodyRemoves(EmergentNode):
    def _may_remove(self, membership: Membership, gone: tuple[str, ...]) -> bool:
        return True


class _NoVersionCheck(EmergentNode):
    def _version_seen(self) -> int:
        return 0


class _JoinedTwice(EmergentNode):
    def _admit(self, membership: Membership, request: JoinRequest, *, was_here: bool) -> None:
        double = membership.with_member(request.joiner, request.instance, request.version_seen, request.largest_seen)
        kept = membership.member(request.joiner)
        if kept is not None:
            double = msgspec.structs.replace(double, live=(*double.live, kept))
        self._make(double, membership)
        self._join_replies.expect(request.joiner, request.instance, double.version, ())


class _OldAge(EmergentNode):
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


class _FailedListKept(EmergentNode):
    def _make(self, membership: Membership, before: Membership | None, silent: tuple[str, ...] = ()) -> None:
        if before is not None:
            failed = (*before.failed, *(m for m in membership.failed if m not in before.failed))
            membership = msgspec.structs.replace(membership, failed=failed)
        super()._make(membership, before, silent)


class _StrangersIgnored(EmergentNode):
    def _handle_split_brain(self, source: NodeId, message: SplitBrainJoin) -> None:
        if self.membership is not None and self.membership.is_failed(message.coordinator.address):
            super()._handle_split_brain(source, message)


class _MinimumNeverReached(EmergentNode):
    def _may_serve(self, membership: Membership) -> bool:
        return super()._may_serve(membership) and super()._may_serve(membership.without([self.address]))


class _NoMinimum(EmergentNode):
    def _may_serve(self, membership: Membership) -> bool:
        return True


class _NoPauseGuard(Silence):
    def check(self) -> tuple[str, ...] | None:
        return tuple(address for address, detector in self._detectors.items() if not detector.check())


_NODES: dict[str, type[EmergentNode]] = {
    "claim-past-the-living": _ClaimsPastTheLiving,
    "claim-refused-for-a-younger": _ClaimRefused,
    "everybody-removes": _EverybodyRemoves,
    "update-without-version-check": _NoVersionCheck,
    "joined-twice": _JoinedTwice,
    "rejoins-with-its-old-age": _OldAge,
    "minimum-never-reached": _MinimumNeverReached,
    "no-minimum": _NoMinimum,
    "failed-list-not-cleared": _FailedListKept,
    "strangers-ignored": _StrangersIgnored,
}

_CHANGES: dict[str, Callable[[Parts], Parts]] = {
    "no-pause-guard": lambda parts: replace(parts, silence=_NoPauseGuard),
}


def mutated_parts(names: Iterable[str]) -> Parts:
    """The parts of a node with the planted bugs `names`, the correct ones with none. Raises UsageError."""
    return with_bugs("emergent-leader", names, Parts(), _CHANGES, elsewhere=_NODES)


def node_class(names: Iterable[str]) -> type[EmergentNode]:
    """The node with those of the planted bugs `names` that sit in it."""
    return class_with_bugs(names, EmergentNode, _NODES)
