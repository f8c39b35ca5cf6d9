"""Reads that bypass the log: three ways for a leader to answer a read, of which two are linearizable.

*Problem.* A leader that was deposed does not know it. If it answers reads from its own state, it may show a value that
the new leader has already replaced. A read through the log is safe, but costs a disk write on a majority.

*Idea.* `ReadIndexReads`: note the high-water mark when the read arrives, ask a majority whether they still follow (a
round of heartbeats *sent after* the arrival), then answer. `LeaderLeaseReads`: followers promise not to vote for any
server for one election timeout after they heard the leader. Within a shorter time, the lease, no other server can lead,
and the leader answers at once. The lease counts from the moment the acknowledged request was *sent*, by the monotonic
clock. `LocalReads` answers at once and promises nothing.

A new leader may not know yet which entries its predecessor committed, so all reads wait until its own no-op is applied
(LOG-R15).

*Invariants.* LOG-I6 linearizable client history (index and lease). LOG-I7 no lease read after a later leader has
committed. LOG-R15 no read before the leader's own no-op is applied.

*Tolerates.* Deposed, paused and isolated leaders. Index reads tolerate any clocks. Lease reads tolerate any step of the
wall clock, and drift of the monotonic clocks as long as lease / (1 - drift) stays below election timeout / (1 + drift):
±11 % for 200 and 250 ms.

*Does not tolerate.* Larger drift, for lease reads, which assume that it does not occur. `LocalReads` tolerates nothing.

*Workloads.* `register`.

*Checkers.* Linearizability; LOG-I7, LOG-R15.

*Planted bugs.* `stale-read` (LOG-M11) answers without asking; `serve-before-no-op` (LOG-M10) does not wait for the
no-op; `wall-clock-lease`, `lease-too-long` and `lease-dated-at-arrival` (LOG-M12) measure the lease wrongly;
`no-step-down` (LOG-M13) answers without a lease.

Sources: Patterns of Distributed Systems ch. 9, "Bypassing the log"; Ongaro's thesis 6.4 and 6.4.1; etcd's ReadIndex.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from faultline.harness.world.ports import NodeId, Trace
from faultline.systems_under_test.patterns.data_replication.high_water_mark import HighWaterMark

__all__ = [
    "IndexReadServed",
    "LeaderLeaseReads",
    "LeaderReads",
    "LeaseReadServed",
    "LedLog",
    "LocalReads",
    "Read",
    "ReadIndexReads",
    "Serve",
]


class IndexReadServed(msgspec.Struct, frozen=True):
    """Trace: this server answered a read after a majority had confirmed its leadership of `generation`."""

    generation: int


class LeaseReadServed(msgspec.Struct, frozen=True):
    """Trace: this server answered a read on the strength of its lease in `generation`."""

    generation: int


class Read(NamedTuple):
    """A read that waits: the client, the number of its request, and the key."""

    source: NodeId
    request_number: int
    key: str


Serve = Callable[[Read], None]


class LedLog(Protocol):
    """The replicated log as a leader's reads see it: the last applied entry, and the followers' confirmations."""

    last_applied: int
    high_water_mark: HighWaterMark

    @property
    def followers(self) -> Mapping[NodeId, Any]:
        """The followers of this leader; none at a server that is alone."""

    @property
    def generation(self) -> int:
        """The present generation of this server."""

    @property
    def next_correlation_id(self) -> int:
        """The number of the next request: an answer with this number or a higher one is to one sent from now on."""

    def send_heartbeats(self) -> None:
        """Ask every follower to confirm this leader."""

    def quorum_acknowledged_id(self) -> int:
        """Return the highest request number such that a majority answered it or a later one."""

    def quorum_contact_us(self, own_us: int) -> int | None:
        """Return when the requests were sent that a majority answered; None when no majority has."""

    def stamp_us(self) -> int:
        """Return the time that dates requests, and so the leader's lease."""


