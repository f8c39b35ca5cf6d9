"""Collected log: the replicated log of a leader that has collected entries, and brings its followers in line with it.

*Problem.* The leader of a collecting election stamped entries anew. A follower may hold the same entry under another
generation, so equal stamps no longer say where two logs agree, and cutting a follower's log where they differ would
make it forget entries that it had accepted.

*Idea.* (The synchronisation of Zab and of viewstamped replication.) Committed entries are the same everywhere, whatever
their stamps. So the leader's first request with entries begins where the follower's committed ones end, and carries
everything up to the leader's end in one piece, its no-op included. The follower puts it in the place of its own end in
one step. From then on its log is the leader's, and its newest entry is of the leader's generation, which is how both
know it after a restart. Only then is it sent new entries, in batches, as in the replicated log. An entry counts as
stored by a follower that is in line, so the no-op, and with it what was collected, is on a majority before the leader
answers any client.

*Invariants.* LOG-I1, LOG-I2 up to the stamps that this generation changed; LOG-R14, HWM-I1, HWM-I5.

*Tolerates.* Lost, late, repeated and reordered messages; crashes between any two effects.

*Does not tolerate.* A log that is cleaned or flushed late (`restamped_log`).

*Workloads.* `register`, `transfer` with partitions, kills and lost power. *Checkers.* Linearizability, the invariants.

*Planted bugs.* `serves-before-synchronisation` (LOG-M10 in this style).

One cost: a server that restarts does not know which entries are committed, so the leader sends it the whole log. The
book names this cost as the reason why Raft elects the server with the most recent log instead.

Sources: Patterns of Distributed Systems ch. 2; Junqueira, Reed and Serafini, "Zab" (DSN 2011) IV.B; Liskov and
Cowling, "Viewstamped Replication Revisited" (2012) 4.2.
"""

from __future__ import annotations

from faultline.systems_under_test.patterns.data_replication.collecting_election import EntriesStampedAnew, stamped
from faultline.systems_under_test.patterns.data_replication.follower_handler import FollowerHandler
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    EntriesTruncated,
    ReplicationRequest,
)
from faultline.systems_under_test.patterns.data_replication.restamped_log import RestampedLog

__all__ = ["CollectedLog"]


class CollectedLog(ReplicatedLog):
    """The log as one server takes part in it, beside a collecting election."""

    _log: RestampedLog
    _own_index = 0
    _known_index = 0

    def start_leading(self) -> None:
        """Remember which entry will be the leader's first own one, and which it had not to collect."""
        self._own_index = self._log.last_index + 1
        self._known_index = self.high_water_mark.value
        super().start_leading()

    def _replicate(self, follower: FollowerHandler) -> None:
        if follower.match_index >= self._own_index:
            super()._replicate(follower)
        elif follower.sent_index == follower.next_index - 1 and follower.sent_index < self._log.last_index:
            self._synchronise(follower)

    def _synchronise(self, follower: FollowerHandler) -> None:
        """Send all entries after the follower's committed ones, as far as this is known, in one request."""
        prev = follower.sent_index
        entries = self._log.entries(prev + 1, self._log.last_index - prev)
        # What this leader knew to be committed kept its stamp here. The follower may hold what comes before under
        # a higher one, and generations must not decrease along its log.
        generation, known = self._clock.generation, self._known_index
        entries = [stamped(entry, generation) if entry.index <= known else entry for entry in entries]
        request = self._request(prev, entries, self.stamp_us())
        self._pipeline.sent(follower.id, request.correlation_id, self._ports.clock.monotonic_us())
        follower.sent_index = self._log.last_index
        self._ports.network.send(follower.id, request)

    def _is_in_line(self) -> bool:
        """Return whether this log is that of the leader of the present generation, which gave it its newest entry."""
        return self._log.last_generation == self._clock.generation

    def _continues(self, request: ReplicationRequest) -> bool:
        known = self._log.last_index if self._is_in_line() else self.high_water_mark.value
        return request.prev_log_index <= known

    def _last_sure_index(self, prev: int) -> int:
        return self._log.last_index if self._is_in_line() else self.high_water_mark.value

    def _append_missing(self, entries: list[LogEntry]) -> bool:
        log = self._log
        if self._is_in_line():
            missing = [entry for entry in entries if entry.index > log.last_index]
            for entry in missing:
                log.append(entry)
            return bool(missing)
        self._take_over([entry for entry in entries if entry.index > self.high_water_mark.value])
        return False

    def _take_over(self, entries: list[LogEntry]) -> None:
        mark, trace = self.high_water_mark.value, self._ports.trace
        first_dropped = self._first_dropped(entries)
        if first_dropped is not None:
            trace.emit(EntriesTruncated(first_dropped, self._log.last_index, mark))
            trace.sometimes("entries-truncated")
        trace.emit(EntriesStampedAnew(mark + 1, self._clock.generation))
        trace.sometimes("follower-brought-in-line")
        self._log.replace_after(mark, entries)

    def _first_dropped(self, entries: list[LogEntry]) -> int | None:
        """Return the first index at which the leader has something else than this log; None where it has the same."""
        leaders = {entry.index: (entry.kind, entry.data) for entry in entries}
        own = self._log.entries(self.high_water_mark.value + 1, self._log.last_index)
        return next((entry.index for entry in own if leaders.get(entry.index) != (entry.kind, entry.data)), None)

    def _advance_to(self, index: int, *, leading: bool) -> None:
        super()._advance_to(index, leading=leading)
        self._log.settle(self.high_water_mark.value)
