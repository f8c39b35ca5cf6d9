"""The invariants of `timestamped-kv`, checked on what its nodes and clients report while a run goes on."""

from __future__ import annotations

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.timestamped_kv.messages import (
    ReadAnswered,
    StampIssued,
    StampLearned,
    VersionShown,
    WriteAcknowledged,
    WriteBegun,
)

__all__ = [
    "AnswersAreLaterThanRequests",
    "ClientClocksAscend",
    "StampsAscend",
    "StampsFollowRealTime",
    "ThePastStays",
    "timestamped_kv_invariants",
    "words",
]


class StampsAscend(ReportingInvariant):
    """LMC-I2 and HYC-I1, over the stamps that clients got: no client ever saw a stamp that a crash took away."""

    id = "HYC-I1"
    statement = "A node never gives a stamp at or below one that a client got from it, restarts included."
    events = (StampIssued, StampLearned)
    needs_order = True

    def __init__(self) -> None:
        self._known: dict[str, HybridTimestamp] = {}

    def observe(self, time_us: int, node: str, event: StampIssued | StampLearned, report: Report) -> None:
        """Remember the largest stamp that clients know of each node; compare new ones with it."""
        if isinstance(event, StampLearned):
            self._known[event.owner] = max(self._known.get(event.owner, BEFORE_ALL), event.stamp)
            return
        known = self._known.get(node, BEFORE_ALL)
        if event.stamp <= known:
            self._breach(report, time_us, node, f"{node} gave the stamp {words(event.stamp)} after {words(known)}.")


class AnswersAreLaterThanRequests(ReportingInvariant):
    """All that a client knows of happened before its write."""

    id = "LMC-I3"
    statement = "The stamp of a write is larger than every stamp its client had seen."
    events = (StampIssued,)

    def observe(self, time_us: int, node: str, event: StampIssued, report: Report) -> None:
        """Compare the stamp with the request's."""
        if event.stamp <= event.seen:
            sentence = f"{node} gave the stamp {words(event.stamp)} to a client that knew of {words(event.seen)}."
            self._breach(report, time_us, node, sentence)


class ClientClocksAscend(ReportingInvariant):
    """A client's knowledge only grows."""

    id = "LMC-I4"
    statement = "The clock of a client never goes back."
    events = (StampLearned,)

    def __init__(self) -> None:
        self._seen: dict[str, HybridTimestamp] = {}

    def observe(self, time_us: int, node: str, event: StampLearned, report: Report) -> None:
        """Compare with the stamp that the client knew before."""
        before = self._seen.get(node, BEFORE_ALL)
        self._seen[node] = event.seen
        if event.seen < before:
            self._breach(report, time_us, node, f"{node} went back from {words(before)} to {words(event.seen)}.")


class StampsFollowRealTime(ReportingInvariant):
    """External consistency of writes, promised where writers wait."""

    id = "CBW-I1"
    statement = "A write that begins after another was acknowledged gets the larger stamp, whatever node and key."
    events = (WriteBegun, WriteAcknowledged)
    needs_order = True

    def __init__(self) -> None:
        self._acknowledged = BEFORE_ALL
        self._before: dict[str, HybridTimestamp] = {}

    def observe(self, time_us: int, node: str, event: WriteBegun | WriteAcknowledged, report: Report) -> None:
        """Remember the largest acknowledged stamp when a client begins; its own must become larger."""
        if isinstance(event, WriteBegun):
            self._before[node] = self._acknowledged
            return
        before = self._before[node]
        self._acknowledged = max(self._acknowledged, event.stamp)
        if event.stamp <= before:
            sentence = f"{node} began to write after {words(before)} was acknowledged, and got {words(event.stamp)}."
            self._breach(report, time_us, node, sentence)


class ThePastStays(ReportingInvariant):
    """Snapshot reads can be repeated, promised under commit wait."""

    id = "CBW-I3"
    statement = "After a read at a time was answered, no version of the key is shown at or before that time."
    events = (ReadAnswered, VersionShown)

    def __init__(self) -> None:
        self._read: dict[str, HybridTimestamp] = {}

    def observe(self, time_us: int, node: str, event: ReadAnswered | VersionShown, report: Report) -> None:
        """Remember up to which time each key was read; compare the versions shown later."""
        read = self._read.get(event.key, BEFORE_ALL)
        if isinstance(event, ReadAnswered):
            self._read[event.key] = max(read, event.read_time)
        elif event.stamp <= read:
            sentence = (
                f"{node} showed a version of {event.key} at {words(event.stamp)}, read up to {words(read)} before."
            )
            self._breach(report, time_us, node, sentence)


def words(stamp: HybridTimestamp) -> str:
    """Return the stamp as people write it: `1.250000 s + 3 ticks`, or a counter."""
    if stamp.wall_us < 1_000_000_000:
        return str(stamp.wall_us)
    seconds = f"{stamp.wall_us // 1_000_000 % 100_000}.{stamp.wall_us % 1_000_000:06}"
    return f"{seconds} s + {stamp.ticks} ticks"


def timestamped_kv_invariants() -> list[Invariant]:
    """Return fresh instances of all invariants, for one run."""
    return [
        StampsAscend(),
        AnswersAreLaterThanRequests(),
        ClientClocksAscend(),
        StampsFollowRealTime(),
        ThePastStays(),
    ]
