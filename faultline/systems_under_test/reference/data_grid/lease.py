"""The lease of a majority: an owner serves only while most nodes have lately said that they follow its table.

A node that takes part in a later round grants no more. So once a majority has, the leases under earlier tables run out,
and a new owner that waits for as long as a lease lasts finds no other one that serves. An owner counts from the moment
it *asked*: the grant was given later.

Tolerates clocks whose rates differ by a tenth each. Does not tolerate clocks that run away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.reference.data_grid.messages import LeaseGranted, LeaseRequest
from faultline.systems_under_test.reference.data_grid.options import GridSettings
from faultline.systems_under_test.reference.data_grid.table import GridTable

__all__ = ["MajorityLease"]


class MajorityLease:
    """The lease of one node under the table that it follows."""

    def __init__(
        self, ports: Ports, cluster: tuple[str, ...], settings: GridSettings, send: Callable[[str, Any], None]
    ) -> None:
        self._ports = ports
        self._cluster = cluster
        self._settings = settings
        self._send = send
        self._version = 0
        self._members: tuple[str, ...] = ()
        self._granted_us: dict[str, int] = {}

    @property
    def needed(self) -> int:
        """The number of nodes whose grants make a lease."""
        group = self._members if self._settings.minimum_size == "none" else self._cluster
        return majority(len(group))

    def begin(self, table: GridTable) -> None:
        """Ask for a lease under `table`; grants under earlier ones count no more."""
        self._version = table.version
        self._members = table.members
        self._granted_us.clear()
        self.renew()

    def end(self) -> None:
        """Hold no lease until another table begins."""
        self._version = 0
        self._granted_us.clear()

    def renew(self) -> None:
        """Ask all members for another lease, this node itself among them."""
        if self._version:
            request = LeaseRequest(self._version, self._ports.clock.monotonic_us())
            for address in self._members:
                self._send(address, request)

    def take_grant(self, address: str, grant: LeaseGranted) -> None:
        """Count a grant from the moment at which this node asked for it."""
        if grant.version == self._version:
            self._granted_us[address] = max(grant.sent_us, self._granted_us.get(address, 0))

    def is_held(self) -> bool:
        """Return whether enough grants are still in force."""
        oldest_us = self._ports.clock.monotonic_us() - self._settings.lease_us
        return sum(sent_us > oldest_us for sent_us in self._granted_us.values()) >= self.needed
