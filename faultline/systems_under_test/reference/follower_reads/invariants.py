"""The invariants of versions and of reads from followers, on what servers report.

Times are those of the world, not of any server: when an entry was committed is known to the instant at which its leader
decided so, and the age of an answer is counted from there. (A real process that is stopped between its decision to
answer and its report looks slower than it was; the moment is some microseconds long.)

FR-I1, FR-I2 and FR-I5 are about what clients see: the checkers `follower-reads` and `linearizability` judge them.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Any

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_replication.closed_timestamp import TimeClosed
from faultline.systems_under_test.patterns.data_replication.follower_reads import (
    FollowerReadServed,
    FollowerReadTimedOut,
    checksum_of,
)
from faultline.systems_under_test.patterns.data_replication.replication_messages import HighWaterMarkAdvanced
from faultline.systems_under_test.reference.follower_reads.stamped_store import VersionWritten
from faultline.systems_under_test.reference.shared.trace_events import NodeStarted

__all__ = [
    "AnswersAreOfTheirKeyAndVersion",
    "AnswersAtOneVersionAreOnePrefix",
    "BoundedAnswersAreFresh",
    "ClosedTimesStayClosed",
    "CutOffFollowersAreSilent",
    "OnlyCommittedStateIsShown",
    "ServersDoNotGoBack",
    "VersionsAreTheSameEverywhere",
    "VersionsDoNotChange",
    "WaitersWakeInTime",
    "follower_read_invariants",
]

_NOTHING = checksum_of(None)
_CLOCK_RATE = 1.125
"""The largest factor by which a follower's clock may be slow: drift faults go to ±10 %."""


class VersionsDoNotChange(ReportingInvariant):
    """VVL-I1: a version of a key has one value for ever."""

    id = "VVL-I1"
    statement = "A key has one value under one version, for ever and everywhere."
    events = (VersionWritten,)

    def __init__(self) -> None:
        self._values: dict[tuple[str, int], tuple[int, str]] = {}

    def observe(self, time_us: int, node: str, event: VersionWritten, report: Report) -> None:
        """Compare with the first report of this version."""
        checksum, first = self._values.setdefault((event.key, event.version), (event.checksum, node))
        if checksum != event.checksum:
            sentence = f"{event.key} under version {event.version} is not at {node} what it was at {first}."
            self._breach(report, time_us, node, sentence)


class VersionsAreTheSameEverywhere(ReportingInvariant):
    """VVL-I2: every server gives an entry the same version."""

    id = "VVL-I2"
    statement = "Versions grow along the log, and every server gives an entry the same."
    events = (VersionWritten, NodeStarted)

    def __init__(self) -> None:
        self._version_of: dict[int, tuple[int, str]] = {}
        self._last: dict[str, tuple[int, int]] = {}

    def observe(self, time_us: int, node: str, event: VersionWritten | NodeStarted, report: Report) -> None:
        """Compare with the entry before, and with the first server that applied this entry."""
        if type(event) is not VersionWritten:
            self._last.pop(node, None)
            return
        version, first = self._version_of.setdefault(event.index, (event.version, node))
        if version != event.version:
            sentence = f"Entry {event.index} has version {version} at {first} and {event.version} at {node}."
            self._breach(report, time_us, node, sentence)
        index, before = self._last.get(node, (0, 0))
        if event.index > index and event.version <= before:
            sentence = f"{node} gave entry {event.index} version {event.version} after version {before}."
            self._breach(report, time_us, node, sentence)
        self._last[node] = (event.index, event.version)


class AnswersAreOfTheirKeyAndVersion(ReportingInvariant):
    """VVL-I3, for reads of the past and for those of the newest state alike (FR-R16 among them)."""

    id = "VVL-I3"
    statement = "A read at a version is what applying the log up to that version gives."
    events = (VersionWritten, FollowerReadServed)
    broken_by = (FollowerReadServed,)

    def __init__(self) -> None:
        self._versions: dict[str, list[int]] = {}
        self._checksums: dict[tuple[str, int], int] = {}

    def observe(self, time_us: int, node: str, event: VersionWritten | FollowerReadServed, report: Report) -> None:
        """Fold what was written, and compare each answer with it."""
        if type(event) is VersionWritten:
            if (event.key, event.version) not in self._checksums:
                self._checksums[event.key, event.version] = event.checksum
                insort(self._versions.setdefault(event.key, []), event.version)
            return
        assert type(event) is FollowerReadServed
        versions = self._versions.get(event.key, [])
        place = bisect_right(versions, event.version)
        expected = self._checksums[event.key, versions[place - 1]] if place else _NOTHING
        if event.checksum != expected:
            sentence = f"{node} answered a read of {event.key} at version {event.version} with another value."
            self._breach(report, time_us, node, sentence)


