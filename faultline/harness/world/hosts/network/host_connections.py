"""Connections between hosts, killed and reset: by the means of each host itself, over SSH.

A connection is killed with `ss -K`, which lets the kernel abort the socket and tell the other side. It is reset for a
while by a rule in the receiving host's nftables, which answers what comes from the sender's address as if no program
listened there. Neither touches the connections of clients or of SSH, which come from other addresses.

Whether this works is tried on each host, once and only when a plan asks for it: a kernel without
`CONFIG_INET_DIAG_DESTROY` takes the command and does nothing. Rules stand in a table of ours, which is replaced as a
whole and deleted at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.machines.host import Host
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.hosts.network.rule_table import RULES_TRIAL, RuleTable

__all__ = ["CONNECTION_FAULTS", "HostConnections", "kill_refusal", "reset_refusal", "reset_rules"]

CONNECTION_FAULTS = frozenset({"connection-kill", "connection-reset"})
"""The capabilities that are about connections."""
_PATH = "PATH=$PATH:/usr/sbin:/sbin"
_TABLE = "faultline_resets"
_CONNECT_TIMEOUT_S = 5
_NO_ANSWER = "it said nothing"


def reset_rules(senders: Iterable[str]) -> str:
    """Return the rules under which a host resets whatever comes by TCP from the addresses `senders`, and nothing else.

    That includes the answers to what it sends itself: of its own attempts to reach a sender none comes about either.
    Resets pass, or two hosts that reset each other would never hear of it.
    """
    addresses = ", ".join(sorted(senders))
    elements = f"elements = {{ {addresses} }}" if addresses else ""
    return f"""\
