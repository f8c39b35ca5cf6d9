"""A table of ours in the nftables of hosts that are reached over SSH: replaced as a whole, and deleted at the end.

No other rule of a host is touched. All of this needs root there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError
from faultline.harness.world.hosts.machines.fleet import Fleet

__all__ = ["NFT", "RULES_TRIAL", "RuleTable"]

NFT = "PATH=$PATH:/usr/sbin:/sbin nft"

RULES_TRIAL = f"{NFT} -c -f -"
"""Succeeds where the rules on its standard input would be taken; it changes nothing."""


class RuleTable:
    """The table `name` on those of the fleet's hosts that were given rules; each set of rules makes the table anew."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet = fleet
        self._name = name
        self.hosts: set[str] = set()
        """The hosts on which the table was made."""

    def put(self, rules: Mapping[str, str]) -> None:
        """Give each of these hosts its rules, all at the same time. Raises HostError or HostsFailed."""

        def put_on(connection: Connection) -> None:
            mine = rules.get(connection.host.name)
            if mine is not None:
                connection.run(f"{NFT} -f -", stdin=mine.encode(), root=True)

        self.hosts |= rules.keys()
        if rules:
            self._fleet.each(put_on)

    def close(self) -> None:
        """Delete the table wherever it was made; a host that cannot be reached any more keeps it."""
        for host in sorted(self.hosts):
            with suppress(HostError):
                self._fleet[host].run(f"{NFT} delete table ip {self._name}", check=False, root=True)
        self.hosts.clear()
