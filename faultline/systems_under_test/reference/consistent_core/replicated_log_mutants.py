"""The planted bugs of the replicated log, of its high-water mark and of the reads that bypass it.

Each overrides one of the steps that `replicated_log` and `leader_reads` keep in methods of their own, in the pushed and
in the pulled log alike. What each is about, and how it shows, stands in `replicated_log_mutant_records`. They break
consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable
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
from faultline.systems_under_test.reference.shared.planted_bugs import layered, together

__all__ = ["CHANGES", "in_the_log"]

_LATE_US = 100_000
_COMMANDS: msgspec.msgpack.Decoder[LoggedCommand] = msgspec.msgpack.Decoder(LoggedCommand)


def in_the_log(change: type[ReplicatedLog]) -> Callable[[CoreParts], CoreParts]:
    """The bug in both kinds of log, the pushed and the pulled one."""
    return together(layered("replicated_log", change), layered("pulled_log", change))


# -- what a follower takes --------------------------------------------------------------------------------------------


class _NoPreviousCheck(ReplicatedLog):
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


class _PreviousIndexOnly(ReplicatedLog):
    def _continues(self, request: ReplicationRequest) -> bool:
        return request.prev_log_index <= self._log.last_index


class _TruncateToRequest(ReplicatedLog):
    def _verified_index(self, request: ReplicationRequest) -> int:
        verified = super()._verified_index(request)
        if self._log.last_index > verified:
            self._truncate(verified + 1)
            self._flush()
        return verified


class _AcknowledgeLastIndex(ReplicatedLog):
    _verified = 0

    def _verified_index(self, request: ReplicationRequest) -> int:
        self._verified = super()._verified_index(request)
        return self._log.last_index

    def _mark_to_follow(self, leader_mark: int, verified: int) -> int:
        return min(leader_mark, self._verified)


class _UnboundedMark(ReplicatedLog):
    def _mark_to_follow(self, leader_mark: int, verified: int) -> int:
        return min(leader_mark, self._log.last_index)


class _FollowerAppliesEverything(ReplicatedLog):
    def _mark_to_follow(self, leader_mark: int, verified: int) -> int:
        return verified


class _TruncateToOwnMark(ReplicatedLog):
    _following = 0

    def handle_replication_request(self, source: NodeId, request: ReplicationRequest) -> None:
        if request.generation != self._following:
            self._following = request.generation
            if self._log.last_index > self.high_water_mark.value:
                self._truncate(self.high_water_mark.value + 1)
                self._flush()
        super().handle_replication_request(source, request)


# -- what is executed -------------------------------------------------------------------------------------------------


class _MarkMovesBack(ReplicatedLog):
    def _advance_to(self, index: int, *, leading: bool) -> None:
        if not leading and index < self.high_water_mark.value:
            self.high_water_mark.value = self.last_applied = index
        super()._advance_to(index, leading=leading)


class _ApplyNewestFirst(ReplicatedLog):
    def _apply_up_to(self, index: int) -> None:
        for each in range(index, self.last_applied, -1):
            self._listener.apply(self._log.entry(each))
        self.last_applied = index


class _ApplyPreviousAgain(ReplicatedLog):
    def _apply_up_to(self, index: int) -> None:
        self.last_applied = max(0, self.last_applied - 1)
        super()._apply_up_to(index)


class _MarkBeforeApply(ReplicatedLog):
    _executed = 0

    def _apply_up_to(self, index: int) -> None:
        self.last_applied = index
        self._ports.timers.after(_LATE_US, self._execute)

    def _execute(self) -> None:
        while self._executed < self.high_water_mark.value:
            self._executed += 1
            self._listener.apply(self._log.entry(self._executed))


class _DirtyRead(ReplicatedLog):
    def append_and_replicate(self, kind: int, data: bytes) -> int:
        command = _COMMANDS.decode(data) if data else None
        if isinstance(command, ClientCommand):
            listener: Any = self._listener
            listener.store.execute(command.request_number, command.command)
        return super().append_and_replicate(kind, data)


# -- what a leader counts ---------------------------------------------------------------------------------------------


class _OwnCopyCountedTwice(ReplicatedLog):
    def _committed_index(self) -> int:
        own = self._log.last_index
        match_indexes = [own, own, *(follower.match_index for follower in self.followers.values())]
        return sorted(match_indexes, reverse=True)[majority(len(match_indexes) - 1) - 1]


class _EvenClusterFormula(ReplicatedLog):
    def _committed_index(self) -> int:
        match_indexes = sorted(follower.match_index for follower in self.followers.values())
        match_indexes = sorted([*match_indexes, self._log.last_index])
        return match_indexes[len(match_indexes) // 2]


class _NextIndexStuck(ReplicatedLog):
    def _handle_mismatch(self, follower: FollowerHandler, response: ReplicationResponse) -> None:
        """The leader sends the same again at the next heartbeat, and never goes further back."""
        self._go_back(follower)


class _LeaseDatedAtArrival(ReplicatedLog):
    def handle_replication_response(self, source: NodeId, response: ReplicationResponse) -> None:
        super().handle_replication_response(source, msgspec.structs.replace(response, sent_us=self.stamp_us()))


# -- what is answered -------------------------------------------------------------------------------------------------


class _ServeBeforeNoOp(ReadIndexReads):
    def start_leading(self, no_op_index: int) -> None:
        super().start_leading(0)


class _LeaseTooLong(LeaderLeaseReads):
    def _holds_lease(self) -> bool:
        contact_us = self._log.quorum_contact_us(self._log.stamp_us())
        return contact_us is not None and self._log.stamp_us() - contact_us < 4 * self._lease_us


class _NoStepDown(LeaderLeaseReads):
    def read(self, read: Read) -> None:
        if self._log.last_applied < self._no_op_index or self._holds_lease():
            super().read(read)
        else:
            self._serve(read)


class _Completed:
    """Tells whoever waited that its own request is done, whatever entry came to stand at the index."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback

    def on_response(self, response: ClientResponse) -> None:
        number = self._callback.correlation_id
        self._callback.on_response(msgspec.structs.replace(response, request_number=number))

    def on_error(self, error: Exception) -> None:
        self._callback.on_error(error)


