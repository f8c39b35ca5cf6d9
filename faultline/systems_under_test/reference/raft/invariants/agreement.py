"""The invariants of elections, log and mark, checked on what its servers report while a run goes on.

A report is made by a server that may die in the same instant, with its last writes not yet durable. So nothing is
concluded from what a server *intends*: a vote counts when the candidate counted it, a candidacy when its request has
arrived, a leadership when the votes were in. Then it was durable, and a restart must not have forgotten it.

`needs_order` is true where reports of *different* servers must come in the order in which they were made: a world that
cannot merge them so must leave that invariant out. Both worlds can: one has a single clock, the other sorts by the
machine's. In real processes one uncertainty remains, a pause between a decision and its report. All other invariants
hold whatever the interleaving, as long as each server's own reports are in order.

Ids are those of the requirements: LDR leader and followers, GEN generation clock, LOG replicated log, HWM high-water
mark, IDR idempotent receiver.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_replication.collecting_election import EntriesStampedAnew
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    BecameLeader,
    CandidateSeen,
    GenerationAdopted,
    VoteCounted,
)
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaseReadServed
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    EntriesTruncated,
    HighWaterMarkAdvanced,
)
from faultline.systems_under_test.reference.raft.invariants.communication import (
    BatchesRespectTheirSize,
    InFlightRequestsAreLimited,
)
from faultline.systems_under_test.reference.raft.invariants.leadership import LEADERSHIP_INVARIANTS
from faultline.systems_under_test.reference.raft.invariants.replicated_log import (
    REPLICATED_LOG_INVARIANTS,
)
from faultline.systems_under_test.reference.raft.invariants.sessions import SESSION_INVARIANTS
from faultline.systems_under_test.reference.raft.invariants.storage import STORAGE_INVARIANTS
from faultline.systems_under_test.reference.shared.trace_events import (
    EntryApplied,
    NodeStarted,
    StateRestored,
)

__all__ = [
    "AppliedEntriesAgree",
    "EntriesMatch",
    "GenerationsAlongTheLogAscend",
    "GenerationsAscend",
    "LeaderIsComplete",
    "LeaseReadsEndBeforeTheNextLeader",
    "MarkMovesForward",
    "MarkRestsOnTheOwnGeneration",
    "OneLeaderPerGeneration",
    "OneVotePerGeneration",
    "TruncationSparesTheMark",
    "raft_invariants",
]


class OneLeaderPerGeneration(ReportingInvariant):
    """LDR-I1: no generation has two leaders."""

    id = "LDR-I1"
    statement = "At most one server leads in a generation."
    events = (BecameLeader,)

    def __init__(self) -> None:
        self._leaders: dict[int, str] = {}

    def observe(self, time_us: int, node: str, event: BecameLeader, report: Report) -> None:
        """Remember who led which generation."""
        leader = self._leaders.setdefault(event.generation, node)
        if leader != node:
            self._breach(
                report, time_us, node, f"{leader} and {node} both became leader of generation {event.generation}."
            )


class OneVotePerGeneration(ReportingInvariant):
    """LDR-I2, over all restarts: a candidate's own vote is evidenced by its request, others' by being counted."""

    id = "LDR-I2"
    statement = "A server votes for at most one candidate in a generation."
    events = (VoteCounted, CandidateSeen)

    def __init__(self) -> None:
        self._votes: dict[tuple[int, str], str] = {}

    def observe(self, time_us: int, node: str, event: VoteCounted | CandidateSeen, report: Report) -> None:
        """Remember each vote."""
        if type(event) is VoteCounted:
            voter, candidate = event.voter, node
        else:
            assert type(event) is CandidateSeen
            voter = candidate = event.candidate
        chosen = self._votes.setdefault((event.generation, voter), candidate)
        if chosen != candidate:
            sentence = f"{voter} voted for {chosen} and for {candidate} in generation {event.generation}."
            self._breach(report, time_us, voter, sentence)


class LeaderIsComplete(ReportingInvariant):
    """LDR-I3, by the end of the new leader's log: it must reach as far as all that was committed before it."""

    id = "LDR-I3"
    statement = "A leader's log reaches every entry that was committed in earlier generations."
    events = (BecameLeader, HighWaterMarkAdvanced)

    def __init__(self) -> None:
        self._leaders: dict[int, tuple[str, int, int]] = {}
        self._committed: dict[int, tuple[int, int]] = {}

    def observe(self, time_us: int, node: str, event: BecameLeader | HighWaterMarkAdvanced, report: Report) -> None:
        """Compare in both directions, so that the order of reports does not matter."""
        if type(event) is BecameLeader:
            self._leaders[event.generation] = (node, event.last_index, event.last_generation)
            for generation, mark in self._committed.items():
                self._compare(time_us, event.generation, generation, mark, report)
        elif type(event) is HighWaterMarkAdvanced and event.leading:
            mark = (event.value, event.entry_generation)
            if mark > self._committed.get(event.generation, (0, 0)):
                self._committed[event.generation] = mark
            for generation in self._leaders:
                self._compare(time_us, generation, event.generation, mark, report)

    def _compare(self, time_us: int, led: int, committed: int, mark: tuple[int, int], report: Report) -> None:
        if led <= committed:
            return
        leader, last_index, last_generation = self._leaders[led]
        if last_index < mark[0] or last_generation < mark[1]:
            sentence = (
                f"{leader} became leader of generation {led} with a log that ends at {last_index} (generation"
                f" {last_generation}), but entry {mark[0]} (generation {mark[1]}) was committed in generation"
                f" {committed}."
            )
            self._breach(report, time_us, leader, sentence)


