"""Reads from followers: an extension of a Raft server whose store stamps what it writes.

A `FollowerReadService` answers what the server is asked while it follows; the extension tells it what happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.heartbeat import HeartBeatScheduler
from faultline.systems_under_test.patterns.data_replication.leader_reads import Read
from faultline.systems_under_test.patterns.data_replication.replication_messages import ReplicationRequest
from faultline.systems_under_test.patterns.data_replication.snapshot_installation import InstallSnapshotRequest
from faultline.systems_under_test.patterns.data_replication.versioned_value import OrderedVersions, VersionedStore
from faultline.systems_under_test.reference.follower_reads.messages import (
    FollowerRead,
    ReadIndexRequest,
    ReadIndexResponse,
    ReplicaPing,
    ReplicaPong,
)
from faultline.systems_under_test.reference.follower_reads.service import FollowerReadService
from faultline.systems_under_test.reference.follower_reads.settings import FollowerReadSettings
from faultline.systems_under_test.reference.follower_reads.stamped_store import (
    StampedStore,
    VersionOf,
    index_is_version,
)
from faultline.systems_under_test.reference.raft.extension import ExtendedServer, ServerExtension
from faultline.systems_under_test.reference.shared.handler_table import Handlers

__all__ = ["FollowerReads", "ReadParts"]

_OF_A_LEADER = frozenset((ReplicationRequest, InstallSnapshotRequest))


def _index_is_version(_: FollowerReads) -> VersionOf:
    return index_is_version


@dataclass(frozen=True, slots=True)
class ReadParts:
    """The classes of the read side, and how a server numbers what entries write."""

    versions: type[VersionedStore[int]] = OrderedVersions
    service: type[FollowerReadService] = FollowerReadService
    version_of: Callable[[FollowerReads], VersionOf] = _index_is_version


class FollowerReads(ServerExtension):
    """The reads of one server while it follows; `store` is its state machine."""

    def __init__(
        self, server: ExtendedServer, settings: FollowerReadSettings, store: StampedStore, region: str, parts: ReadParts
    ) -> None:
        self.log = server.log
        self.wal = server.wal
        self.recovered_index = 0
        self._server = server
        self._settings = settings
        self._region = region
        self._noted_index = 0
        store.version_of = parts.version_of(self)
        self.service = parts.service(server, store, settings)
        self._questions = HeartBeatScheduler(
            server.ports.timers, server.settings.heartbeat_interval_us, self.service.ask_how_fresh
        )

    def handlers(self) -> Handlers:
        """Return the handlers of reads, of questions about freshness and of latency probes."""
        return {
            FollowerRead: self._handle_follower_read,
            ReadIndexRequest: self._handle_read_index_request,
            ReadIndexResponse: self.service.handle_read_index_response,
            ReplicaPing: self._handle_replica_ping,
        }

    def start(self) -> None:
        """Begin to find out how fresh the recovered state is."""
        self.recovered_index = self.wal.last_index
        if self._settings.from_followers and not self._settings.closes_timestamps:
            self._questions.start()

    def arrived(self, message: Any) -> None:
        """Take a message of the present leader as a sign that it lives."""
        if type(message) in _OF_A_LEADER and message.generation >= self.log.generation:
            self.service.contact.heard()

    def handled(self) -> None:
        """Wake the readers that wait for what was applied, whether it came as entries or as a snapshot."""
        if self.log.last_applied != self._noted_index:
            self._noted_index = self.log.last_applied
            self.service.applied()
        if self._server.leads:
            self.service.index_reads.progress()

    def start_leading(self, no_op_index: int) -> None:
        """Answer questions from now on; reads that still wait need not hear of another leader."""
        self.service.contact.heard()
        self.service.index_reads.start_leading(no_op_index)

    def stop_leading(self) -> None:
        """Drop the questions; their senders ask again."""
        self.service.index_reads.stop_leading()

    def _handle_read_index_request(self, source: NodeId, request: ReadIndexRequest) -> None:
        if self._server.leads:
            self.service.handle_read_index_request(source, request)

    def _handle_follower_read(self, source: NodeId, request: FollowerRead) -> None:
        if self._server.leads:
            self._server.reads.read(Read(source, request.request_number, request.key))
        else:
            self.service.handle_follower_read(source, request)

    def _handle_replica_ping(self, source: NodeId, ping: ReplicaPing) -> None:
        age_us = 0 if self._server.leads else self.service.contact.age_us()
        lag_us = self._server.settings.client_timeout_us if age_us is None else age_us
        self._server.ports.network.send_ahead(source, ReplicaPong(ping.sent_us, self._region, lag_us))
