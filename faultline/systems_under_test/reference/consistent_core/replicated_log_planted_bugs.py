"""The planted bugs of the replicated log, of its high-water mark and of the reads that bypass it.

Each overrides one of the steps that `replicated_log` and `leader_reads` keep in methods of their own. Those of the log
are in the pushed and in the pulled log alike.
They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.follower_handler import FollowerHandler
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderLeaseReads, Read, ReadIndexReads
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    RequestCallback,
    RequestWaitingList,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogEntry
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    ClientResponse,
    LoggedCommand,
)
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

_LATE_US = 100_000
_COMMANDS: msgspec.msgpack.Decoder[LoggedCommand] = msgspec.msgpack.Decoder(LoggedCommand)

_LOGS = ("replicated_log", "pulled_log")
_DIVERGENCE = ("LOG-I1", "LOG-I2", "LDR-I3", "GEN-I2", "linearizability")

BUGS = PlantedBugs("consistent-core", CoreParts, pattern="replicated-log", campaign="leadership")
_LEASES = BUGS.group(caught_by=("LOG-I7", "linearizability"), options={"read_mode": "leader-lease"})
_MARK = BUGS.group(pattern="high-water-mark")


@BUGS.plant("no-previous-check", "LOG-M2", part=_LOGS, caught_by=_DIVERGENCE)
class _NoPreviousCheck(ReplicatedLog):
    """A follower appends what it is sent without looking at the entry before.

    Shows as: after a leader change a log has holes, and servers execute different entries.
    """

    def _continues(self, request: ReplicationRequest) -> bool:
        return True

    def _append_missing(self, entries: list[LogEntry]) -> bool:
        log = self._log
        for entry in entries:
            if log.generation_at(entry.index) == entry.generation:
                continue
            if entry.index <= log.last_index:
                self._truncate(entry.index)
            log.append(msgspec.structs.replace(entry, index=log.last_index + 1))
        return True

    def _mark_to_follow(self, leader_mark: int, verified: int) -> int:
        return min(leader_mark, self._log.last_index)


@BUGS.plant("previous-index-only", "LOG-M3", part=_LOGS, caught_by=_DIVERGENCE)
class _PreviousIndexOnly(ReplicatedLog):
    """A follower checks that it has an entry before the ones it is sent, but not of which generation.

    Shows as: entries of the new leader follow an old one that the leader never had.
    """

    def _continues(self, request: ReplicationRequest) -> bool:
        return request.prev_log_index <= self._log.last_index


@BUGS.plant("truncate-to-request", "LOG-M4", part=_LOGS, caught_by=("HWM-I5", *_DIVERGENCE))
class _TruncateToRequest(ReplicatedLog):
    """A follower takes a request for the end of the log and cuts off what follows.

    Shows as: a late or short request removes acknowledged, even committed entries.
    """

    def _verified_index(self, request: ReplicationRequest) -> int:
        verified = super()._verified_index(request)
        if self._log.last_index > verified:
            self._truncate(verified + 1)
            self._flush()
        return verified


@BUGS.plant("acknowledge-last-index", "LOG-M6", part=_LOGS, caught_by=("HWM-I5", "HWM-I2", *_DIVERGENCE))
class _AcknowledgeLastIndex(ReplicatedLog):
    """A follower acknowledges the end of its log instead of what the request verified.

    Shows as: the leader counts a stale suffix as copies of its own entries and commits too early.
    """

    _verified = 0

    def _verified_index(self, request: ReplicationRequest) -> int:
        self._verified = super()._verified_index(request)
        return self._log.last_index

    def _mark_to_follow(self, leader_mark: int, verified: int) -> int:
        return min(leader_mark, self._verified)


@BUGS.plant("unbounded-mark", "LOG-M7", part=_LOGS, caught_by=("HWM-I5", *_DIVERGENCE))
class _UnboundedMark(ReplicatedLog):
    """A follower applies up to the leader's mark, also entries that were never verified.

    Shows as: a follower that comes back executes its own stale suffix.
    """

    def _mark_to_follow(self, leader_mark: int, verified: int) -> int:
        return min(leader_mark, self._log.last_index)


@BUGS.plant("serve-before-no-op", "LOG-M10", part="read_index_reads", caught_by=("LOG-R15", "linearizability"))
class _ServeBeforeNoOp(ReadIndexReads):
    """A new leader answers reads before its no-op is committed.

    Shows as: right after a change of leaders a read misses a write that was acknowledged.
    """

    def start_leading(self, no_op_index: int) -> None:
        super().start_leading(0)


@_LEASES.plant("lease-too-long", "LOG-M12", part="lease_reads")
class _LeaseTooLong(LeaderLeaseReads):
    """The leader's lease is longer than the election timeout.

    Shows as: a leader that was cut off answers stale reads after another one was elected.
    """

    def _holds_lease(self) -> bool:
        contact_us = self._log.quorum_contact_us(self._log.stamp_us())
        return contact_us is not None and self._log.stamp_us() - contact_us < 4 * self._lease_us


@_LEASES.plant("lease-dated-at-arrival", "LOG-M12", part=_LOGS)
class _LeaseDatedAtArrival(ReplicatedLog):
    """The lease counts from the arrival of an acknowledgement, not from the sending of what it acknowledges.

    Shows as: a leader that was paused finds old acknowledgements, thinks they are news and answers stale reads.
    """

    def handle_replication_response(self, source: NodeId, response: ReplicationResponse) -> None:
        super().handle_replication_response(source, msgspec.structs.replace(response, sent_us=self.stamp_us()))


@_LEASES.plant("no-step-down", "LOG-M13", part="lease_reads", caught_by=("linearizability",))
class _NoStepDown(LeaderLeaseReads):
    """A leader whose lease is over goes on leading and answering.

    Shows as: two leaders answer reads, one of them from the past.
    """

    def read(self, read: Read) -> None:
        if self._log.last_applied < self._no_op_index or self._holds_lease():
            super().read(read)
        else:
            self._serve(read)


@BUGS.plant("apply-newest-first", "LOG-M14", part=_LOGS, caught_by=("LOG-I5", "GEN-I2", "LOG-I1", "linearizability"))
class _ApplyNewestFirst(ReplicatedLog):
    """Entries that are committed together are executed in the wrong order.

    Shows as: servers that learned of the mark at different times have different values.
    """

    def _apply_up_to(self, index: int) -> None:
        for each in range(index, self.last_applied, -1):
            self._listener.apply(self._log.entry(each))
        self.last_applied = index


@BUGS.plant("next-index-stuck", "LOG-M15", part=_LOGS, caught_by=("LOG-I8", "availability"))
class _NextIndexStuck(ReplicatedLog):
    """A leader that is refused sends the same again instead of going further back.

    Shows as: a follower that lacks entries never gets them.
    """

    def _handle_mismatch(self, follower: FollowerHandler, response: ReplicationResponse) -> None:
        """Send the same again at the next heartbeat, and never go further back."""
        self._go_back(follower)


class _Completed:
    """Tells the client that waited that its request is done, whatever entry came to stand at the index."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback

    def on_response(self, response: ClientResponse) -> None:
        number = self._callback.correlation_id
        self._callback.on_response(msgspec.structs.replace(response, request_number=number))

    def on_error(self, error: Exception) -> None:
        self._callback.on_error(error)