class GenerationsAscend(ReportingInvariant):
    """GEN-I1 (= LDR-I4): within a process always; over a restart, for generations proved durable by leading in them."""

    id = "GEN-I1"
    statement = "A server's generation never decreases, restarts included."
    events = (NodeStarted, GenerationAdopted, BecameLeader)

    def __init__(self) -> None:
        self._now: dict[str, int] = {}
        self._durable: dict[str, int] = {}

    def observe(
        self, time_us: int, node: str, event: NodeStarted | GenerationAdopted | BecameLeader, report: Report
    ) -> None:
        """Compare with what this server reported before."""
        started = type(event) is NodeStarted
        floor = (self._durable if started else self._now).get(node, 0)
        if event.generation < floor:
            self._breach(report, time_us, node, f"{node} went back from generation {floor} to {event.generation}.")
        self._now[node] = event.generation
        if type(event) is BecameLeader:
            self._durable[node] = event.generation


class GenerationsAlongTheLogAscend(ReportingInvariant):
    """GEN-I2, on the entries as each server applies them."""

    id = "GEN-I2"
    statement = "Along a log, generations do not decrease."
    events = (EntryApplied, NodeStarted, StateRestored)

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def observe(
        self, time_us: int, node: str, event: EntryApplied | NodeStarted | StateRestored, report: Report
    ) -> None:
        """Compare with the entry this server applied before."""
        if type(event) is not EntryApplied:
            self._last[node] = event.generation if type(event) is StateRestored else 0
            return
        before = self._last.get(node, 0)
        if event.generation < before:
            sentence = f"{node} applied entry {event.index} of generation {event.generation} after one of {before}."
            self._breach(report, time_us, node, sentence)
        self._last[node] = event.generation


class _StampedAnew:
    """The entries that a leader collected and put under its generation, by the reports of the servers that hold them.

    A server reports them before it applies them, so the order of reports of different servers does not matter.
    """

    def __init__(self) -> None:
        self._first: dict[int, int] = {}

    def note(self, event: EntriesStampedAnew) -> None:
        """Remember from which index on the leader of this generation stamped entries anew."""
        first = self._first.get(event.generation, event.first_index)
        self._first[event.generation] = min(first, event.first_index)

    def holds(self, index: int, generation: int) -> bool:
        """Return whether the entry may have had another generation before, as may the one in front of it."""
        return index >= self._first.get(generation, index + 1)


