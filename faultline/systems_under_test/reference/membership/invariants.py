"""The invariants of memberships, checked on what members report while a run goes on."""

from __future__ import annotations

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Membership
from faultline.systems_under_test.reference.membership.messages import (
    MembershipInstalled,
    MembershipMade,
    NodeStarted,
    SilenceChecked,
)

__all__ = [
    "AgesAreUnique",
    "NoMemberIsJudgedInSleep",
    "OnlyTheOldestDecides",
    "VersionsNameOneList",
    "VersionsNeverGoBack",
    "member_invariants",
]

_CLOCK_PERCENT = 115
"""The time that may pass while a node's own clock, which may run slow, measures 100 of it."""


class VersionsNameOneList(ReportingInvariant):
    """Two sides of a cut may use one version number; one coordinator never does so twice.

    A node that dies before its incarnation is durable has sent nothing. Its next start has the same incarnation, and
    may reuse the versions that no other node followed.
    """

    id = "EL-I3"
    statement = "A version of one coordinator's incarnation is one membership at all nodes that follow it."
    events = (MembershipMade, MembershipInstalled, NodeStarted)

    def __init__(self) -> None:
        self._lists: dict[tuple[str, int, int], Membership] = {}
        self._followed: set[tuple[str, int, int]] = set()

    def observe(
        self, time_us: int, node: str, event: MembershipMade | MembershipInstalled | NodeStarted, report: Report
    ) -> None:
        """Compare with the first membership of that version of that coordinator."""
        if isinstance(event, NodeStarted):
            own = (node, event.instance)
            self._lists = {at: made for at, made in self._lists.items() if at[:2] != own or at in self._followed}
            return
        membership = event.membership
        maker = membership.coordinator
        place = (maker.address, maker.instance, membership.version)
        if node != maker.address:
            self._followed.add(place)
        if self._lists.setdefault(place, membership) != membership:
            sentence = f"Version {membership.version} of {maker.address} is another membership at {node} than before."
            self._breach(report, time_us, node, sentence)


class VersionsNeverGoBack(ReportingInvariant):
    """A start of a node follows ever higher versions, also from one cluster to the next."""

    id = "EL-R14"
    statement = "The versions that a start of a node follows ascend."
    events = (MembershipInstalled, NodeStarted)

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: MembershipInstalled | NodeStarted, report: Report) -> None:
        """Compare with the version followed before."""
        if isinstance(event, NodeStarted):
            self._versions[node] = 0
            return
        before, version = self._versions.get(node, 0), event.membership.version
        self._versions[node] = version
        if version <= before:
            self._breach(report, time_us, node, f"{node} followed version {version} after version {before}.")


class AgesAreUnique(ReportingInvariant):
    """A membership is consistent in itself, and keeps the ages of the members that stay."""

    id = "EL-I4"
    statement = "Ages and addresses of live members are unique, no member is live and failed, and ages do not change."
    events = (MembershipMade,)

    def observe(self, time_us: int, node: str, event: MembershipMade, report: Report) -> None:
        """Compare the membership with itself and with the one before it."""
        membership = event.membership
        addresses = [member.address for member in membership.live]
        ages = [member.age for member in membership.live]
        if len(set(addresses)) < len(addresses) or len(set(ages)) < len(ages):
            self._breach(report, time_us, node, f"{node} made a membership with a member or an age twice.")
        elif any(membership.is_failed(address) for address in addresses):
            self._breach(report, time_us, node, f"{node} made a membership with a member both live and failed.")
        elif self._changed_age(membership, event.before):
            self._breach(report, time_us, node, f"{node} gave a member that stayed another age.")

    def _changed_age(self, membership: Membership, before: Membership | None) -> bool:
        ages = {(m.address, m.instance): m.age for m in before.live} if before is not None else {}
        return any(ages.get((m.address, m.instance), m.age) != m.age for m in membership.live)


class OnlyTheOldestDecides(ReportingInvariant):
    """Memberships are made by the coordinator, or by the next oldest once all older ones are silent."""

    id = "EL-I5"
    statement = "The maker of a membership is the oldest in it, and was so before or found all older members silent."
    events = (MembershipMade,)

    def observe(self, time_us: int, node: str, event: MembershipMade, report: Report) -> None:
        """Judge whether it was the node's turn."""
        before = event.before
        if event.membership.coordinator.address != node:
            sentence = f"{node} made a membership whose coordinator is {event.membership.coordinator.address}."
            self._breach(report, time_us, node, sentence)
        elif before is not None and before.coordinator.address != node and not before.may_claim(node, event.silent):
            older = ", ".join(m.address for m in before.older_than(node) if m.address not in event.silent)
            self._breach(report, time_us, node, f"{node} took over although {older} is older and was not silent.")


class NoMemberIsJudgedInSleep(ReportingInvariant):
    """A node that has slept knows nothing about the silence of others: it was deaf itself."""

    id = "EL-I8"
    statement = "A node that was away for as long as a member may be silent judges no silence and removes no member."
    events = (SilenceChecked, MembershipMade, NodeStarted)

    def __init__(self) -> None:
        self._looks: dict[str, tuple[int, int]] = {}
        self._asleep_us: dict[str, int] = {}

    def observe(
        self, time_us: int, node: str, event: SilenceChecked | MembershipMade | NodeStarted, report: Report
    ) -> None:
        """Remember the last two looks of each node; a removal follows the last one at once."""
        if not isinstance(event, MembershipMade):
            last_us = time_us if isinstance(event, NodeStarted) else self._looks.get(node, (time_us, time_us))[1]
            self._looks[node] = (last_us, time_us)
            if isinstance(event, SilenceChecked):
                self._asleep_us[node] = event.asleep_us * _CLOCK_PERCENT // 100
            return
        before_us, last_us = self._looks[node]
        if event.silent and last_us - before_us > self._asleep_us[node]:
            sentence = (
                f"{node} removed {', '.join(event.silent)} after {(last_us - before_us) // 1_000} ms without a look."
            )
            self._breach(report, time_us, node, sentence)


def member_invariants() -> list[Invariant]:
    """Return fresh instances of all invariants, for one run."""
    return [
        VersionsNameOneList(),
        VersionsNeverGoBack(),
        AgesAreUnique(),
        OnlyTheOldestDecides(),
        NoMemberIsJudgedInSleep(),
    ]
