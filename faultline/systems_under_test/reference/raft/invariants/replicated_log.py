"""Invariants of the replicated log and its mark that look at one server's own order, at disks, and at the end of a run.

They follow the rules of `invariants`: nothing is concluded from what a server intends. A copy on a disk
is evidenced by the log a server finds when it starts again; an entry is executed when the server reports it.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.invariant import Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import BecameLeader, SteppedDown
from faultline.systems_under_test.patterns.data_replication.leader_reads import IndexReadServed, LeaseReadServed
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    EntriesTruncated,
    HighWaterMarkAdvanced,
)
from faultline.systems_under_test.reference.shared.trace_events import (
    EntryApplied,
    NodeStarted,
    StateRestored,
)

__all__ = [
    "REPLICATED_LOG_INVARIANTS",
    "AppliedInOrderUpToTheMark",
    "CommittedEntriesAreOnAQuorumOfDisks",
    "FollowersConverge",
    "FollowersTrailTheLeader",
    "LeadersOnlyAppend",
    "ReadsWaitForTheNoOp",
]


class LeadersOnlyAppend(ReportingInvariant):
    """LOG-I3: a leader never cuts entries off its own log."""

    id = "LOG-I3"
    statement = "A leader cuts nothing off its own log."
    events = (BecameLeader, SteppedDown, NodeStarted, EntriesTruncated)
    broken_by = (EntriesTruncated,)

    def __init__(self) -> None:
        self._leading: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Remember who leads; look at cuts."""
        if type(event) is BecameLeader:
            self._leading[node] = event.generation
        elif type(event) is EntriesTruncated:
            if node in self._leading:
                generation = self._leading[node]
                sentence = f"{node} cut its log at {event.from_index} while it led generation {generation}."
                self._breach(report, time_us, node, sentence)
        else:
            self._leading.pop(node, None)


class AppliedInOrderUpToTheMark(ReportingInvariant):
    """LOG-I5; the mark and what was applied are learned again after a restart, or taken over with a snapshot."""

    id = "LOG-I5"
    statement = "A server applies each entry once, in the order of the log, and none above its mark."
    events = (EntryApplied, HighWaterMarkAdvanced, NodeStarted, StateRestored)

    def __init__(self) -> None:
        self._applied: dict[str, int] = {}
        self._marks: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Compare with what this process applied before, and with its mark."""
        if type(event) is HighWaterMarkAdvanced:
            self._marks[node] = event.value
        elif type(event) is NodeStarted:
            self._applied[node] = self._marks[node] = 0
        elif type(event) is StateRestored:
            self._applied[node] = event.index
        else:
            before, mark = self._applied.get(node, 0), self._marks.get(node, 0)
            if event.index <= before:
                self._breach(report, time_us, node, f"{node} applied entry {event.index} after entry {before}.")
            if event.index > mark:
                self._breach(report, time_us, node, f"{node} applied entry {event.index} above its mark {mark}.")
            self._applied[node] = event.index


class FollowersTrailTheLeader(ReportingInvariant):
    """HWM-I3: a follower learns the mark from its leader, who had it first."""

    id = "HWM-I3"
    statement = "A follower's mark is at most the mark its leader has reached in that generation."
    events = (BecameLeader, HighWaterMarkAdvanced, NodeStarted, StateRestored)
    needs_order = True

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}
        self._reached: dict[int, int] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Compare with the mark of the leader of the generation."""
        if type(event) is NodeStarted:
            self._marks[node] = 0
        elif type(event) is StateRestored:
            self._marks[node] = max(self._marks.get(node, 0), event.index)
        elif type(event) is BecameLeader:
            self._reached[event.generation] = self._marks.get(node, 0)
        else:
            self._marks[node] = event.value
            reached = self._reached.get(event.generation)
            if event.leading:
                self._reached[event.generation] = event.value
            elif reached is not None and event.value > reached:
                sentence = (
                    f"{node} moved its mark to {event.value} in generation {event.generation},"
                    f" whose leader had reached {reached}."
                )
                self._breach(report, time_us, node, sentence)