class LeaderReads(Protocol):
    """The way in which a leader answers reads."""

    def start_leading(self, no_op_index: int) -> None:
        """Begin a leadership; no read may be answered before the entry at `no_op_index` is applied."""

    def read(self, read: Read) -> None:
        """Answer `read` now or later."""

    def progress(self) -> None:
        """Answer the reads that can be answered now that followers have answered or entries were applied."""

    def stop_leading(self) -> list[Read]:
        """End the leadership, and return the reads that can no longer be answered."""


class LocalReads:
    """Reads that are answered from this server's own state at once: fast, and possibly stale."""

    def __init__(self, serve: Serve) -> None:
        self.read = serve

    def start_leading(self, no_op_index: int) -> None:
        """Do nothing: reads do not wait."""

    def progress(self) -> None:
        """Do nothing: no read waits."""

    def stop_leading(self) -> list[Read]:
        """Return no reads: none waits."""
        return []


class ReadIndexReads:
    """Reads that are answered once a majority has answered a request that was sent after the read arrived."""

    def __init__(self, log: LedLog, serve: Serve, trace: Trace) -> None:
        self._log = log
        self._serve = serve
        self._trace = trace
        self._no_op_index = 0
        self._waiting: deque[tuple[int, int, Read]] = deque()

    def start_leading(self, no_op_index: int) -> None:
        self._no_op_index = no_op_index

    def read(self, read: Read) -> None:
        """Note the committed index, and start a round of heartbeats."""
        log = self._log
        # The no-op too: before it is committed, entries of the predecessor may be committed that this mark does not
        # know.
        read_index = max(log.high_water_mark.value, self._no_op_index)
        self._waiting.append((read_index, log.next_correlation_id, read))
        log.send_heartbeats()
        if not log.followers:
            self.progress()

    def progress(self) -> None:
        """Answer reads in order: both conditions of a later read are at least those of an earlier one."""
        waiting = self._waiting
        if not waiting:
            return
        log = self._log
        acknowledged_id = log.quorum_acknowledged_id()
        while waiting and waiting[0][0] <= log.last_applied and waiting[0][1] <= acknowledged_id:
            self._trace.emit(IndexReadServed(log.generation))
            self._serve(waiting.popleft()[2])

    def stop_leading(self) -> list[Read]:
        reads = [read for _, _, read in self._waiting]
        self._waiting.clear()
        return reads


class LeaderLeaseReads:
    """Reads that are answered at once while the lease lasts; without one the leader steps down (LOG-R22)."""

    def __init__(
        self, log: LedLog, serve: Serve, step_down: Callable[[Read], None], trace: Trace, lease_us: int
    ) -> None:
        self._log = log
        self._serve = serve
        self._step_down = step_down
        self._trace = trace
        self._lease_us = lease_us
        self._no_op_index = 0
        self._waiting: list[Read] = []

    def start_leading(self, no_op_index: int) -> None:
        self._no_op_index = no_op_index

    def read(self, read: Read) -> None:
        """Answer at once, or wait for the no-op, or give up the leadership."""
        if self._log.last_applied < self._no_op_index:
            self._waiting.append(read)
        elif self._holds_lease():
            self._trace.emit(LeaseReadServed(self._log.generation))
            self._serve(read)
        else:
            self._trace.sometimes("lease-expired-read-refused")
            self._step_down(read)

    def progress(self) -> None:
        """Answer the waiting reads if the no-op was applied."""
        if self._waiting and self._log.last_applied >= self._no_op_index:
            for read in self.stop_leading():
                self.read(read)

    def stop_leading(self) -> list[Read]:
        reads, self._waiting = self._waiting, []
        return reads

    def _holds_lease(self) -> bool:
        now_us = self._log.stamp_us()
        contact_us = self._log.quorum_contact_us(now_us)
        return contact_us is not None and now_us - contact_us < self._lease_us