class AnswersAtOneVersionAreOnePrefix(ReportingInvariant):
    """VVL-I4: each answer allows some prefixes of the log; those at one version must have one in common."""

    id = "VVL-I4"
    statement = "Reads of several keys at one version, at whatever server and time, show one prefix of the log."
    events = (VersionWritten, FollowerReadServed)
    broken_by = (FollowerReadServed,)

    def __init__(self) -> None:
        self._written: dict[str, list[tuple[int, int]]] = {}
        self._allowed: dict[int, tuple[int, float]] = {}

    def observe(self, time_us: int, node: str, event: VersionWritten | FollowerReadServed, report: Report) -> None:
        """Narrow down the prefixes that explain all answers at a version."""
        if type(event) is VersionWritten:
            written = self._written.setdefault(event.key, [])
            if (event.version, event.checksum) not in written:
                insort(written, (event.version, event.checksum))
            return
        assert type(event) is FollowerReadServed
        low, high = self._allowed.get(event.version, (0, float("inf")))
        since, until = self._prefixes(event)
        low, high = max(low, since), min(high, until)
        self._allowed[event.version] = (low, high)
        if low >= high:
            sentence = f"What {node} answered for {event.key} at version {event.version} fits no prefix of the log."
            self._breach(report, time_us, node, sentence)

    def _prefixes(self, event: FollowerReadServed) -> tuple[int, float]:
        """Return the last range of versions in which the key had the answer's value, the end excluded."""
        written = self._written.get(event.key, [])
        bounds: list[float] = [version for version, _ in written] + [float("inf")]
        for place in range(len(written) - 1, -1, -1):
            version, checksum = written[place]
            if checksum == event.checksum and version <= event.version:
                return version, bounds[place + 1]
        return (0, bounds[0]) if event.checksum == _NOTHING else (0, float("inf"))


class OnlyCommittedStateIsShown(ReportingInvariant):
    """FR-I3: a follower shows committed state only."""

    id = "FR-I3"
    statement = "A follower shows nothing that no leader had committed when it answered."
    events = (HighWaterMarkAdvanced, FollowerReadServed)
    broken_by = (FollowerReadServed,)
    needs_order = True

    def __init__(self) -> None:
        self._committed = 0

    def observe(
        self, time_us: int, node: str, event: HighWaterMarkAdvanced | FollowerReadServed, report: Report
    ) -> None:
        """Compare what was shown with the highest mark of any leader."""
        if type(event) is HighWaterMarkAdvanced:
            if event.leading:
                self._committed = max(self._committed, event.value)
        elif type(event) is FollowerReadServed and event.log_index > self._committed:
            sentence = f"{node} answered from entry {event.log_index}, but only {self._committed} were committed."
            self._breach(report, time_us, node, sentence)


class ServersDoNotGoBack(ReportingInvariant):
    """FR-I4: answers of a server follow the log."""

    id = "FR-I4"
    statement = "The answers of one server follow the order of the log, over its restarts too, but at closed times."
    events = (FollowerReadServed,)

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: FollowerReadServed, report: Report) -> None:
        """Compare with what this server has shown before."""
        if event.closed:
            return  # an answer about the past: the session names the time that it must reach
        before = self._shown.get(node, 0)
        if event.log_index < before:
            sentence = f"{node} answered from entry {event.log_index} after it had shown entry {before}."
            self._breach(report, time_us, node, sentence)
        self._shown[node] = max(before, event.log_index)