table ip {_TABLE}
delete table ip {_TABLE}
table ip {_TABLE} {{
  set senders {{
    type ipv4_addr
    {elements}
  }}
  chain hearing {{
    type filter hook input priority -5; policy accept;
    ip saddr @senders tcp flags & rst == 0 counter reject with tcp reset
  }}
}}
"""


def kill_refusal(connection: Connection) -> str:
    """Try it with a connection of the host to its own sshd: why connections cannot be killed there, or nothing."""
    host = connection.host
    own = f"src {host.address} dst {host.address} dport = :{host.port}"
    script = (
        f"exec 3<>/dev/tcp/{host.address}/{host.port} || exit; "
        f"count() {{ ss -tnH state established {own} | wc -l; }}; "
        f"count; ss -K -tnH {own} >/dev/null; count"
    )
    answer = connection.run(f"{_PATH} bash -c '{script}'", check=False, root=True)
    if answer.text.split() == ["1", "0"]:
        return ""
    if answer.exit_code or not answer.text:
        return f"bash and ss are needed: {_first_line(answer.stderr)}"
    return "its kernel does not let connections be killed (CONFIG_INET_DIAG_DESTROY)"


def reset_refusal(connection: Connection) -> str:
    """Return why the host refuses a rule that resets connections; empty when it does not. The rule is only checked."""
    rules = reset_rules(["192.0.2.1"]).encode()
    answer = connection.run(RULES_TRIAL, stdin=rules, check=False, root=True)
    return "" if answer.exit_code == 0 else f"nftables takes no rule that resets: {_first_line(answer.stderr)}"


class HostConnections:
    """The connections between the hosts of `fleet`."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._resets: set[HostLink] = set()
        self._table = RuleTable(fleet, _TABLE)
        self._lock = threading.Lock()
        self._refusals: dict[str, str] | None = None

    def refusals(self) -> Mapping[str, str]:
        """Return, for each of the `CONNECTION_FAULTS` that some host lacks, the first such host and the reason."""
        with self._lock:
            if self._refusals is None:
                self._refusals = {}
                for name, found in self._fleet.attempt(_refusals_of).items():
                    if isinstance(found, HostError):
                        found = dict.fromkeys(sorted(CONNECTION_FAULTS), found.message.rstrip("."))
                    for capability, why in found.items():
                        self._refusals.setdefault(capability, f"on {name}, {why}")
            return self._refusals

    def open_on(self, link: HostLink) -> frozenset[str]:
        """Probe: the connections between both ends of `link` as the sender's kernel knows them, by their two ports."""
        source, target = link
        command = f"{_PATH} ss -tnH state established dst {self._address(target)}"
        lines = self._fleet[source].run(command).text.splitlines()
        return frozenset(_ports(line) for line in lines)

    def kill(self, links: Iterable[HostLink]) -> None:
        """Abort the connections between the ends of `links`, on both."""
        peers = _by_host(links)

        def kill_on(connection: Connection) -> None:
            name = connection.host.name
            if name in peers:
                chosen = " or ".join(f"dst {self._address(peer)}" for peer in peers[name])
                connection.run(f"{_PATH} ss -K -tnH '{chosen}' >/dev/null", root=True)

        self._fleet.each(kill_on)

    def reset(self, links: Iterable[HostLink]) -> None:
        """Let everything be reset that is sent by TCP over `links`."""
        self._change(self._resets | set(links))

    def admit(self, links: Iterable[HostLink]) -> None:
        """Let connections over `links` be again."""
        self._change(self._resets - set(links))

    def resets(self, links: Iterable[HostLink]) -> frozenset[HostLink]:
        """Probe: those of `links` over which the sender's attempt to reach the receiver's sshd is refused."""
        targets = _by_sender(links)

        def refused_on(connection: Connection) -> frozenset[str]:
            chosen = [self._fleet.hosts[target] for target in targets.get(connection.host.name, ())]
            if not chosen:
                return frozenset()
            return frozenset(connection.run(_attempts(chosen), timeout_s=4 * _CONNECT_TIMEOUT_S).text.split())

        refused = self._fleet.each(refused_on)
        return frozenset((source, target) for source, names in refused.items() for target in names)

    def close(self) -> None:
        """Delete our table wherever it was made; a host that cannot be reached any more keeps it."""
        self._table.close()
        self._resets.clear()

    def _change(self, resets: set[HostLink]) -> None:
        changed = sorted({target for _, target in resets ^ self._resets})
        self._table.put({name: reset_rules(self._senders(resets, name)) for name in changed})
        self._resets = resets

    def _senders(self, resets: set[HostLink], receiver: str) -> list[str]:
        return [self._address(source) for source, target in resets if target == receiver]

    def _address(self, name: str) -> str:
        return self._fleet.hosts[name].address


def _refusals_of(connection: Connection) -> dict[str, str]:
    found = {"connection-kill": kill_refusal(connection), "connection-reset": reset_refusal(connection)}
    return {capability: why for capability, why in found.items() if why}


def _attempts(targets: Iterable[Host]) -> str:
    """Return a command that tries to reach all `targets` side by side and prints the names of those that refuse."""
    tries = [
        f"{{ timeout {_CONNECT_TIMEOUT_S} bash -c '</dev/tcp/{target.address}/{target.port}' 2>&1 | "
        f"grep -q 'Connection refused' && echo {target.name}; }} &"
        for target in targets
    ]
    return " ".join(["LC_ALL=C; export LC_ALL;", *tries, "wait"])


def _by_sender(links: Iterable[HostLink]) -> dict[str, list[str]]:
    targets: dict[str, list[str]] = {}
    for source, target in links:
        targets.setdefault(source, []).append(target)
    return targets


def _by_host(links: Iterable[HostLink]) -> dict[str, list[str]]:
    """Return, for each host at either end of a link, the hosts at the other ends."""
    both = {end for source, target in links for end in ((source, target), (target, source))}
    return _by_sender(sorted(both))


def _ports(line: str) -> str:
    """Return the ports of a line of ss: `Recv-Q Send-Q Local:Port Peer:Port`."""
    local, peer = [word for word in line.split() if ":" in word][:2]
    return f"{local.rpartition(':')[2]}-{peer.rpartition(':')[2]}"


def _first_line(stream: bytes) -> str:
    lines = stream.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else _NO_ANSWER
