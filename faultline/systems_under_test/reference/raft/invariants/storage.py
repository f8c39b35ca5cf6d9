"""The invariants of logs, snapshots and low-water marks, checked on what servers report while a run goes on.

A server reports before it is durable what it has done, and may die in the same instant. So what one server must not
have forgotten is concluded from what *others* were told: an entry is committed when its leader has counted a majority.

Ids are those of the requirements: WAL write-ahead log, SEG segmented log, LWM low-water mark. The rest of their
invariants (WAL-I4 to WAL-I6, SEG-I4, SEG-I5) speak of the files themselves, and are properties in the tests.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.invariant import Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_replication.low_water_mark import LogCleaned
from faultline.systems_under_test.patterns.data_replication.replicated_log import HighWaterMarkAdvanced
from faultline.systems_under_test.reference.shared.trace_events import (
    EntryApplied,
    NodeStarted,
    SnapshotTaken,
    StateRestored,
)

__all__ = [
    "STORAGE_INVARIANTS",
    "CommittedEntriesAreRecovered",
    "EntriesAreAppliedInTurn",
    "InstalledStatesAgree",
    "LogIsCleanedAgainAndAgain",
    "LowWaterMarkStaysBehind",
    "RestoredStatesAgree",
    "SegmentsJoin",
    "SnapshotAndLogJoin",
]

_SNAPSHOTS_WITHOUT_CLEANING_MAX = 10
_INTERVALS_WITHOUT_CLEANING_MAX = 20


class CommittedEntriesAreRecovered(ReportingInvariant):
    """WAL-I1: who stored an entry when it was committed has it after every restart.

    A majority did, so those that ever come back *without* an entry that was committed by then are a minority.
    """

    id = "WAL-I1"
    statement = "Only a minority of servers ever restarts without an entry that had been committed before."
    events = (NodeStarted, HighWaterMarkAdvanced)
    broken_by = (NodeStarted,)
    needs_order = True

    def __init__(self) -> None:
        self._servers: set[str] = set()
        self._committed = 0
        self._gaps: list[tuple[str, int, int]] = []

    def observe(self, time_us: int, node: str, event: NodeStarted | HighWaterMarkAdvanced, report: Report) -> None:
        """Remember what each restart lacked: everything after the end of the log, up to what was committed."""
        if type(event) is HighWaterMarkAdvanced:
            if event.leading:
                self._committed = max(self._committed, event.value)
            return
        assert type(event) is NodeStarted
        self._servers.add(node)
        if event.last_index >= self._committed:
            return
        self._gaps.append((node, event.last_index + 1, self._committed))
        index, without = self._most_forgotten()
        if 2 * len(without) > len(self._servers):
            sentence = f"Entry {index} had been committed, but {', '.join(without)} restarted without it."
            self._breach(report, time_us, node, sentence)

    def _most_forgotten(self) -> tuple[int, list[str]]:
        candidates = sorted({first for _, first, _ in self._gaps})
        missed = [(index, sorted({n for n, low, high in self._gaps if low <= index <= high})) for index in candidates]
        return max(missed, key=lambda each: len(each[1]))


class EntriesAreAppliedInTurn(ReportingInvariant):
    """WAL-I3 (and WAL-I2): the state is the fold of the snapshot and every entry after it, each once and in order."""

    id = "WAL-I3"
    statement = "A process applies the entry after its snapshot first, and then one after the other."
    events = (NodeStarted, StateRestored, EntryApplied)

    def __init__(self) -> None:
        self._applied: dict[str, int] = {}

    def observe(
        self, time_us: int, node: str, event: NodeStarted | StateRestored | EntryApplied, report: Report
    ) -> None:
        """Compare with what is in the state already."""
        if isinstance(event, NodeStarted):
            self._applied[node] = 0
            return
        before = self._applied.get(node, 0)
        if type(event) is EntryApplied and event.index != before + 1:
            sentence = f"{node} applied entry {event.index} to a state that held all entries up to {before}."
            self._breach(report, time_us, node, sentence)
        self._applied[node] = event.index


class SegmentsJoin(ReportingInvariant):
    """SEG-I1 to SEG-I3, on the closed segments after each run of the cleaner."""

    id = "SEG-I2"
    statement = "Each segment of a log begins with the entry after the last one of the segment before."
    events = (LogCleaned,)

    def observe(self, time_us: int, node: str, event: LogCleaned, report: Report) -> None:
        """Compare neighbours, from the first retained entry on."""
        expected = event.compacted_index + 1
        for first, last in event.closed:
            if first != expected or last < first or last > event.last_index:
                sentence = (
                    f"In the log of {node} a segment with entries {first} to {last} follows entry {expected - 1}."
                )
                self._breach(report, time_us, node, sentence)
            expected = last + 1


class _StatesAgree(ReportingInvariant):
    """Every server that has the state of one entry has the same state."""

    events = (SnapshotTaken, StateRestored)
    installed = False

    def __init__(self) -> None:
        self._states: dict[int, tuple[int, str]] = {}

    def observe(self, time_us: int, node: str, event: SnapshotTaken | StateRestored, report: Report) -> None:
        """Compare with the first report of the state at this index."""
        if type(event) is StateRestored and event.installed != self.installed:
            return
        checksum, first = self._states.setdefault(event.index, (event.checksum, node))
        if event.checksum != checksum:
            sentence = f"The state after entry {event.index} is not at {node} what it was at {first}."
            self._breach(report, time_us, node, sentence)


class RestoredStatesAgree(_StatesAgree):
    """LWM-I1, with LWM-I2 and WAL-I3: the snapshot holds the state at its index, and the log goes on from there."""

    id = "LWM-I1"
    statement = (
        "A snapshot, taken by whichever server and restored later, holds the one state that belongs to its index."
    )


class InstalledStatesAgree(_StatesAgree):
    """LWM-I5: an installed snapshot equals the state at its entry."""

    id = "LWM-I5"
    statement = "After a snapshot was installed, the follower's state is what every server's is at that index."
    installed = True


class SnapshotAndLogJoin(ReportingInvariant):
    """LWM-I2: a log begins where its snapshot ends, or before."""

    id = "LWM-I2"
    statement = "The retained log begins at the latest with the entry after the snapshot that is restored."
    events = (StateRestored, SnapshotTaken, LogCleaned, NodeStarted)

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Report a restored snapshot that the log does not join, and a cleaned log short of the oldest one retained."""
        if type(event) is NodeStarted:
            self._marks.pop(node, None)
        elif type(event) is SnapshotTaken:
            self._marks[node] = event.mark
        elif type(event) is StateRestored:
            self._marks[node] = event.index
            self._compare(time_us, node, event.index, event, report)
        elif event.deleted:
            self._compare(time_us, node, self._marks.get(node, 0), event, report)

    def _compare(self, time_us: int, node: str, index: int, event: StateRestored | LogCleaned, report: Report) -> None:
        if not event.compacted_index <= index <= event.last_index:
            sentence = (
                f"The log of {node} holds entries {event.compacted_index + 1} to {event.last_index}, its snapshot ends"
                f" at {index}."
            )
            self._breach(report, time_us, node, sentence)


