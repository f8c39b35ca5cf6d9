"""Reads at a server that does not lead, and its help for others when it leads.

The patterns do the work: `WaitingReads` for stamps, `LeaderContact` for freshness, `ReadIndexReads` on the leader's
side of a question. This joins them to one node, in the mode that the options name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.follower_reads import (
    FollowerReadServed,
    FollowerReadTimedOut,
    LeaderContact,
    WaitingReads,
    checksum_of,
)
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderReads, Read, ReadIndexReads
from faultline.systems_under_test.patterns.data_replication.versioned_value import VersionCompacted
from faultline.systems_under_test.reference.follower_reads.messages import (
    NOT_HEARD,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    TOO_STALE,
    WAIT_TIMEOUT,
    FollowerRead,
    ReadIndexRequest,
    ReadIndexResponse,
)
from faultline.systems_under_test.reference.follower_reads.settings import FollowerReadSettings
from faultline.systems_under_test.reference.follower_reads.stamped_store import StampedStore
from faultline.systems_under_test.reference.raft.extension import ExtendedServer
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.key_commands import VERSION_COMPACTED

__all__ = ["FollowerReadService", "PendingRead"]

_ID_BITS = 24


class PendingRead(NamedTuple):
    """A read on its way: who asked, and for what."""

    source: NodeId
    request: FollowerRead


class FollowerReadService:
    """The follower's side of reads, and the leader's side of questions about freshness."""

    waiting_reads: type[WaitingReads[PendingRead]] = WaitingReads
    leader_contact: type[LeaderContact] = LeaderContact

    def __init__(self, server: ExtendedServer, store: StampedStore, settings: FollowerReadSettings) -> None:
        self._server = server
        self._log = server.log
        self._entries = server.wal
        self._store = store
        self._settings = settings
        self._ports = ports = server.ports
        timeout_us = settings.follower_wait_timeout_us
        self.waiting = self.waiting_reads(ports.timers, timeout_us, self._serve, self._give_up)
        self.confirmed: WaitingReads[PendingRead] = WaitingReads(ports.timers, timeout_us, self._serve, self._give_up)
        self.contact = self.leader_contact(ports.clock, settings.follower_silence_us, _first_id(ports))
        self._questions: dict[int, PendingRead] = {}
        self.index_reads: LeaderReads = ReadIndexReads(server.log, self._tell_read_index, ports.trace)

    # Reads.

    def handle_follower_read(self, source: NodeId, request: FollowerRead) -> None:
        """Answer a read now, later, or with the reason why not."""
        read = PendingRead(source, request)
        settings = self._settings
        if not self.contact.may_serve(settings.bound_us):
            self._refuse(read, TOO_STALE if self.contact.may_serve() else NOT_HEARD)
        elif settings.mode == "read-index":
            self._ask_for_index(read)
        elif settings.mode == "no-wait" and request.stamp > self.waiting.version:
            known = request.stamp <= self._entries.last_index
            self._refuse(read, OFFSET_NOT_AVAILABLE if known else OFFSET_OUT_OF_RANGE)
        elif not self.waiting.read(request.stamp, read):
            self._ports.trace.sometimes("follower-read-waited")

    def _serve(self, read: PendingRead) -> None:
        request = read.request
        try:
            value, version, log_index = self._look_up(request)
        except VersionCompacted:
            self._refuse(read, VERSION_COMPACTED)
            return
        contact = self.contact
        self._ports.trace.sometimes("follower-read-served")
        self._ports.trace.emit(
            FollowerReadServed(
                key=request.key,
                version=version,
                checksum=checksum_of(value),
                log_index=log_index,
                silence_us=contact.silence_us(),
                silence_us_max=contact.silence_us_max,
                bound_us=self._settings.bound_us,
                closed=self.closed_time,
            )
        )
        self._ports.network.send_ahead(read.source, ClientResponse(request.request_number, None, value, version))

    @property
    def closed_time(self) -> int:
        """The newest time that is closed here, where answers are given at such times; else 0."""
        return 0

    def _give_up(self, stamp: int, read: PendingRead) -> None:
        self._ports.trace.emit(FollowerReadTimedOut(stamp, self._store.version))
        self._refuse(read, WAIT_TIMEOUT)

    def _refuse(self, read: PendingRead, error: str) -> None:
        self._ports.trace.sometimes(f"follower-read-refused-{error}")
        self._ports.network.send_ahead(read.source, ClientResponse(read.request.request_number, error))

    # The steps a planted bug may change.

    def _look_up(self, request: FollowerRead) -> tuple[Any, int, int]:
        """Return the value, the version of its state, and the index up to which the log was applied."""
        store = self._store
        if self._settings.mode == "at-stamp" and request.stamp:
            return store.current.at(request.key, request.stamp), request.stamp, self._log.last_applied
        return store.current.get(request.key), store.version, self._log.last_applied

    def _ask_for_index(self, read: PendingRead) -> None:
        leader = self._server.leader_id
        if leader is None:
            self._refuse(read, NOT_HEARD)
            return
        question_id = self.contact.asking()
        self._questions[question_id] = read
        self._ports.timers.after(self._settings.follower_wait_timeout_us, lambda: self._question_expired(question_id))
        self._ports.network.send_ahead(NodeId(leader), ReadIndexRequest(question_id))

    def _question_expired(self, question_id: int) -> None:
        read = self._questions.pop(question_id, None)
        if read is not None:
            self._refuse(read, WAIT_TIMEOUT)

    # Freshness.

    def applied(self) -> None:
        """Note that more of the log was applied, or all of it again from a snapshot."""
        self.contact.applied(self._log.last_applied)
        self.confirmed.applied(self._log.last_applied)
        self.waiting.applied(self._store.version)

    def ask_how_fresh(self) -> None:
        """Ask the leader what is committed, if that needs to be known."""
        leader = self._server.leader_id
        if leader is None or leader == self._ports.node_id:
            return
        if self._settings.mode == "bounded" or not self.contact.is_caught_up():
            self._ports.network.send_ahead(NodeId(leader), ReadIndexRequest(self.contact.asking()))

    def handle_read_index_response(self, _: NodeId, response: ReadIndexResponse) -> None:
        """Take the leader's answer: the read that asked for it waits until that index is applied."""
        self.contact.answered(response.correlation_id, response.index, self._log.last_applied)
        read = self._questions.pop(response.correlation_id, None)
        if read is not None:
            self.confirmed.read(response.index, read)

    # Leading.

    def handle_read_index_request(self, source: NodeId, request: ReadIndexRequest) -> None:
        """Answer as the leader, once it is certain that this server led when it was asked."""
        self.index_reads.read(Read(source, request.correlation_id, ""))

    def _tell_read_index(self, read: Read) -> None:
        self._ports.network.send_ahead(
            read.source, ReadIndexResponse(read.request_number, self._log.high_water_mark.value)
        )


def _first_id(ports: Ports) -> int:
    """Return the first id: another one at every start, so that late answers from before a restart are not mistaken."""
    return ports.random.uniform_us("question-ids", 0, 1 << _ID_BITS) << _ID_BITS
