"""Link faults in the bridge that joins hosts of namespaces: one place for all links, with one atomic change each time.

The rules are a pure function of the links that are cut, and replace one another as a whole, so that there is no state
in between. They stand in the bridge's own network namespace, where they see frames by the ports they come in and go
out. Address resolution passes: its answers travel against the direction of what they make possible, so that a link
which is cut one way would be cut the other way too, for hosts that had not spoken yet.

Every cut is proved with packets: a datagram is sent from the one host to the other, and arrives or not. Datagrams that
prove how bad a link is pass cuts, so that the two kinds of faults are proved independently.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.namespaces.datagrams import DatagramProbe
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.hosts.network.probe_marks import PROBE_TOS

__all__ = ["Switch", "ruleset"]


def ruleset(cut: Iterable[HostLink]) -> str:
    """Return the rules under which exactly the links `cut` pass nothing; what was in force before is replaced."""
    pairs = ", ".join(f'"{source}" . "{target}"' for source, target in sorted(cut))
    elements = f"elements = {{ {pairs} }}" if pairs else ""
    return f"""\
table bridge faultline
delete table bridge faultline
table bridge faultline {{
  set cut {{
    type ifname . ifname
    {elements}
  }}
  chain passage {{
    type filter hook forward priority 0; policy accept;
    ip dscp {PROBE_TOS >> 2} accept
    ether type != arp iifname . oifname @cut counter drop
  }}
}}
"""


class Switch:
    """The links of one set of hosts. `network` is the bridge's namespace, `nft` the program that sets its rules."""

    refusal = ""

    def __init__(self, network: Path, nft: str, probe: DatagramProbe) -> None:
        self._command = ["nsenter", f"--net={network}", nft, "-f", "-"]
        self._probe = probe
        self._cut: set[HostLink] = set()
        self._apply(self._cut)

    def cut(self, links: Iterable[HostLink]) -> None:
        """Let nothing pass over `links`."""
        self._apply(self._cut | set(links))

    def restore(self, links: Iterable[HostLink]) -> None:
        """Let everything pass over `links` again."""
        self._apply(self._cut - set(links))

    def is_cut(self, link: HostLink) -> bool:
        """Return whether a datagram gets lost on `link`; where it is expected to pass it is given more time."""
        return bool(self.are_cut([link]))

    def are_cut(self, links: Iterable[HostLink]) -> frozenset[HostLink]:
        """Return those of `links` on which a datagram gets lost."""
        chosen = frozenset(links)
        return chosen - self._probe.passing(chosen, expected=chosen - self._cut)

    def close(self) -> None:
        """Let go of the probe; the rules go with the bridge's namespace."""
        self._probe.close()

    def _apply(self, cut: set[HostLink]) -> None:
        done = subprocess.run(self._command, input=ruleset(cut), capture_output=True, text=True, check=False)
        if done.returncode:
            raise HarnessError(
                f"The bridge does not take the rules for cutting links: {done.stderr.strip().splitlines()[0]}.",
                "Does this kernel have nftables for bridges (CONFIG_NF_TABLES_BRIDGE)?",
            )
        self._cut = set(cut)