class LowWaterMarkStaysBehind(ReportingInvariant):
    """LWM-I3, per process."""

    id = "LWM-I3"
    statement = (
        "The low-water mark moves forward only, and stays behind what is applied, which stays behind the high one."
    )
    events = (SnapshotTaken, HighWaterMarkAdvanced, StateRestored, NodeStarted)
    broken_by = (SnapshotTaken,)

    def __init__(self) -> None:
        self._high: dict[str, int] = {}
        self._low: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Compare the snapshot's index with what was applied, and that with the high-water mark."""
        if type(event) is NodeStarted:
            self._high[node] = self._low[node] = 0
        elif type(event) is HighWaterMarkAdvanced:
            self._high[node] = max(self._high.get(node, 0), event.value)
        elif type(event) is StateRestored:
            self._high[node] = max(self._high.get(node, 0), event.index)
        elif type(event) is SnapshotTaken:
            self._compare(time_us, node, event, report)
            self._low[node] = event.mark

    def _compare(self, time_us: int, node: str, event: SnapshotTaken, report: Report) -> None:
        low, high = self._low.get(node, 0), self._high.get(node, 0)
        if not low <= event.mark <= event.index <= event.applied <= high:
            sentence = (
                f"{node} took a snapshot of entry {event.index} with entries up to {event.applied} applied: its"
                f" low-water mark went from {low} to {event.mark}, its high-water mark is {high}."
            )
            self._breach(report, time_us, node, sentence)


class LogIsCleanedAgainAndAgain(ReportingInvariant):
    """LWM-I4, in observable form: what bounds the disk is that the cleaner comes back.

    Several snapshots between two runs are normal in a server that was paused and catches up; many of them, and over
    many of the cleaner's intervals, are not.
    """

    id = "LWM-I4"
    statement = "While a server goes on taking snapshots, its log is cleaned again and again."
    events = (LogCleaned, SnapshotTaken, NodeStarted)

    def __init__(self) -> None:
        self._since: dict[str, tuple[int, int, int]] = {}

    def observe(self, time_us: int, node: str, event: LogCleaned | SnapshotTaken | NodeStarted, report: Report) -> None:
        """Count the snapshots since the last run."""
        if type(event) is NodeStarted:
            self._since.pop(node, None)
        elif type(event) is LogCleaned:
            self._since[node] = (time_us, event.interval_us, 0)
        elif node in self._since:
            cleaned_us, interval_us, snapshots = self._since[node]
            self._since[node] = (cleaned_us, interval_us, snapshots + 1)
            late = time_us - cleaned_us > _INTERVALS_WITHOUT_CLEANING_MAX * interval_us
            if late and snapshots >= _SNAPSHOTS_WITHOUT_CLEANING_MAX:
                sentence = f"{node} took {snapshots + 1} snapshots since its log was last cleaned."
                self._breach(report, time_us, node, sentence)


STORAGE_INVARIANTS: tuple[Any, ...] = (
    CommittedEntriesAreRecovered,
    EntriesAreAppliedInTurn,
    SegmentsJoin,
    RestoredStatesAgree,
    InstalledStatesAgree,
    SnapshotAndLogJoin,
    LowWaterMarkStaysBehind,
    LogIsCleanedAgainAndAgain,
)
"""The invariants of this module; a run makes one of each."""
