"""Followed log: the part of the replicated log that every server has. It stores a leader's entries and executes them.

*Problem.* A follower must end with exactly the leader's log, whatever entries it had before and whatever messages
arrive late or twice. It may execute only entries that will never be removed.

*Idea.* A request says which entry comes before those it brings. If this log has that entry, of that generation, the
logs are equal up to it. Entries that the log has are skipped, the first one of another generation is removed with all
that follow it, and the rest is appended. The acknowledgement and the mark go only as far as *this request* verified the
log, because an old suffix may follow there. Entries are executed in order as the mark passes them.

*Invariants.* LOG-I1, LOG-I2, LOG-I5; HWM-I1, HWM-I5.

*Tolerates.* Short, old, repeated and reordered requests: no entry is removed because a request lacks it.

*Does not tolerate.* Requests of an old generation: the caller compares generations first.

*Workloads.* `register`, `append`. *Checkers.* The invariants, linearizability, list-append.

*Planted bugs.* Those of the replicated log.

Sources: Patterns of Distributed Systems ch. 9 and 12; Ongaro and Ousterhout (2014) figure 2, "AppendEntries: receiver".
"""

from __future__ import annotations

from typing import Protocol

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.high_water_mark import HighWaterMark
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    EntriesTruncated,
    HighWaterMarkAdvanced,
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import COMPACTED, LogEntry, WriteAheadLog

__all__ = ["FollowedLog", "LogListener"]


class LogListener(Protocol):
    """The state machine behind the log."""

    def apply(self, entry: LogEntry) -> None:
        """Execute a committed entry; called in the order of the log, once per entry and life of the server."""


class FollowedLog:
    """One server's log, its mark, and how far it was executed."""

    def __init__(self, ports: Ports, log: WriteAheadLog, clock: GenerationClock, listener: LogListener) -> None:
        self.high_water_mark = HighWaterMark()
        self.last_applied = 0
        self._ports = ports
        self._me = ports.node_id
        self._log = log
        self._clock = clock
        self._listener = listener

    @property
    def generation(self) -> int:
        """The present generation of this server."""
        return self._clock.generation

    def handle_replication_request(self, source: NodeId, request: ReplicationRequest) -> None:
        """Append the entries of this generation's leader, if they continue this log, and acknowledge the verified
        ones.
        """
        if not self._continues(request):
            self.refuse(source, request, self._last_sure_index(request.prev_log_index))
            return
        if request.entries and self._append_missing(request.entries):
            self._flush_batch(len(request.entries))
        verified = self._verified_index(request)
        # Not beyond the verified index: an entry behind it may be an old one that the leader will replace.
        self._advance_to(self._mark_to_follow(request.high_water_mark, verified), leading=False)
        self._ports.network.send(
            source,
            ReplicationResponse(
                self._me, self._clock.generation, request.correlation_id, request.sent_us, True, verified
            ),
        )

    def refuse(self, source: NodeId, request: ReplicationRequest, try_after_index: int = 0) -> None:
        """Answer that the request failed: it is of an old generation, or does not continue this log."""
        self._ports.network.send(
            source,
            ReplicationResponse(
                self._me, self._clock.generation, request.correlation_id, request.sent_us, False, try_after_index
            ),
        )

    def _last_sure_index(self, prev: int) -> int:
        """Return the index after which a leader should try again.

        It is the end of a short log, or the end of the committed part of one that conflicts.
        """
        last_index = self._log.last_index
        return last_index if last_index < prev else self.high_water_mark.value

    def _append_missing(self, entries: list[LogEntry]) -> bool:
        log = self._log
        changed = False
        for entry in entries:
            present = log.generation_at(entry.index)
            # Entries that are present stay: a late, short request must not remove the entries of a newer one (LOG-M4).
            if present == entry.generation or present == COMPACTED:
                continue
            if present >= 0 and not self._truncate(entry.index):
                continue
            log.append(entry)
            changed = True
        return changed

    def _truncate(self, index: int) -> bool:
        """Cut the conflicting entry at `index` off, with all that follow (LOG-R6); return True when that was done."""
        trace = self._ports.trace
        trace.emit(EntriesTruncated(index, self._log.last_index, self.high_water_mark.value))
        trace.sometimes("entries-truncated")
        self._log.truncate_from(index)
        return True

    def start_from(self, index: int) -> None:
        """Continue after a snapshot that replaced the state: all entries up to `index` are committed and applied."""
        self.high_water_mark.advance_to(index)
        self.last_applied = index

    def _advance_to(self, index: int, *, leading: bool) -> None:
        if index <= self.high_water_mark.value or not self.high_water_mark.advance_to(index):
            return
        entry_generation = self._log.generation_at(index)
        self._ports.trace.emit(HighWaterMarkAdvanced(self._clock.generation, index, entry_generation, leading))
        self._apply_up_to(index)

    # Each step below is a method of its own, so that a planted bug can override it.

    def _flush(self) -> None:
        """Make the log durable before anything that is sent from now on."""
        self._log.flush()

    def _continues(self, request: ReplicationRequest) -> bool:
        """Return whether this log holds the entry before the ones that were sent; a log that ends earlier does not
        (LOG-R5).

        An entry that was discarded here was committed, so it is the same in the log of every later leader.
        """
        return self._log.generation_at(request.prev_log_index) in (request.prev_log_generation, COMPACTED)

    def _verified_index(self, request: ReplicationRequest) -> int:
        """Return the last index at which this log is known to be the leader's; behind it an old suffix may stand
        (LOG-R7).
        """
        return request.prev_log_index + len(request.entries)

    def _mark_to_follow(self, leader_mark: int, verified: int) -> int:
        return leader_mark if leader_mark < verified else verified

    def _apply_up_to(self, index: int) -> None:
        """Execute the entries that are committed and not yet executed, in the order of the log."""
        while self.last_applied < index:
            self.last_applied += 1
            self._listener.apply(self._log.entry(self.last_applied))

    def _flush_batch(self, entries: int) -> None:
        """Flush a batch: all of its `entries` must be durable before any is acknowledged (RB-M10)."""
        self._flush()
