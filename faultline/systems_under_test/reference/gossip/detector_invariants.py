"""The invariants of the two detectors of `gossip` that have messages of their own.

Each looks at a node's own reports, in their order. Times are those of the node's monotonic clock, which its detector
reads: faults let it run fast and slow.
"""

from __future__ import annotations

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.reference.gossip.messages import (
    HeartbeatsTold,
    MemberDown,
    MembersJudged,
    MemberUp,
    NodeStarted,
    PatienceBegun,
)

__all__ = ["FewHeartbeatsAreTold", "NoMemberIsDownEarly", "SilentMembersAreDown", "detector_invariants"]

_ROUNDS_GRANTED = 3
"""The rounds after the end of its patience in which a node must notice: one, and two in which it may run late."""

_NEEDS = {"detector": ("heartbeats", "lifeguard")}
_NEEDS_OF_HEARTBEATS = {"detector": ("heartbeats",)}


class _Patience(ReportingInvariant):
    """A base of invariants that know when the patience of each node with each member ends."""

    needs = _NEEDS

    def __init__(self) -> None:
        self._ends_us: dict[str, dict[str, int]] = {}

    def _noted(self, node: str, event: object) -> dict[str, int]:
        """Return the ends of the patience of `node` by member, once `event` has begun one, or a life of the node."""
        ends_us = self._ends_us.setdefault(node, {})
        match event:
            case PatienceBegun(member, patience_us, now_us):
                ends_us[member] = now_us + patience_us
            case NodeStarted():
                ends_us.clear()
        return ends_us


class SilentMembersAreDown(_Patience):
    """A node whose patience with a member has ended takes it for down, unless it slept itself."""

    id = "HB-I1"
    statement = "A member that shows no sign of life for longer than a node's patience is taken for down by that node."
    events = (PatienceBegun, MemberUp, MemberDown, MembersJudged, NodeStarted)
    broken_by = (MembersJudged,)

    def __init__(self) -> None:
        super().__init__()
        self._judged_us: dict[str, int] = {}

    def observe(
        self,
        time_us: int,
        node: str,
        event: PatienceBegun | MemberUp | MemberDown | MembersJudged | NodeStarted,
        report: Report,
    ) -> None:
        """Note the end of each patience; in each round look for one that is over."""
        ends_us = self._noted(node, event)
        match event:
            case NodeStarted():
                self._judged_us.pop(node, None)
            case MembersJudged():
                slept = event.now_us - self._judged_us.get(node, event.now_us) > 2 * event.interval_us
                self._judged_us[node] = event.now_us
                for member in sorted(ends_us):
                    # A node that slept may judge nothing in the round in which it wakes.
                    if slept:
                        ends_us[member] = max(ends_us[member], event.now_us)
                    elif (late_us := event.now_us - ends_us[member]) > _ROUNDS_GRANTED * event.interval_us:
                        del ends_us[member]
                        sentence = (
                            f"{node} had no sign of life of {member}, and did not take it for down"
                            f" {late_us / 1_000:.0f} ms after the end of its patience."
                        )
                        self._breach(report, time_us, node, sentence)
            case MemberUp() | MemberDown():
                ends_us.pop(event.member, None)


class NoMemberIsDownEarly(_Patience):
    """A node that judges by itself takes a member for down only when its patience with it has ended."""

    id = "HB-I3"
    statement = "No node takes a member for down by its own judgement before its patience with it has ended."
    events = (PatienceBegun, MemberUp, MemberDown, NodeStarted)
    broken_by = (MemberDown,)

    def observe(
        self, time_us: int, node: str, event: PatienceBegun | MemberUp | MemberDown | NodeStarted, report: Report
    ) -> None:
        """Note the end of each patience; compare the time of each judgement with it."""
        ends_us = self._noted(node, event)
        match event:
            case MemberUp():
                # A heartbeat brings the next patience at once; a refuted suspicion leaves none.
                ends_us.pop(event.member, None)
            case MemberDown():
                end_us = ends_us.pop(event.member, None)
                if not event.is_told and (end_us is None or event.now_us < end_us):
                    early = (
                        "although it did not suspect it"
                        if end_us is None
                        else f"{(end_us - event.now_us) / 1_000:.0f} ms before the end of its patience"
                    )
                    self._breach(report, time_us, node, f"{node} took {event.member} for down {early}.")


class FewHeartbeatsAreTold(ReportingInvariant):
    """The messages with heartbeats that a node sends in a round are few and short, however large the cluster is."""

    id = "HB-I4"
    statement = "In a round a node sends its heartbeats to at most the permitted peers, and at most the permitted rows."
    events = (HeartbeatsTold,)
    needs = _NEEDS_OF_HEARTBEATS

    def observe(self, time_us: int, node: str, event: HeartbeatsTold, report: Report) -> None:
        """Count the peers, and the rows of a message."""
        distinct = set(event.peers) - {node}
        if len(distinct) < len(event.peers) or len(event.peers) > event.peers_max:
            sentence = f"{node} sent heartbeats to {', '.join(event.peers)}; {event.peers_max} others are permitted."
            self._breach(report, time_us, node, sentence)
        elif event.rows > event.rows_max:
            sentence = f"{node} sent {event.rows} rows in a message; {event.rows_max} are permitted."
            self._breach(report, time_us, node, sentence)


def detector_invariants() -> list[Invariant]:
    """Return fresh instances of all of them, for one run."""
    return [SilentMembersAreDown(), NoMemberIsDownEarly(), FewHeartbeatsAreTold()]