@BUGS.plant(
    "orphaned-callbacks",
    "LOG-M16",
    summary="what waits for an index is not failed at a step-down, and is answered by whatever entry gets there",
    part="waiting_list",
    caught_by=("linearizability",),
)
class _OrphanedCallbacks(RequestWaitingList[int, ClientResponse]):
    """Requests that wait for an index are not failed at a step-down, and any entry that gets there answers them.

    Shows as: a client is told success for an operation that was overwritten.
    """

    def add(self, key: int, callback: RequestCallback[ClientResponse]) -> None:
        self._pending.pop(key, None)
        super().add(key, _Completed(callback))

    def fail_all(self, error: Exception) -> None:
        pass


@_MARK.plant("dirty-read", "HWM-M1", part=_LOGS, caught_by=("linearizability", "LOG-I2"))
class _DirtyRead(ReplicatedLog):
    """A leader executes an operation for readers as soon as it is in its own log.

    Shows as: a read returns a value that vanishes again, or a compare-and-set is decided by one.
    """

    def append_and_replicate(self, kind: int, data: bytes) -> int:
        command = _COMMANDS.decode(data) if data else None
        if isinstance(command, ClientCommand):
            listener: Any = self._listener
            listener.store.execute(command.request_number, command.command)
        return super().append_and_replicate(kind, data)


