"""The means of faults on the links of each host, and the next best where one is missing.

On hosts of namespaces the bridge does it for all of them, so what it can do is told of each; a machine over SSH is
asked for its own means. Connections are struck on each host itself, in both cases.
"""

from __future__ import annotations

from typing import Protocol

from faultline.harness.world.hosts.machines.connection import CommandResult, Connection
from faultline.harness.world.hosts.machines.finding import Finding
from faultline.harness.world.hosts.network.cables import Cables
from faultline.harness.world.hosts.network.firewall import host_ruleset
from faultline.harness.world.hosts.network.firewall_loss import FirewallLoss
from faultline.harness.world.hosts.network.host_connections import kill_refusal, reset_refusal
from faultline.harness.world.hosts.network.links import QUALITIES, LinkFaults, LinkQualities
from faultline.harness.world.hosts.network.netem import Netem
from faultline.harness.world.hosts.network.remote_qualities import loss_refusal, netem_refusal

__all__ = ["BridgedLinks", "connections_of", "links_of_bridged", "links_of_machine"]

_ELSEWHERE = "next best: --hosts namespaces:N, or --world local"


class BridgedLinks(Protocol):
    """The part of a set of hosts that its examination needs, where all links are in one place."""

    links: LinkFaults
    qualities: LinkQualities
    cables: Cables


def links_of_bridged(name: str, host_set: BridgedLinks) -> list[Finding]:
    """Return the faults of links of the host `name` that the bridge can inject."""
    cuts, cables, refusals = host_set.links.refusal, host_set.cables.refusal, host_set.qualities.refusals
    bad = "; ".join(dict.fromkeys(refusals.values()))
    return [
        _finding(name, "partition", cuts, "nftables in the bridge", "Next best: link-down, one node at a time."),
        _finding(
            name, "packet faults", bad, f"{', '.join(QUALITIES)}: {host_set.qualities.means}",
            "Next best: --world local delays, loses and repeats messages.",
        ),
        _finding(name, "link-down", cables, "its cable is pulled at the bridge", "Next best: partition."),
    ]  # fmt: skip


def links_of_machine(connection: Connection) -> list[Finding]:
    """Return the faults of links that the machine can inject by its own means."""
    # Rules that are only checked (-c) change nothing.
    rules = host_ruleset(["192.0.2.1"]).encode()
    answer = connection.run("PATH=$PATH:/usr/sbin:/sbin nft -c -f -", stdin=rules, check=False, root=True)
    next_step = "Partitions need root (sudo = true in the host file) and: apt-get install nftables"
    # Healthy, although there is no such fault: a user should not have to mend it.
    no_cables = "refused by name, since the machine's routes would go; next best: partition"
    return [
        _finding(connection.host.name, "partition", _complaint(answer), "nftables takes rules", next_step),
        _bad_links(connection),
        _finding(connection.host.name, "link-down", "", no_cables),
    ]


def connections_of(connection: Connection) -> list[Finding]:
    """Return whether connections of the host can be killed and reset."""
    name = connection.host.name
    return [
        _finding(
            name, "connection-kill", kill_refusal(connection), "a connection of its own was killed",
            "Next best: connection-reset, which needs only nftables.",
        ),
        _finding(
            name, "connection-reset", reset_refusal(connection), "nftables takes rules that reset",
            "Next best: connection-kill, over and over; or partition.",
        ),
    ]  # fmt: skip


def _bad_links(connection: Connection) -> Finding:
    name, no_netem = connection.host.name, netem_refusal(connection)
    if not no_netem:
        return _finding(name, "packet faults", "", f"{', '.join(QUALITIES)}: {Netem.means}")
    no_loss = loss_refusal(connection)
    rest = ", ".join(quality for quality in QUALITIES if quality not in FirewallLoss.capabilities)
    seen = f"loss: {FirewallLoss.means}; no {rest}, since {no_netem}; {_ELSEWHERE}"
    refusal = no_loss and f"{no_netem}, and {no_loss}"
    return _finding(name, "packet faults", refusal, seen, f"Run there: modprobe sch_netem; {_ELSEWHERE}.")


def _finding(host: str, name: str, refusal: str, seen: str, next_step: str = "") -> Finding:
    return Finding(host=host, name=name, healthy=not refusal, seen=refusal or seen, next_step=next_step)


def _complaint(answer: CommandResult) -> str:
    """Return the first line of the error of a command that failed; empty when it succeeded."""
    lines = answer.stderr.decode(errors="replace").strip().splitlines()
    return (lines[0] if lines else "it said nothing") if answer.exit_code else ""
