"""Reads that bypass the log: three ways for a leader to answer a read, of which two are linearizable.

*Problem.* A leader that was deposed does not know it. If it answers reads from its own state, it may show a value
that the new leader has replaced already. Sending every read through the log is safe, but makes each read a disk write
on a majority.

*Idea.* `ReadIndexReads`: note the high-water mark when the read arrives, ask a majority whether they still follow (a
round of heartbeats *sent after* the arrival), then answer. `LeaderLeaseReads`: followers promise not to vote for
anybody for one election timeout after they heard the leader; within a shorter time, the lease, nobody else can lead,
and the leader answers at once. The lease counts from the moment the acknowledged request was *sent*, by the monotonic
clock. `LocalReads` answers at once and promises nothing.

A new leader may not know yet what its predecessor committed, so all reads wait until its own no-op is applied
(LOG-R15).

*Invariants.* LOG-I6 linearizable client history (index and lease). LOG-I7 no lease read after a later leader has
committed. LOG-R15 no read before the leader's own no-op is applied.

*Tolerates.* Deposed, paused and cut-off leaders. Index reads: any clocks. Lease reads: any step of the wall clock,
and drift of the monotonic clocks as long as lease / (1 - drift) stays below election timeout / (1 + drift): ±11 % for
200 and 250 ms.

*Does not tolerate.* Larger drift, for lease reads: that is their assumption. `LocalReads` tolerates nothing.

*Workloads.* `register`.

*Checkers.* Linearizability; LOG-I7, LOG-R15.

*Planted bugs.* `stale-read` (LOG-M11) answers without asking; `serve-before-no-op` (LOG-M10) does not wait for the
no-op; `wall-clock-lease`, `lease-too-long` and `lease-dated-at-arrival` (LOG-M12) measure the lease wrongly;
`no-step-down` (LOG-M13) answers without one.

Sources: Patterns of Distributed Systems ch. 9, "Bypassing the log"; Ongaro's thesis 6.4 and 6.4.1; etcd's ReadIndex.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from faultline.harness.world.ports import NodeId, Trace
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog

__all__ = [
    "IndexReadServed",
    "LeaderLeaseReads",
    "LeaderReads",
    "LeaseReadServed",
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
    """A read that waits: who asked, under which number, for which key."""

    source: NodeId
    request_number: int
    key: str


Serve = Callable[[Read], None]


class LeaderReads(Protocol):
    """How a leader answers reads."""

    def start_leading(self, no_op_index: int) -> None:
        """A leadership begins; nothing may be answered before the entry at `no_op_index` is applied."""

    def read(self, read: Read) -> None:
        """Answer `read` now or later."""

    def progress(self) -> None:
        """Followers have answered or entries were applied: answer what can be answered."""

    def stop_leading(self) -> list[Read]:
        """The leadership ended; the reads that can no longer be answered."""


class LocalReads:
    """Answers from this server's own state at once: fast, and possibly stale."""

    def __init__(self, serve: Serve) -> None:
        self.read = serve

    def start_leading(self, no_op_index: int) -> None:
        """Nothing to wait for."""

    def progress(self) -> None:
        """Nothing waits."""

    def stop_leading(self) -> list[Read]:
        """Nothing waits."""
        return []


class ReadIndexReads:
    """Answers once a majority has answered a request that was sent after the read arrived."""

    def __init__(self, log: ReplicatedLog, serve: Serve, trace: Trace) -> None:
        self._log = log
        self._serve = serve
        self._trace = trace
        self._no_op_index = 0
        self._waiting: deque[tuple[int, int, Read]] = deque()

    def start_leading(self, no_op_index: int) -> None:
        """See `LeaderReads`."""
        self._no_op_index = no_op_index

    def read(self, read: Read) -> None:
        """Note what is committed now, and start a round of heartbeats."""
        log = self._log
        read_index = max(log.high_water_mark.value, self._no_op_index)
        self._waiting.append((read_index, log.next_correlation_id, read))
        log.send_heartbeats()
        if not log.followers:
            self.progress()

    def progress(self) -> None:
        """Both conditions grow with arrival, so the reads are answered in order."""
        waiting = self._waiting
        if not waiting:
            return
        log = self._log
        acknowledged_id = log.quorum_acknowledged_id()
        while waiting and waiting[0][0] <= log.last_applied and waiting[0][1] <= acknowledged_id:
            self._trace.emit(IndexReadServed(log.generation))
            self._serve(waiting.popleft()[2])

    def stop_leading(self) -> list[Read]:
        """See `LeaderReads`."""
        reads = [read for _, _, read in self._waiting]
        self._waiting.clear()
        return reads


class LeaderLeaseReads:
    """Answers at once while the lease lasts; without one the leader steps down (LOG-R22)."""

    def __init__(
        self, log: ReplicatedLog, serve: Serve, step_down: Callable[[Read], None], trace: Trace, lease_us: int
    ) -> None:
        self._log = log
        self._serve = serve
        self._step_down = step_down
        self._trace = trace
        self._lease_us = lease_us
        self._no_op_index = 0
        self._waiting: list[Read] = []

    def start_leading(self, no_op_index: int) -> None:
        """See `LeaderReads`."""
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
        """The no-op may have been applied."""
        if self._waiting and self._log.last_applied >= self._no_op_index:
            for read in self.stop_leading():
                self.read(read)

    def stop_leading(self) -> list[Read]:
        """See `LeaderReads`."""
        reads, self._waiting = self._waiting, []
        return reads

    def _holds_lease(self) -> bool:
        now_us = self._log.stamp_us()
        contact_us = self._log.quorum_contact_us(now_us)
        return contact_us is not None and now_us - contact_us < self._lease_us