@_MARK.plant(
    "even-cluster-formula",
    "HWM-M2",
    part=_LOGS,
    campaign="even-clusters",
    caught_by=("HWM-I2", "LOG-I2", "LDR-I3", "linearizability"),
)
class _EvenClusterFormula(ReplicatedLog):
    """The mark is at position n/2 of the sorted indexes, as printed.

    Shows as: with four servers an entry is committed that only two have on their disks.
    """

    def _committed_index(self) -> int:
        match_indexes = sorted(follower.match_index for follower in self.followers.values())
        match_indexes = sorted([*match_indexes, self._log.last_index])
        return match_indexes[len(match_indexes) // 2]


@_MARK.plant(
    "own-copy-counted-twice", "HWM-M3", part=_LOGS, caught_by=("linearizability", "LOG-I2", "HWM-I5", "LDR-I3")
)
class _OwnCopyCountedTwice(ReplicatedLog):
    """The leader counts its own copy once as its log and once among the acknowledgements.

    Shows as: one copy too few is taken for a majority.
    """

    def _committed_index(self) -> int:
        own = self._log.last_index
        match_indexes = [own, own, *(follower.match_index for follower in self.followers.values())]
        return sorted(match_indexes, reverse=True)[majority(len(match_indexes) - 1) - 1]


@_MARK.plant(
    "truncate-to-own-mark",
    "HWM-M4",
    part=_LOGS,
    campaign="durability",
    caught_by=("LDR-I3", "LOG-I2", "HWM-I2", "linearizability"),
)
class _TruncateToOwnMark(ReplicatedLog):
    """A follower of a new leader cuts its log back to its own mark, which lags, and fetches the rest again.

    Shows as: a copy that counted towards a majority is gone when the next leader is elected.
    """

    _following = 0

    def handle_replication_request(self, source: NodeId, request: ReplicationRequest) -> None:
        if request.generation != self._following:
            self._following = request.generation
            if self._log.last_index > self.high_water_mark.value:
                self._truncate(self.high_water_mark.value + 1)
                self._flush()
        super().handle_replication_request(source, request)


@_MARK.plant("mark-moves-back", "HWM-M6", part=_LOGS, caught_by=("HWM-I1", "LOG-I5"))
class _MarkMovesBack(ReplicatedLog):
    """A follower takes over a smaller mark and executes the entries above it again.

    Shows as: entries are executed twice.
    """

    def _advance_to(self, index: int, *, leading: bool) -> None:
        if not leading and index < self.high_water_mark.value:
            self.high_water_mark.value = self.last_applied = index
        super()._advance_to(index, leading=leading)


@_MARK.plant("mark-before-apply", "HWM-M7", part=_LOGS, caught_by=("linearizability",))
class _MarkBeforeApply(ReplicatedLog):
    """Entries count as executed as soon as the mark covers them, up to 100 ms before they are.

    Shows as: reads are answered from a state that lacks acknowledged writes.
    """

    _executed = 0

    def _apply_up_to(self, index: int) -> None:
        self.last_applied = index
        self._ports.timers.after(_LATE_US, self._execute)

    def _execute(self) -> None:
        while self._executed < self.high_water_mark.value:
            self._executed += 1
            self._listener.apply(self._log.entry(self._executed))


@_MARK.plant("follower-applies-everything", "HWM-M8", part=_LOGS, caught_by=("HWM-I3", "LOG-I2", "HWM-I5"))
class _FollowerAppliesEverything(ReplicatedLog):
    """A follower executes all it has verified, whatever the leader's mark.

    Shows as: a follower executes entries that are replaced later.
    """

    def _mark_to_follow(self, leader_mark: int, verified: int) -> int:
        return verified


@_MARK.plant("apply-previous-again", "HWM-M9", part=_LOGS, caught_by=("LOG-I5",))
class _ApplyPreviousAgain(ReplicatedLog):
    """Execution starts at the entry that was executed last.

    Shows as: entries are executed twice.
    """

    def _apply_up_to(self, index: int) -> None:
        self.last_applied = max(0, self.last_applied - 1)
        super()._apply_up_to(index)
