"""A node's side of its membership: it registers with the coordinator, sends heartbeats, and keeps the table.

It looks for the coordinator among the nodes of the core. A node that does not lead names the leader; after two
heartbeats without an answer the member turns to the next node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import NodeId, Ports, UnexpectedMessage
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import PartitionTable
from faultline.systems_under_test.reference.partitioned_kv.messages import (
    CoordinatorRedirect,
    NodeHeartbeat,
    RegisterClusterNodeRequest,
    RegisterClusterNodeResponse,
    TablePublished,
)
from faultline.systems_under_test.reference.partitioned_kv.options import PartitionSettings

__all__ = ["MemberOfCluster"]

_SILENT_HEARTBEATS = 2


class MemberOfCluster:
    """The membership of one node."""

    def __init__(
        self,
        ports: Ports,
        core: tuple[NodeId, ...],
        settings: PartitionSettings,
        send: Callable[[str, Any], None],
        delay_us: int,
    ) -> None:
        self._ports = ports
        self._core = core
        self._send = send
        self._delay_us = delay_us
        self._interval_us = settings.node_heartbeat_us
        self._asked = core[0]
        self._unanswered = 0
        self._registered = False
        self.coordinator: str | None = None
        self.table = PartitionTable()

    def start(self) -> None:
        """Register, at once or after a delay, and show signs of life from then on."""
        self._ports.timers.after(self._delay_us or 1, self._join)

    def _join(self) -> None:
        self._speak()
        self._ports.timers.every(self._interval_us, self._speak)

    def _speak(self) -> None:
        if self._unanswered >= _SILENT_HEARTBEATS:
            self._ports.trace.sometimes("coordinator-looked-for")
            self._turn_to(self._core[(self._core.index(self._asked) + 1) % len(self._core)])
        self._unanswered += 1
        if self._registered:
            self._send(self._asked, NodeHeartbeat(self.table.version))
        else:
            self._send(self._asked, RegisterClusterNodeRequest())

    def _turn_to(self, node: NodeId) -> None:
        self._asked = node
        self._unanswered = 0
        self.coordinator = None

    def handle_redirect(self, source: NodeId, redirect: CoordinatorRedirect) -> None:
        """Turn to the leader that is named, if it is another node and of the core."""
        if source == self._asked and redirect.leader in self._core and redirect.leader != source:
            self._turn_to(NodeId(redirect.leader))
        elif source == self._asked:
            # This node knows no other leader: the next heartbeat goes to the node after it.
            self._unanswered = _SILENT_HEARTBEATS

    def handle_registered(self, source: NodeId, message: RegisterClusterNodeResponse) -> None:
        """Note that this node is a member."""
        self._refuse_others(source, message)
        self._registered = True
        self._heard(source)

    def handle_table(self, source: NodeId, message: TablePublished) -> None:
        """Note that the coordinator heard this node, and keep its table if that is newer."""
        self._refuse_others(source, message)
        self._heard(source)
        if message.table is not None and message.table.version > self.table.version:
            self.table = message.table

    def _refuse_others(self, source: NodeId, message: Any) -> None:
        """Raise `UnexpectedMessage` for a message that is not of the core, which alone knows the members."""
        if source not in self._core:
            raise UnexpectedMessage(message)

    def _heard(self, source: NodeId) -> None:
        self._asked = source
        self.coordinator = source
        self._unanswered = 0