class _OrphanedCallbacks(RequestWaitingList[int, ClientResponse]):
    def add(self, key: int, callback: RequestCallback[ClientResponse]) -> None:
        self._pending.pop(key, None)
        super().add(key, _Completed(callback))

    def fail_all(self, error: Exception) -> None:
        pass


CHANGES: dict[str, Callable[[CoreParts], CoreParts]] = {
    "no-previous-check": in_the_log(_NoPreviousCheck),
    "previous-index-only": in_the_log(_PreviousIndexOnly),
    "truncate-to-request": in_the_log(_TruncateToRequest),
    "acknowledge-last-index": in_the_log(_AcknowledgeLastIndex),
    "unbounded-mark": in_the_log(_UnboundedMark),
    "follower-applies-everything": in_the_log(_FollowerAppliesEverything),
    "truncate-to-own-mark": in_the_log(_TruncateToOwnMark),
    "mark-moves-back": in_the_log(_MarkMovesBack),
    "apply-newest-first": in_the_log(_ApplyNewestFirst),
    "apply-previous-again": in_the_log(_ApplyPreviousAgain),
    "mark-before-apply": in_the_log(_MarkBeforeApply),
    "dirty-read": in_the_log(_DirtyRead),
    "own-copy-counted-twice": in_the_log(_OwnCopyCountedTwice),
    "even-cluster-formula": in_the_log(_EvenClusterFormula),
    "next-index-stuck": in_the_log(_NextIndexStuck),
    "lease-dated-at-arrival": in_the_log(_LeaseDatedAtArrival),
    "serve-before-no-op": layered("read_index_reads", _ServeBeforeNoOp),
    "lease-too-long": layered("lease_reads", _LeaseTooLong),
    "no-step-down": layered("lease_reads", _NoStepDown),
    "orphaned-callbacks": layered("waiting_list", _OrphanedCallbacks),
}
"""How each bug is put into the parts of a node."""
