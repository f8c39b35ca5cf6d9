"""A node of a replicated `transactional-kv`: its members of several groups, and the way to the leaders of the others.

Messages, timers and the node's own events go through one update queue. A message for a group that another node leads is
passed on, once, to the leader that the member here follows. The answer comes from the leader itself, so that the sender
learns its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from faultline.harness.world.ports import NodeId, NodeStatus, Ports, UnexpectedMessage
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import Vote
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.reference.transactional_kv.group_messages import (
    LeadershipEvent,
    ToGroup,
    ToReplica,
    VoteTaken,
)
from faultline.systems_under_test.reference.transactional_kv.group_replica import GroupParts, GroupReplica
from faultline.systems_under_test.reference.transactional_kv.groups import groups_of
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings

__all__ = ["GroupedNode"]

_QUEUE_CAPACITY = 10_000


@dataclass(frozen=True, slots=True)
class _Task:
    """The node's own event."""

    run: Callable[[], None]


class GroupedNode:
    """One node: implements `Node` over its ports."""

    def __init__(
        self, ports: Ports, members: tuple[NodeId, ...], settings: TransactionSettings, parts: GroupParts
    ) -> None:
        self.ports = ports
        self._groups = groups_of(members, settings.replicas)
        self._routes = parts.routes(ports, self._groups, 2 * settings.resend_us, self._leader_here)
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )
        self.replicas = {
            group: parts.replica(
                ports, group, of_group, tuple(self._groups), settings, parts, self._routes.send, self._enter
            )
            for group, of_group in self._groups.items()
            if ports.node_id in of_group
        }

    def start(self) -> None:
        """Recover every group from storage."""
        for replica in self.replicas.values():
            replica.start()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._queue.post((source, message))

    def status(self) -> NodeStatus:
        """Return the status: a node leads if it leads any group, in the highest generation among those it leads."""
        led = {group: replica.generation for group, replica in self.replicas.items() if replica.leads}
        return NodeStatus(
            role=(ServerRole.LEADING if led else ServerRole.FOLLOWING).value,
            generation=max(led.values(), default=0),
            leader=self.ports.node_id if led else None,
            detail={"leads": list(led), "serves": sum(replica.is_serving for replica in self.replicas.values())},
        )

    def _enter(self, run: Callable[[], None]) -> None:
        self._queue.post((self.ports.node_id, _Task(run)))

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        if type(message) is ToReplica and message.group in self.replicas:
            self.replicas[NodeId(message.group)].receive(source, message.message)
        elif type(message) is ToGroup:
            self._handle_for_group(source, message)
        elif type(message) is _Task:
            message.run()
        else:
            raise UnexpectedMessage(message)

    def _leader_here(self, group: NodeId) -> NodeId | None:
        replica = self.replicas.get(group)
        return replica.election.leader_id if replica is not None else None

    def _handle_for_group(self, source: NodeId, message: ToGroup) -> None:
        group = NodeId(message.group)
        self._routes.note(source, message)
        replica = self.replicas.get(group)
        if replica is None:
            return
        if replica.is_serving:
            self._note_vote(replica, message)
            replica.node.receive(NodeId(message.source), message.message)
        elif not message.passed_on and not replica.leads and replica.election.leader_id is not None:
            self.ports.trace.sometimes("passed-on-to-leader")
            self._routes.pass_on(replica.election.leader_id, message)

    def _note_vote(self, replica: GroupReplica, message: ToGroup) -> None:
        vote = message.message
        if type(vote) is Vote and vote.yes:
            event = VoteTaken(vote.id, message.source)
            self.ports.trace.emit(LeadershipEvent(replica.group, replica.generation, "VoteTaken", event))
