"""The invariants of leases, checked on what servers report while a run goes on.

Ids are those of the requirements: LS lease. LS-I1 speaks of what owners believe: the checker `leased-lock` judges it.
The invariants of watches speak of what clients are told: the checker `watches` judges them.

Times are those of the run, leases are counted by a leader's clock, and faults make clocks drift: a fifth of the time
to live is left for that. `needs_order` is true where reports of different servers are compared by their times.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.invariant import Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import BecameLeader
from faultline.systems_under_test.reference.leases_and_watches.trace_events import (
    ExpiryProposed,
    LeaseEnded,
    LeaseGranted,
    LeaseRefreshAcknowledged,
    LeasesSeen,
)
from faultline.systems_under_test.reference.shared.trace_events import NodeStarted, StateRestored

__all__ = [
    "SERVICE_INVARIANTS",
    "AttachedKeysAreThere",
    "GrantsAndEndsAlternate",
    "LeasesAgree",
    "LeasesEndInTime",
    "NoLeaseEndsEarly",
    "OnlyLeadersProposeExpiries",
]

_CLOCKS_MAY_DIFFER = 0.2
_COMMIT_US_MAX = 1_500_000
"""The time within which the expiry of a lease must be applied when nothing is wrong any more."""


class NoLeaseEndsEarly(ReportingInvariant):
    """LS-I2: between a refresh that a leader acknowledged, and the first expiry that is applied, lies the time.

    It counts from the arrival of the refresh. A leader that sleeps between its confirmation and its answer may answer
    after another has ended the lease: its owner, who counts from before the arrival, is not deceived.
    """

    id = "LS-I2"
    statement = "No lease expires within its time to live after its grant or a refresh that was acknowledged."
    events = (LeaseGranted, LeaseRefreshAcknowledged, LeaseEnded)
    needs_order = True

    def __init__(self) -> None:
        self._alive_us: dict[tuple[str, int], int] = {}
        self._ended: set[tuple[str, int]] = set()

    def observe(
        self, time_us: int, node: str, event: LeaseGranted | LeaseRefreshAcknowledged | LeaseEnded, report: Report
    ) -> None:
        """Remember each sign of life; look back when the lease ends for the first time."""
        if type(event) is LeaseGranted:
            self._alive_us.setdefault((event.name, event.index), time_us)
        elif type(event) is LeaseRefreshAcknowledged:
            lease, since_us = (event.name, event.incarnation), time_us - event.waited_us
            self._alive_us[lease] = max(since_us, self._alive_us.get(lease, 0))
        else:
            assert type(event) is LeaseEnded
            self._look_back(time_us, node, event, report)

    def _look_back(self, time_us: int, node: str, event: LeaseEnded, report: Report) -> None:
        lease = (event.name, event.incarnation)
        if lease in self._ended:
            return
        self._ended.add(lease)
        lived_us = time_us - self._alive_us.get(lease, 0)
        if event.reason == "expired" and lived_us < (1 - _CLOCKS_MAY_DIFFER) * event.ttl_us:
            sentence = (
                f"{event.name} ({event.incarnation}) expired {lived_us // 1_000} ms after its grant or a refresh;"
                f" it lives {event.ttl_us // 1_000} ms."
            )
            self._breach(report, time_us, node, sentence)


class LeasesEndInTime(ReportingInvariant):
    """LS-I3, at the end of a run, when everything has been healed for long enough."""

    id = "LS-I3"
    statement = "A lease that is not refreshed ends within its time to live, counted anew by each new leader."
    events = (LeaseGranted, LeaseRefreshAcknowledged, LeaseEnded, BecameLeader)
    needs_order = True

    def __init__(self) -> None:
        self._alive: dict[tuple[str, int], tuple[int, int]] = {}
        self._ended: set[tuple[str, int]] = set()
        self._elected_us = 0

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Remember which leases there are, and when each was last alive."""
        if type(event) is BecameLeader:
            self._elected_us = time_us
        elif type(event) is LeaseGranted:
            self._alive.setdefault((event.name, event.index), (time_us, event.ttl_us))
        elif type(event) is LeaseEnded:
            self._ended.add((event.name, event.incarnation))
        elif (event.name, event.incarnation) in self._alive:
            ttl_us = self._alive[event.name, event.incarnation][1]
            self._alive[event.name, event.incarnation] = (time_us, ttl_us)

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Report each resource that has not ended although its last refresh is too long ago."""
        for (name, incarnation), (alive_us, ttl_us) in self._alive.items():
            if (name, incarnation) in self._ended:
                continue
            since_us = end_us - max(alive_us, self._elected_us, healed_us)
            if since_us > (1 + _CLOCKS_MAY_DIFFER) * ttl_us + _COMMIT_US_MAX:
                sentence = (
                    f"{name} ({incarnation}) has not ended {since_us // 1_000} ms after its last refresh, the last"
                    f" election and the heal; it lives {ttl_us // 1_000} ms."
                )
                self._breach(report, end_us, "cluster", sentence)


class AttachedKeysAreThere(ReportingInvariant):
    """LS-I4, seen from the lease: what is attached to it is stored. That no key outlives it, LS-I5 and lists show."""

    id = "LS-I4"
    statement = "Every key that is attached to a lease is in the store, and goes when the lease ends."
    events = (LeasesSeen,)

    def observe(self, time_us: int, node: str, event: LeasesSeen, report: Report) -> None:
        """Look for keys that are attached and not stored."""
        if event.orphans:
            sentence = f"After entry {event.index} {', '.join(event.orphans)} of {node} had a lease and no value."
            self._breach(report, time_us, node, sentence)


class LeasesAgree(ReportingInvariant):
    """LS-I5, at every entry that grants or ends a lease."""

    id = "LS-I5"
    statement = "Servers that have applied the same entries hold the same leases, with the same keys."
    events = (LeasesSeen,)

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int, str]] = {}

    def observe(self, time_us: int, node: str, event: LeasesSeen, report: Report) -> None:
        """Compare with the first server that reported this entry."""
        leases, checksum, first = self._seen.setdefault(event.index, (event.leases, event.checksum, node))
        if checksum != event.checksum:
            sentence = f"After entry {event.index} the {event.leases} leases of {node} are not the {leases} of {first}."
            self._breach(report, time_us, node, sentence)


class GrantsAndEndsAlternate(ReportingInvariant):
    """LS-I6: by the log alone, so that the order of reports of different servers does not matter.

    A server that starts again, or installs a snapshot, has leases whose grants it has not reported since: of a name it
    then knows nothing until the next report.
    """

    id = "LS-I6"
    statement = "In the log each name is granted, ended, granted, … in turn."
    events = (LeaseGranted, LeaseEnded, NodeStarted, StateRestored)

    def __init__(self) -> None:
        self._granted_at: dict[str, dict[str, int | None]] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Follow each server through its log; None stands for a name that is free."""
        if type(event) in (NodeStarted, StateRestored):
            self._granted_at[node] = {}
            return
        granted_at = self._granted_at.setdefault(node, {})
        before = granted_at.get(event.name)
        if type(event) is LeaseGranted:
            if before is not None:
                sentence = f"Entry {event.index} granted {event.name}, which entry {before} had granted before."
                self._breach(report, time_us, node, sentence)
            granted_at[event.name] = event.index
            return
        assert type(event) is LeaseEnded
        if event.name in granted_at and before != event.incarnation:
            sentence = f"Entry {event.index} ended {event.name} ({event.incarnation}), which was not granted then."
            self._breach(report, time_us, node, sentence)
        granted_at[event.name] = None


class OnlyLeadersProposeExpiries(ReportingInvariant):
    """LS-I7: a server that does not lead ends no lease."""

    id = "LS-I7"
    statement = "A server that does not lead finds no lease over."
    events = (ExpiryProposed,)

    def observe(self, time_us: int, node: str, event: ExpiryProposed, report: Report) -> None:
        """Look at who proposed."""
        if not event.leading:
            sentence = f"{node} found {event.name} ({event.incarnation}) over although it does not lead."
            self._breach(report, time_us, node, sentence)


SERVICE_INVARIANTS: tuple[Any, ...] = (
    NoLeaseEndsEarly,
    LeasesEndInTime,
    AttachedKeysAreThere,
    LeasesAgree,
    GrantsAndEndsAlternate,
    OnlyLeadersProposeExpiries,
)
"""The class of each invariant."""
