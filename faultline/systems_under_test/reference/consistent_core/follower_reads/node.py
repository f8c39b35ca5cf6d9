"""A server of `consistent-core` that keeps versions and, if asked to, answers reads while it follows.

It is the ordinary node with a store that stamps, and a `FollowerReadService` that is told what happens. Without options
for either, the ordinary node runs, and nothing here costs anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.heartbeat import HeartBeatScheduler
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.leader_reads import Read
from faultline.systems_under_test.patterns.data_replication.pulled_log import FetchDiverged, FetchResponse
from faultline.systems_under_test.patterns.data_replication.replication_messages import ReplicationRequest
from faultline.systems_under_test.patterns.data_replication.snapshot_installation import InstallSnapshotRequest
from faultline.systems_under_test.patterns.data_replication.versioned_value import OrderedVersions, VersionedStore
from faultline.systems_under_test.reference.consistent_core.follower_reads.messages import (
    FollowerRead,
    ReadIndexRequest,
    ReadIndexResponse,
    ReplicaPing,
    ReplicaPong,
)
from faultline.systems_under_test.reference.consistent_core.follower_reads.service import (
    FollowerReadService,
    ReadServiceParts,
)
from faultline.systems_under_test.reference.consistent_core.node import ConsistentCoreNode, Parts
from faultline.systems_under_test.reference.consistent_core.options import CoreSettings
from faultline.systems_under_test.reference.consistent_core.sessions import discard_policy
from faultline.systems_under_test.reference.consistent_core.stamped_store import (
    StampedStore,
    VersionOf,
    index_is_version,
)
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse

__all__ = ["FollowerReadingNode", "ReadParts", "following_node"]

_OF_A_LEADER = frozenset((ReplicationRequest, InstallSnapshotRequest, FetchResponse, FetchDiverged))


def _index_is_version(_: FollowerReadingNode) -> VersionOf:
    return index_is_version


@dataclass(frozen=True, slots=True)
class ReadParts:
    """The classes of the read side, and how a node numbers what entries write."""

    versions: type[VersionedStore[int]] = OrderedVersions
    service: type[FollowerReadService] = FollowerReadService
    version_of: Callable[[FollowerReadingNode], VersionOf] = _index_is_version


class FollowerReadingNode(ConsistentCoreNode):
    """One server, with versions and reads from followers."""

    store: StampedStore

    def __init__(
        self, ports: Ports, members: tuple[NodeId, ...], settings: CoreSettings, parts: Parts, read_parts: ReadParts
    ) -> None:
        self._read_parts = read_parts
        super().__init__(ports, members, settings, parts)
        follower = settings.follower
        self.entries = self._log
        self.recovered_index = 0
        self._noted_index = 0
        shared = ReadServiceParts(ports, self.log, self._log, self.store, lambda: self.election.leader_id)
        self.service = read_parts.service(shared, follower)
        self._region = follower.region_of(members.index(ports.node_id))
        self._questions = HeartBeatScheduler(ports.timers, settings.heartbeat_interval_us, self.service.ask_how_fresh)
        self._handlers |= {
            FollowerRead: self._handle_follower_read,
            ReadIndexRequest: self._handle_read_index_request,
            ReadIndexResponse: self.service.handle_read_index_response,
            ReplicaPing: self._handle_replica_ping,
        }

    def start(self) -> None:
        """Recover; then find out how fresh that is."""
        super().start()
        self.recovered_index = self._log.last_index
        if self.settings.follower.from_followers:
            self._questions.start()

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        """Whatever a leader sends shows that it lives, whatever it is sent may confirm it; and what was applied wakes
        readers, whether it came as entries or as a snapshot.
        """
        message = item[1]
        if type(message) in _OF_A_LEADER and message.generation >= self._clock.generation:
            self.service.contact.heard()
        super()._handle(item)
        if self.log.last_applied != self._noted_index:
            self._noted_index = self.log.last_applied
            self.service.applied()
        if self.election.role is ServerRole.LEADING:
            self.service.index_reads.progress()

    # -- leading ------------------------------------------------------------------------------------------------------

    def became_leader(self) -> None:
        """From now on questions are answered here, and reads that still wait need not hear of another leader."""
        self.service.contact.heard()
        self.service.index_reads.start_leading(self._log.last_index + 1)
        super().became_leader()

    def stepped_down(self) -> None:
        """Questions will not be answered: their senders ask again."""
        super().stepped_down()
        self.service.index_reads.stop_leading()

    def _handle_read_index_request(self, source: NodeId, request: ReadIndexRequest) -> None:
        if self.election.role is ServerRole.LEADING:
            self.service.handle_read_index_request(source, request)

    # -- following ----------------------------------------------------------------------------------------------------

    def _handle_follower_read(self, source: NodeId, request: FollowerRead) -> None:
        if self.election.role is ServerRole.LEADING:
            self.reads.read(Read(source, request.request_number, request.key))
        else:
            self.service.handle_follower_read(source, request)

    def _handle_replica_ping(self, source: NodeId, ping: ReplicaPing) -> None:
        age_us = 0 if self.election.role is ServerRole.LEADING else self.service.contact.age_us()
        lag_us = self.settings.client_timeout_us if age_us is None else age_us
        self.ports.network.send_ahead(source, ReplicaPong(ping.sent_us, self._region, lag_us))

    # -- both ---------------------------------------------------------------------------------------------------------

    def _serve(self, read: Read) -> None:
        response = ClientResponse(read.request_number, None, self.store.values.get(read.key), self.store.version)
        self.ports.network.send_ahead(read.source, response)

    def _new_store(self, parts: Parts) -> StampedStore:
        follower, read_parts = self.settings.follower, self._read_parts
        return self._store_type(StampedStore)(
            parts.sessions(discard_policy(self.settings)),
            self.ports.trace,
            read_parts.versions if follower.versioned else None,
            follower.versions_kept,
            read_parts.version_of(self),
        )


def following_node(base: type[ConsistentCoreNode] | None) -> type[FollowerReadingNode]:
    """The node that reads while it follows, on top of `base`, a node with a planted bug, if there is one."""
    return FollowerReadingNode if base is None else type(base.__name__, (FollowerReadingNode, base), {})