class EntriesMatch(ReportingInvariant):
    """LOG-I1 in its spot form: on applied entries, each with the generation of the one before it.

    A leader that stamps entries anew begins where it knows no more to be committed. What comes before may have another
    generation on other servers, so there only the entry itself is compared.
    """

    id = "LOG-I1"
    statement = "Entries with the same index and generation are the same, and follow the same entry."
    events = (EntryApplied, NodeStarted, StateRestored, EntriesStampedAnew)

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int], tuple[int, int]] = {}
        self._last: dict[str, int] = {}
        self._stamped_anew = _StampedAnew()

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Compare with the first report of an entry of this index and generation."""
        if type(event) is EntriesStampedAnew:
            self._stamped_anew.note(event)
            return
        if type(event) is not EntryApplied:
            self._last[node] = event.generation if type(event) is StateRestored else 0
            return
        key, before = (event.index, event.generation), self._last.get(node, 0)
        self._last[node] = event.generation
        first = self._entries.setdefault(key, (event.checksum, before))
        follows_the_same = first[1] == before or self._stamped_anew.holds(*key)
        if first[0] != event.checksum or not follows_the_same:
            sentence = f"Entry {event.index} of generation {event.generation} is not at {node} what it is elsewhere."
            self._breach(report, time_us, node, sentence)


class AppliedEntriesAgree(ReportingInvariant):
    """LOG-I2, state machine safety; an entry that a leader stamped anew is the same under either generation."""

    id = "LOG-I2"
    statement = "No two servers apply different entries at one index."
    events = (EntryApplied, EntriesStampedAnew)

    def __init__(self) -> None:
        self._applied: dict[int, tuple[int, int, str]] = {}
        self._stamped_anew = _StampedAnew()

    def observe(self, time_us: int, node: str, event: EntryApplied | EntriesStampedAnew, report: Report) -> None:
        """Compare with the first server that applied this index."""
        if type(event) is EntriesStampedAnew:
            self._stamped_anew.note(event)
            return
        assert type(event) is EntryApplied
        first = self._applied.get(event.index)
        if first is None:
            self._applied[event.index] = (event.generation, event.checksum, node)
        elif first[1] != event.checksum or (
            first[0] != event.generation and not self._is_one_entry(event.index, first[0], event.generation)
        ):
            sentence = (
                f"{first[2]} applied an entry of generation {first[0]} at index {event.index},"
                f" {node} a different one of generation {event.generation}."
            )
            self._breach(report, time_us, node, sentence)

    def _is_one_entry(self, index: int, one: int, other: int) -> bool:
        """Return whether a leader stamped an entry anew, which then has both generations."""
        return any(self._stamped_anew.holds(index, each) for each in (one, other))


class MarkRestsOnTheOwnGeneration(ReportingInvariant):
    """LOG-R14: a leader counts copies of its own entries only."""

    id = "LOG-R14"
    statement = "A leader never moves the high-water mark by counting copies of an earlier generation's entry."
    events = (HighWaterMarkAdvanced,)

    def observe(self, time_us: int, node: str, event: HighWaterMarkAdvanced, report: Report) -> None:
        """Look at the entry the mark now points to."""
        if event.leading and event.entry_generation != event.generation:
            sentence = (
                f"{node}, leading generation {event.generation}, committed entry {event.value} of generation"
                f" {event.entry_generation} by counting."
            )
            self._breach(report, time_us, node, sentence)


class MarkMovesForward(ReportingInvariant):
    """HWM-I1, per process: the mark is learned again after a restart."""

    id = "HWM-I1"
    statement = "The high-water mark of a server does not move back."
    events = (HighWaterMarkAdvanced, NodeStarted)

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: HighWaterMarkAdvanced | NodeStarted, report: Report) -> None:
        """Compare with the last mark of this process."""
        if type(event) is not HighWaterMarkAdvanced:
            self._marks[node] = 0
            return
        before = self._marks.get(node, 0)
        if event.value < before:
            self._breach(report, time_us, node, f"The mark of {node} moved back from {before} to {event.value}.")
        self._marks[node] = event.value


class TruncationSparesTheMark(ReportingInvariant):
    """HWM-I5: no server cuts off what is committed."""

    id = "HWM-I5"
    statement = "Nothing at or below a server's own high-water mark is cut off its log."
    events = (EntriesTruncated,)

    def observe(self, time_us: int, node: str, event: EntriesTruncated, report: Report) -> None:
        """Compare the cut with the mark."""
        if event.from_index <= event.high_water_mark:
            sentence = f"{node} cut its log at {event.from_index}, at or below its mark {event.high_water_mark}."
            self._breach(report, time_us, node, sentence)


class LeaseReadsEndBeforeTheNextLeader(ReportingInvariant):
    """LOG-I7 in observable form: once a later leader has committed, an earlier one answers no read under its lease."""

    id = "LOG-I7"
    statement = "No read is answered under a lease after a later leader has committed an entry."
    events = (LeaseReadServed, HighWaterMarkAdvanced)
    broken_by = (LeaseReadServed,)
    needs_order = True

    def __init__(self) -> None:
        self._committed_in = 0

    def observe(self, time_us: int, node: str, event: LeaseReadServed | HighWaterMarkAdvanced, report: Report) -> None:
        """Compare the generation of the read with the newest in which something was committed."""
        if type(event) is LeaseReadServed:
            if event.generation < self._committed_in:
                sentence = (
                    f"{node} answered a read under its lease of generation {event.generation}"
                    f" when generation {self._committed_in} had already committed."
                )
                self._breach(report, time_us, node, sentence)
        elif event.generation > self._committed_in:
            self._committed_in = event.generation


_ALL: tuple[Any, ...] = (
    OneLeaderPerGeneration,
    OneVotePerGeneration,
    LeaderIsComplete,
    GenerationsAscend,
    GenerationsAlongTheLogAscend,
    EntriesMatch,
    AppliedEntriesAgree,
    MarkRestsOnTheOwnGeneration,
    MarkMovesForward,
    TruncationSparesTheMark,
    LeaseReadsEndBeforeTheNextLeader,
    *LEADERSHIP_INVARIANTS,
    InFlightRequestsAreLimited,
    BatchesRespectTheirSize,
    *SESSION_INVARIANTS,
    *STORAGE_INVARIANTS,
    *REPLICATED_LOG_INVARIANTS,
)


def raft_invariants() -> list[Invariant]:
    """Return one fresh instance of each invariant of the server, for one run."""
    return [invariant() for invariant in _ALL]
