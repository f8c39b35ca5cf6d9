"""The directory of the cluster in the place where a server of `consistent-core` keeps its keys and values."""

from __future__ import annotations

from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import ClusterDirectory
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    NO_CLIENT,
    ClientSessions,
    OneAtATime,
)
from faultline.systems_under_test.reference.raft.key_value_store import Applied, KeyValueStore
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse

__all__ = ["DirectoryStore"]


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
