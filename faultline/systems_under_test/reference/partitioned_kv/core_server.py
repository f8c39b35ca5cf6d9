"""A server of the core, assembled: Raft with the cluster's directory where other systems keep keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import ClusterDirectory
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    NO_CLIENT,
    ClientSessions,
    OneAtATime,
)
from faultline.systems_under_test.reference.partitioned_kv.node import NodeParts
from faultline.systems_under_test.reference.partitioned_kv.options import PartitionSettings
from faultline.systems_under_test.reference.raft.key_value_store import Applied, KeyValueStore
from faultline.systems_under_test.reference.raft.parts import Parts
from faultline.systems_under_test.reference.raft.server import RaftServer
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse

__all__ = ["DirectoryStore", "core_server"]

_RAFT_SETTINGS = RaftSettings.read({})


class DirectoryStore(KeyValueStore):
    """A state machine of the replicated log whose commands are those of the directory."""

    def __init__(self, directory: ClusterDirectory) -> None:
        super().__init__(ClientSessions(OneAtATime()))
        self._directory = directory

    def apply(self, index: int, data: bytes) -> Applied:
        """Apply a command of the directory; answer whether it had an effect."""
        return Applied(NO_CLIENT, 0, ClientResponse(0, None, self._directory.apply(index, data)), True)

    def snapshot(self) -> bytes:
        """Return the whole directory."""
        return self._directory.snapshot()

    def restore(self, state: bytes) -> None:
        """Replace the directory by that of a snapshot."""
        self._directory.restore(state)


def core_server(
    ports: Ports,
    core: tuple[NodeId, ...],
    settings: PartitionSettings,
    parts: NodeParts,
    send: Callable[[str, Any], None],
) -> RaftServer:
    """Return a server of the core, with its coordinator; that reaches the members through `send`."""
    directory = parts.coordinator_parts.directory()
    server = RaftServer(ports, core, _RAFT_SETTINGS, Parts(), DirectoryStore(directory))
    server.extend(parts.coordinator(server, directory, settings, parts.coordinator_parts, send))
    return server