class CommittedEntriesAreOnAQuorumOfDisks(ReportingInvariant):
    """HWM-I2 and LOG-I9 in observable form.

    A quorum stored the entry when it was committed, and no member of it ever loses it. So the servers that start with a
    log that ends before an entry committed by then are fewer than a majority, over the whole run.
    """

    id = "HWM-I2"
    statement = "A committed entry is on the disks of a majority."
    events = (HighWaterMarkAdvanced, NodeStarted)
    broken_by = (NodeStarted,)
    needs_order = True

    def __init__(self) -> None:
        self._committed = 0
        self._nodes: set[str] = set()
        self._lacking: dict[str, list[tuple[int, int]]] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Note, at a start, the committed entries that the disk lacks; report one that too many lack."""
        if type(event) is HighWaterMarkAdvanced:
            self._committed = max(self._committed, event.value)
            return
        self._nodes.add(node)
        if event.last_index >= self._committed:
            return
        self._lacking.setdefault(node, []).append((event.last_index, self._committed))
        entry, without = self._most_lacked(event.last_index + 1)
        if len(without) > len(self._nodes) - majority(len(self._nodes)):
            sentence = (
                f"Entry {entry} was committed, and of {len(self._nodes)} servers"
                f" {', '.join(without)} started without it."
            )
            self._breach(report, time_us, node, sentence)

    def _most_lacked(self, first: int) -> tuple[int, list[str]]:
        """Return the entry from `first` on that most servers lacked at a start, and these servers."""
        # Each start lacks a range of entries. Ranges that share an entry all hold the lowest of their last ones, so the
        # last ones are enough to look at. Servers that lack different entries do not add up.
        last_ones = {last for ranges in self._lacking.values() for _, last in ranges if last >= first}
        return max(
            ((entry, self._without(entry)) for entry in sorted(last_ones, reverse=True)),
            key=lambda lacked: len(lacked[1]),
        )

    def _without(self, entry: int) -> list[str]:
        lacking = self._lacking.items()
        return sorted(node for node, ranges in lacking if any(end < entry <= last for end, last in ranges))


class ReadsWaitForTheNoOp(ReportingInvariant):
    """LOG-R15, on the reads that bypass the log."""

    id = "LOG-R15"
    statement = "A leader answers no read before an entry of its own generation is applied."
    events = (EntryApplied, NodeStarted, IndexReadServed, LeaseReadServed)
    broken_by = (IndexReadServed, LeaseReadServed)

    def __init__(self) -> None:
        self._applied: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Compare the generation of the read with that of the last entry applied."""
        if type(event) is EntryApplied:
            self._applied[node] = event.generation
        elif type(event) is NodeStarted:
            self._applied[node] = 0
        elif self._applied.get(node, 0) < event.generation:
            sentence = f"{node} answered a read in generation {event.generation} before it had applied an entry of it."
            self._breach(report, time_us, node, sentence)


_CATCH_UP_US = 1_500_000
"""The time in which a server that starts again hears of a leader and applies its log, loss and long links included."""

_STUCK_US = 500_000
"""The time without progress after which a server that is behind a leader is stuck: small batches come one by one."""


class FollowersConverge(ReportingInvariant):
    """LOG-I8: looked at once, at the end of a run that was healed a while ago. Simulated world only.

    A run may end a second after the heal. So a server is not judged that started just before the end, or that was
    still applying entries, or that has a new leader. That they applied the same is LOG-I2; this is about whether all
    servers have got there.
    """

    id = "LOG-I8"
    statement = "At the end of a run, every server that ran for a while has applied what was committed before the heal,"
    statement += " or is about to."
    events = (HighWaterMarkAdvanced, EntryApplied, NodeStarted, StateRestored, BecameLeader)

    def __init__(self) -> None:
        self._committed: list[tuple[int, int]] = [(0, 0)]
        self._applied: dict[str, int] = {}
        self._applied_us: dict[str, int] = {}
        self._started_us: dict[str, int] = {}
        self._led_since_us = 0

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Remember how far each server is, and since when it runs."""
        if type(event) is HighWaterMarkAdvanced:
            if event.value > self._committed[-1][1]:
                self._committed.append((time_us, event.value))
        elif type(event) is NodeStarted:
            self._applied[node], self._started_us[node] = 0, time_us
        elif type(event) is BecameLeader:
            self._led_since_us = time_us
        else:
            self._applied[node], self._applied_us[node] = event.index, time_us

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Compare each server with what was committed before the heal."""
        due = max(index for time_us, index in self._committed if time_us <= healed_us)
        for node, applied in sorted(self._applied.items()):
            if applied < due and self._is_stuck(node, end_us):
                sentence = (
                    f"{node} had applied entries up to {applied} at the end; {due} was committed before the heal."
                )
                self._breach(report, end_us, node, sentence)

    def _is_stuck(self, node: str, end_us: int) -> bool:
        moved_us = max(self._applied_us.get(node, 0), self._led_since_us)
        return end_us - self._started_us.get(node, 0) >= _CATCH_UP_US and end_us - moved_us >= _STUCK_US


REPLICATED_LOG_INVARIANTS: tuple[Any, ...] = (
    LeadersOnlyAppend,
    AppliedInOrderUpToTheMark,
    FollowersTrailTheLeader,
    CommittedEntriesAreOnAQuorumOfDisks,
    ReadsWaitForTheNoOp,
    FollowersConverge,
)
"""Their classes: one instance each per run."""
