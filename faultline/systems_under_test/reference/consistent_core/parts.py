"""The classes that a server of `consistent-core`, and a client of it, are built from.

A planted bug is a subclass of one of them, put in its place; the correct code never names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderLeaseReads, ReadIndexReads
from faultline.systems_under_test.patterns.data_replication.pulled_log import PulledLog
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import RequestWaitingList
from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog
from faultline.systems_under_test.patterns.data_replication.session_expiry import SessionExpiry
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchQueue
from faultline.systems_under_test.reference.consistent_core.append_batches import Proposal
from faultline.systems_under_test.reference.consistent_core.elections import Elections
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.compaction import Compaction

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes a node is built from; `node` is its own, when it is not the usual one; `client` changes the client.

    `confirms_leadership` is off only for a planted bug.
    """

    segmented_log: type[SegmentedLog] = SegmentedLog
    generation_clock: Callable[[Storage], GenerationClock] = GenerationClock
    replicated_log: type[ReplicatedLog] = ReplicatedLog
    pulled_log: type[PulledLog] = PulledLog
    sessions: type[ClientSessions[ClientResponse]] = ClientSessions
    session_expiry: type[SessionExpiry] = SessionExpiry
    elections: Elections = field(default_factory=Elections)
    batch_queue: type[BatchQueue[Proposal]] = BatchQueue
    compaction: type[Compaction] = Compaction
    read_index_reads: type[ReadIndexReads] = ReadIndexReads
    lease_reads: type[LeaderLeaseReads] = LeaderLeaseReads
    waiting_list: type[RequestWaitingList[int, ClientResponse]] = RequestWaitingList
    confirms_leadership: bool = True
    node: type[Any] | None = None
    client: type[Any] | None = None
