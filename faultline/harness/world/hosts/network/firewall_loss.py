"""Lost packets by the receiving hosts' nftables: the simplest means, where there is no netem.

A rule for each sender drops a share of its packets, drawn anew for each. All of it stands in one table of ours, which
is replaced as a whole and deleted at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.hosts.network.rule_table import RuleTable

__all__ = ["FirewallLoss", "loss_rules"]

_TABLE = "faultline_loss"
_PARTS = 100_000


def loss_rules(shares: Mapping[str, float]) -> str:
    """Return the rules under which a host loses these shares of what comes from these addresses."""
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
        self._table = RuleTable(fleet, _TABLE)

    def apply(self, bad: Mapping[HostLink, LinkQuality]) -> None:
        """Let exactly these links lose packets."""
        wanted: dict[str, dict[str, float]] = {}
        for (source, target), quality in bad.items():
            wanted.setdefault(target, {})[self._fleet.hosts[source].address] = quality.loss
        self._table.put({name: loss_rules(wanted.get(name, {})) for name in sorted(wanted.keys() | self._table.hosts)})

    def close(self) -> None:
        """Delete our table wherever it was made; a host that cannot be reached any more keeps it."""
        self._table.close()
