"""The clients of `transactional-kv`: one that asks nodes, and one that asks groups of them."""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import TransactionExecutor
from faultline.systems_under_test.reference.transactional_kv.group_messages import ToGroup
from faultline.systems_under_test.reference.transactional_kv.groups import GroupLocations, groups_of
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings, host_of
from faultline.systems_under_test.reference.transactions.client import TransactionClient
from faultline.systems_under_test.reference.transactions.messages import Reply

__all__ = ["GroupClient", "TransactionalKvClient"]


class TransactionalKvClient(TransactionClient):
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: TransactionSettings) -> None:
        executor = TransactionExecutor(
            lambda key: host_of(members, key),
            settings.attempts_max,
            time_server=members[0] if settings.clock == "oracle" else None,
        )
        super().__init__(ports, settings, executor, snapshot_reads=settings.snapshot_reads)


class GroupClient(TransactionalKvClient):
    """The client of a replicated `transactional-kv`: it asks groups instead of nodes, and must find their leaders.

    An answer comes from the leader itself, so the client learns its place; when none comes, it asks the next member.
    """

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: TransactionSettings) -> None:
        groups = groups_of(members, settings.replicas)
        super().__init__(ports, tuple(groups), settings)
        self._locations = GroupLocations(groups, ports.clock, settings.client_timeout_us)

    def receive(self, source: NodeId, message: Reply) -> None:
        """Take an answer, and note the node it came from."""
        if self._call is not None and message.number == self._number:
            self._locations.heard(self._call.node, source)
        super().receive(source, message)

    def _send(self, to: NodeId, request: Any) -> None:
        self._ports.network.send(self._locations.leader_of(to), ToGroup(to, self._ports.node_id, request))

    def _handle_silence(self) -> None:
        if self._call is not None:
            self._locations.try_next(self._call.node)
        super()._handle_silence()