class BoundedAnswersAreFresh(ReportingInvariant):
    """FR-I6: an answer with a bound is that fresh."""

    id = "FR-I6"
    statement = "An answer with a bound misses nothing that was committed longer ago than that."
    events = (HighWaterMarkAdvanced, FollowerReadServed)
    broken_by = (FollowerReadServed,)
    needs_order = True

    def __init__(self) -> None:
        self._indexes: list[int] = []
        self._times_us: list[int] = []

    def observe(
        self, time_us: int, node: str, event: HighWaterMarkAdvanced | FollowerReadServed, report: Report
    ) -> None:
        """Note when entries are committed; find the first one that an answer misses."""
        if type(event) is HighWaterMarkAdvanced:
            if event.leading and (not self._indexes or event.value > self._indexes[-1]):
                self._indexes.append(event.value)
                self._times_us.append(time_us)
            return
        assert type(event) is FollowerReadServed
        missed = bisect_right(self._indexes, event.log_index)
        if event.bound_us and missed < len(self._indexes):
            age_us = time_us - self._times_us[missed]
            if age_us > event.bound_us * _CLOCK_RATE:
                sentence = (
                    f"{node} answered from entry {event.log_index}, {age_us // 1_000} ms after entry"
                    f" {self._indexes[missed]} was committed; the bound is {event.bound_us // 1_000} ms."
                )
                self._breach(report, time_us, node, sentence)


class CutOffFollowersAreSilent(ReportingInvariant):
    """FR-R9: a follower without its leader is silent."""

    id = "FR-R9"
    statement = "A server that has not heard its leader for the configured time answers no reads but at closed times."
    events = (FollowerReadServed,)

    def observe(self, time_us: int, node: str, event: FollowerReadServed, report: Report) -> None:
        """Look at the silence."""
        if event.silence_us > event.silence_us_max and not event.closed:
            sentence = f"{node} answered a read after {event.silence_us // 1_000} ms without its leader."
            self._breach(report, time_us, node, sentence)


class WaitersWakeInTime(ReportingInvariant):
    """FR-R14: no read waits for its stamp in vain."""

    id = "FR-R14"
    statement = "No read waits for its stamp in vain at a server that has applied it."
    events = (FollowerReadTimedOut,)

    def observe(self, time_us: int, node: str, event: FollowerReadTimedOut, report: Report) -> None:
        """Compare the stamp with what was applied when the read was given up."""
        if event.version >= event.stamp:
            sentence = f"A read for {event.stamp} was given up at {node}, which had applied {event.version}."
            self._breach(report, time_us, node, sentence)


class ClosedTimesStayClosed(ReportingInvariant):
    """FR-R22: no write goes to a closed time, and answers at closed times are at times that the log has closed."""

    id = "FR-R22"
    statement = "No write goes to a time that was closed before it, and followers answer only at times closed for them."
    events = (TimeClosed, VersionWritten, FollowerReadServed)

    def __init__(self) -> None:
        self._indexes: list[int] = []
        self._closed: dict[int, int] = {}

    def observe(
        self, time_us: int, node: str, event: TimeClosed | VersionWritten | FollowerReadServed, report: Report
    ) -> None:
        """Compare with what the log had closed before the write, or as far as the server had applied it."""
        if type(event) is TimeClosed:
            if event.index not in self._closed:
                self._closed[event.index] = event.timestamp
                insort(self._indexes, event.index)
        elif type(event) is VersionWritten:
            closed = self._closed_by(event.index)
            if event.version <= closed:
                sentence = f"{node} wrote {event.key} at {event.version} by entry {event.index}; {closed} was closed."
                self._breach(report, time_us, node, sentence)
        elif type(event) is FollowerReadServed and event.closed:
            closed = self._closed_by(event.log_index)
            if event.version > closed:
                sentence = f"{node} answered at {event.version} from entry {event.log_index}; only {closed} was closed."
                self._breach(report, time_us, node, sentence)

    def _closed_by(self, index: int) -> int:
        """Return the time that the newest closing up to entry `index` has closed; 0 without any."""
        place = bisect_right(self._indexes, index)
        return self._closed[self._indexes[place - 1]] if place else 0


_ALL: tuple[Any, ...] = (
    VersionsDoNotChange,
    VersionsAreTheSameEverywhere,
    AnswersAreOfTheirKeyAndVersion,
    AnswersAtOneVersionAreOnePrefix,
    OnlyCommittedStateIsShown,
    ServersDoNotGoBack,
    BoundedAnswersAreFresh,
    CutOffFollowersAreSilent,
    WaitersWakeInTime,
    ClosedTimesStayClosed,
)


def follower_read_invariants() -> list[Invariant]:
    """Return one fresh instance of each invariant, for one run."""
    return [invariant() for invariant in _ALL]
