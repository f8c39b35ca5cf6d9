"""What the parts of leases and watches need of the server they belong to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import LeaderElection
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings
from faultline.systems_under_test.reference.leases_and_watches.store import ServicedStore

__all__ = ["ServiceHost"]


class ServiceHost(Protocol):
    """A server, as its services see it."""

    ports: Ports
    settings: ServiceSettings
    store: ServicedStore
    election: LeaderElection
    log: ReplicatedLog
    wal: WriteAheadLog

    def run_in_queue(self, run: Callable[[], None]) -> None:
        """Run it on the update queue of the server."""

    def confirm_leadership(self, source: NodeId, request: Any) -> None:
        """Serve `request` once a majority has confirmed that this server leads."""
