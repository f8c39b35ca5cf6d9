"""Link faults on hosts that are reached over SSH: rules in each receiving host's own nftables, by the sender's address.

A cut takes effect at the receiver, so it needs root there. All of it stands in one table of ours, which is replaced as
a whole and deleted at the end; no other rule of the host is touched. What the probe proves is that the host's kernel
holds the rule, not that no packet arrives. Datagrams that prove how bad a link is pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.hosts.network.probe_marks import PROBE_TOS
from faultline.harness.world.hosts.network.rule_table import NFT, RuleTable

__all__ = ["HostFirewalls", "host_ruleset"]

_TABLE = "faultline"


def host_ruleset(senders: Iterable[str]) -> str:
    """Return the rules under which a host hears nothing from the addresses `senders`, and all from others."""
    addresses = ", ".join(sorted(senders))
    elements = f"elements = {{ {addresses} }}" if addresses else ""
    return f"""\
table ip {_TABLE}
delete table ip {_TABLE}
table ip {_TABLE} {{
  set cut {{
    type ipv4_addr
    {elements}
  }}
  chain hearing {{
    type filter hook input priority -10; policy accept;
    ip dscp {PROBE_TOS >> 2} accept
    ip saddr @cut counter drop
  }}
}}
"""


class HostFirewalls:
    """The links between the hosts of `fleet`, as far as their own firewalls cut them."""

    refusal = ""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._cut: set[HostLink] = set()
        self._table = RuleTable(fleet, _TABLE)

    def cut(self, links: Iterable[HostLink]) -> None:
        """Let nothing pass over `links`."""
        self._change(self._cut | set(links))

    def restore(self, links: Iterable[HostLink]) -> None:
        """Let everything pass over `links` again."""
        self._change(self._cut - set(links))

    def is_cut(self, link: HostLink) -> bool:
        """Return whether the receiving host's kernel holds a rule that drops the sender's packets."""
        source, target = link
        command = f"{NFT} -j list set ip {_TABLE} cut"
        answer = self._fleet[target].run(command, check=False, root=True)
        return answer.exit_code == 0 and self._fleet.hosts[source].address in _elements(answer.stdout)

    def are_cut(self, links: Iterable[HostLink]) -> frozenset[HostLink]:
        """Return those of `links` for which the receiving host's kernel holds such a rule."""
        targets: dict[str, list[str]] = {}
        for source, target in links:
            targets.setdefault(target, []).append(source)

        def cut_on(connection: Connection) -> list[HostLink]:
            name = connection.host.name
            return [(source, name) for source in targets.get(name, ()) if self.is_cut((source, name))]

        return frozenset(link for found in self._fleet.each(cut_on).values() for link in found)

    def close(self) -> None:
        """Delete our table wherever it was made; a host that cannot be reached any more keeps it."""
        self._table.close()

    def _change(self, cut: set[HostLink]) -> None:
        changed = sorted({target for _, target in cut ^ self._cut})
        self._table.put({name: host_ruleset(self._senders(cut, name)) for name in changed})
        self._cut = cut

    def _senders(self, cut: set[HostLink], receiver: str) -> list[str]:
        return [self._fleet.hosts[source].address for source, target in cut if target == receiver]


def _elements(listing: bytes) -> list[str]:
    objects = json.loads(listing)["nftables"]
    return [element for entry in objects for element in entry.get("set", {}).get("elem", ())]
