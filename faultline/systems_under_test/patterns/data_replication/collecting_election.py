"""Collecting election: any server may lead, once it has collected the entries of a majority and stamped them anew.

*Problem.* Two leaders each accepted an entry at the same place of the log and crashed before they copied it. The next
leader finds both. It must keep every entry that may have been committed, although its own log may lack some of them.

*Idea.* (The election that chapter 2 narrates; Paxos and viewstamped replication work so.) A candidate needs the votes
of a majority, as in Raft, but voters do not compare its log with theirs. Once elected, it asks the others for their
entries above the ones that it knows to be committed. A server that answers has entered the new generation, and refuses
all earlier leaders.
With the entries of a majority, itself included, the candidate takes for each index the entry of the highest generation,
stamps all of them with its own generation, and puts them in the place of the end of its log. Only then does it lead:
the log brings the followers in line (`collected_log`), and a majority holds what was collected before any client is
answered.

    candidate ── votes of a majority ──► collecting ── entries of a majority ──► stamps them ──► leading

The stamp is what makes it safe. Once an entry is on a majority under a generation, each later leader collects it from
some server, under that generation or a higher one, and every entry of a higher generation at its place is a copy of it.
An entry that kept the stamp of its first leader could be on a majority, and still lose against an entry of a generation
in between (Raft, figure 8).

*Invariants.* LDR-I1, LDR-I2, LDR-I3: the log with which a server becomes leader reaches every committed entry.

*Tolerates.* Crash and restart at any instant, lost, late, repeated and reordered messages, a minority of servers down.

*Does not tolerate.* A disk that loses an entry or a vote.

*Workloads.* `register`, `transfer` with partitions, kills and lost power.

*Checkers.* The invariants above; linearizability.

*Planted bugs.* `collects-its-own-entries`, `keeps-its-own-entry`, `adopts-without-stamping`.

Sources: Patterns of Distributed Systems ch. 2, "Multiple failures need a Generation Clock"; Liskov and Cowling,
"Viewstamped Replication Revisited" (2012); Lamport, "Paxos Made Simple" (2001) 3.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    ElectionContext,
    Handlers,
)
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.patterns.data_replication.raft_election import (
    PreVoteRequest,
    RaftElection,
    VoteRequest,
)

__all__ = [
    "CollectEntries",
    "CollectableLog",
    "CollectedEntries",
    "CollectingElection",
    "EntriesStampedAnew",
    "stamped",
]


class CollectEntries(msgspec.Struct, frozen=True, tag="collect-entries"):
    """The request of the elected `server_id` of `generation` for all entries after `after_index`."""

    server_id: str
    generation: int
    after_index: int


class CollectedEntries(msgspec.Struct, frozen=True, tag="collected-entries"):
    """The answer of `server_id`, whose generation it carries: its entries after `after_index`."""

    server_id: str
    generation: int
    after_index: int
    entries: list[LogEntry]


class EntriesStampedAnew(msgspec.Struct, frozen=True):
    """Trace: from `first_index` on, this server holds its entries under `generation`; it may not have made them."""

    first_index: int
    generation: int


class CollectableLog(Protocol):
    """The log as a collecting election sees it."""

    @property
    def last_index(self) -> int:
        """The index of the newest entry."""

    @property
    def settled_index(self) -> int:
        """The index up to which entries are known to be committed."""

    def entries(self, start: int, count_max: int) -> list[LogEntry]:
        """Return up to `count_max` entries from index `start` on."""

    def replace_after(self, index: int, entries: list[LogEntry]) -> None:
        """Put `entries` in the place of all entries after `index`, durably."""


class CollectingElection(RaftElection):
    """One server's part in an election whose winner collects the entries of a majority before it leads."""

    def __init__(self, context: ElectionContext, log: CollectableLog, *, pre_vote: bool) -> None:
        super().__init__(context, pre_vote=pre_vote)
        self._entries = log
        self._collecting = False
        self._collected: dict[NodeId, list[LogEntry]] = {}

    def handlers(self) -> Handlers:
        """Return the handlers of votes, and of the messages by which entries are collected."""
        return {
            **super().handlers(),
            CollectEntries: self.handle_collect_entries,
            CollectedEntries: self.handle_collected_entries,
        }

    def _is_up_to_date(self, request: VoteRequest | PreVoteRequest) -> bool:
        """Return True: a leader whose log is short collects what it lacks."""
        return True

    def _begin_count(self) -> None:
        self._collecting = False
        super()._begin_count()

    def _forget_candidacy(self) -> None:
        self._collecting = False
        super()._forget_candidacy()

    def _become_leader(self) -> None:
        """Collect first; each vote beyond the majority comes here, too."""
        if self._collecting:
            return
        self._collecting = True
        self._collected = {self._me: self._entries_after(self._entries.settled_index)}
        request = CollectEntries(self._me, self._clock.generation, self._entries.settled_index)
        for peer in self._peers:
            self._ports.network.send(peer, request)

    def handle_collect_entries(self, source: NodeId, request: CollectEntries) -> None:
        """Enter the generation, if it is higher, and answer with the entries that this server holds."""
        if request.generation > self._clock.generation:
            if self._must_stick():
                return
            self.become_follower(request.generation, None)
        generation = self._clock.generation
        # For one whose generation is over, the generation is the answer.
        entries = self._entries_after(request.after_index) if request.generation == generation else []
        self._ports.network.send(source, CollectedEntries(self._me, generation, request.after_index, entries))

    def handle_collected_entries(self, source: NodeId, answer: CollectedEntries) -> None:
        """Keep the entries of one server; with those of a majority this server leads."""
        if answer.generation > self._clock.generation:
            self.become_follower(answer.generation, None)
        elif self._collecting and answer.generation == self._clock.generation:
            self._collected[source] = answer.entries
            if len(self._collected) >= majority(len(self._members)):
                self._lead_with_collected()

    def _lead_with_collected(self) -> None:
        self._collecting = False
        log, generation, trace = self._entries, self._clock.generation, self._ports.trace
        chosen = self._chosen()
        if chosen:
            trace.emit(EntriesStampedAnew(log.settled_index + 1, generation))
            trace.sometimes("entries-stamped-anew")
            log.replace_after(log.settled_index, [self._stamped(entry) for entry in chosen])
        super()._become_leader()

    def _chosen(self) -> list[LogEntry]:
        """Return the entry of the highest generation for each index that any server of the majority has."""
        chosen: dict[int, LogEntry] = {}
        for entries in self._to_choose_from():
            for entry in entries:
                present = chosen.get(entry.index)
                if present is None:
                    chosen[entry.index] = entry
                elif present.generation != entry.generation:
                    self._ports.trace.sometimes("collected-entries-differed")
                    if self._is_newer(entry, present):
                        chosen[entry.index] = entry
        return [chosen[index] for index in sorted(chosen)]

    def _entries_after(self, index: int) -> list[LogEntry]:
        return self._entries.entries(index + 1, self._entries.last_index - index)

    # Each step below is a method of its own, so that a planted bug can override it.

    def _to_choose_from(self) -> list[list[LogEntry]]:
        """Return the entries of each server of the majority, this one's first."""
        return list(self._collected.values())

    def _is_newer(self, entry: LogEntry, present: LogEntry) -> bool:
        """Return whether `entry` goes before `present` at their place of the log."""
        return entry.generation > present.generation

    def _stamped(self, entry: LogEntry) -> LogEntry:
        """Return the entry as this leader stores and replicates it."""
        return stamped(entry, self._clock.generation)


def stamped(entry: LogEntry, generation: int) -> LogEntry:
    """Return `entry` under another generation."""
    return LogEntry(entry.index, generation, entry.kind, entry.data, entry.time_us)
