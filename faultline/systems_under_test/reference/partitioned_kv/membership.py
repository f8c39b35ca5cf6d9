"""A node's side of its membership: it registers with the coordinator, sends heartbeats, and keeps the table.

It looks for the coordinator among the nodes of the core: whoever does not lead says who does; whoever is silent for
two heartbeats is left for the next one.
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
    """One node as a member."""

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
        """Speak to the one who leads next time, if it is another one and known."""
        if source == self._asked and redirect.leader in self._core and redirect.leader != source:
            self._turn_to(NodeId(redirect.leader))
        elif source == self._asked:
            self._unanswered = _SILENT_HEARTBEATS

    def handle_registered(self, source: NodeId, message: RegisterClusterNodeResponse) -> None:
        """This node is a member."""
        self._refuse_others(source, message)
        self._registered = True
        self._heard(source)

    def handle_table(self, source: NodeId, message: TablePublished) -> None:
        """The coordinator has heard this node; keep the table it sends, if that is newer."""
        self._refuse_others(source, message)
        self._heard(source)
        if message.table is not None and message.table.version > self.table.version:
            self.table = message.table

    def _refuse_others(self, source: NodeId, message: Any) -> None:
        """Only members of the core know who belongs to the cluster."""
        if source not in self._core:
            raise UnexpectedMessage(message)

    def _heard(self, source: NodeId) -> None:
        self._asked = source
        self.coordinator = source
        self._unanswered = 0
