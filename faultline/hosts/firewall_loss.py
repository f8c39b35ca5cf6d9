"""Lost packets by the receiving hosts' nftables: the simplest means, where there is no netem.

A rule for each sender drops a share of its packets, drawn anew for each. All of it stands in one table of ours, which
is replaced as a whole and deleted at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from faultline.harness.world.faults import LinkQuality
from faultline.hosts.connection import Connection
from faultline.hosts.errors import HostError
from faultline.hosts.fleet import Fleet
from faultline.hosts.links import HostLink

__all__ = ["LOSS_TRIAL", "FirewallLoss", "loss_rules"]

_PATH = "PATH=$PATH:/usr/sbin:/sbin"
LOSS_TRIAL = f"{_PATH} nft -c -f -"
"""Succeeds where the rules on its standard input would be taken."""
_TABLE = "faultline_loss"
_PARTS = 100_000


def loss_rules(shares: Mapping[str, float]) -> str:
    """The rules under which a host loses these shares of what comes from these addresses."""
    rules = "\n".join(
        f"    ip saddr {address} numgen random mod {_PARTS} < {round(share * _PARTS)} counter drop"
        for address, share in sorted(shares.items())
    )
    return f"""\
table ip {_TABLE}
delete table ip {_TABLE}
table ip {_TABLE} {{
  chain hearing {{
    type filter hook input priority -15; policy accept;
{rules}
  }}
}}
"""


class FirewallLoss:
    """The links between the hosts of `fleet`, as far as the receivers' firewalls lose what comes over them."""

    capabilities = frozenset({"loss"})
    means = "nftables on the receiving hosts"

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._ruled: set[str] = set()

    def apply(self, bad: Mapping[HostLink, LinkQuality]) -> None:
        """Let exactly these links lose packets."""
        wanted: dict[str, dict[str, float]] = {}
        for (source, target), quality in bad.items():
            wanted.setdefault(target, {})[self._fleet.hosts[source].address] = quality.loss

        def rule(connection: Connection) -> None:
            name = connection.host.name
            if name in wanted or name in self._ruled:
                rules = loss_rules(wanted.get(name, {})).encode()
                connection.run(f"{_PATH} nft -f -", stdin=rules, root=True)

        self._fleet.each(rule)
        self._ruled |= set(wanted)

    def close(self) -> None:
        """Delete our table wherever it was made; a host that cannot be reached any more keeps it."""
        for name in sorted(self._ruled):
            with suppress(HostError):
                self._fleet[name].run(f"{_PATH} nft delete table ip {_TABLE}", check=False, root=True)
        self._ruled.clear()
