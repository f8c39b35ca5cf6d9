"""The values of `--hosts`: `namespaces:N`, hosts made for the run, and `ssh:FILE`, machines that exist."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.world.hosts.machines.abilities import Abilities
from faultline.harness.world.hosts.machines.errors import HostError
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.machines.host import HOSTS_MAX, Host
from faultline.harness.world.hosts.machines.host_file import read_host_file
from faultline.harness.world.hosts.network.cables import Cables, NoCables
from faultline.harness.world.hosts.network.firewall import HostFirewalls
from faultline.harness.world.hosts.network.host_connections import HostConnections
from faultline.harness.world.hosts.network.links import LinkFaults, LinkQualities, NoLinkFaults
from faultline.harness.world.hosts.network.remote_qualities import RemoteQualities
from faultline.harness.world.hosts.storage.disks import HostDisks, NoDisks

__all__ = ["HostSet", "HostSpecification", "SshHosts", "open_hosts", "parse_hosts"]

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class HostSet(Protocol):
    """Hosts that are up and can be reached."""

    hosts: tuple[Host, ...]
    fleet: Fleet
    links: LinkFaults
    abilities: Abilities
    qualities: LinkQualities
    connections: HostConnections
    disks: HostDisks
    cables: Cables
    shares_clock: bool
    """True when all hosts and the harness run under one kernel, and so read one monotonic clock."""

    def close(self) -> None:
        """Let the hosts go."""


class HostSpecification:
    """A `--hosts` text that makes sense: how many hosts it will give, of which kind, and in which racks."""

    def __init__(self, text: str, kind: str, count: int, hosts: tuple[Host, ...] = ()) -> None:
        self.text = text
        self.kind = kind
        self.count = count
        self.hosts = hosts

    def racks_instead_of(self, racks: int | None) -> int | tuple[str, ...] | msgspec.UnsetType:
        """Return the rack of each host where the host file has them, else the number of `racks` that is asked for.

        Raise `UsageError` where the two contradict each other, or only some hosts have a rack.
        """
        declared = tuple(host.rack for host in self.hosts if host.rack)
        if not declared:
            return msgspec.UNSET if racks is None else racks
        if racks is not None:
            raise UsageError(f"--racks {racks} contradicts the racks in {self.text}.", "Leave --racks out.")
        if len(declared) < len(self.hosts):
            without = next(host.name for host in self.hosts if not host.rack)
            raise UsageError(f"In {self.text}, the host {without} has no rack, and others have one.", "Add its `rack`.")
        return declared


def parse_hosts(text: str) -> HostSpecification:
    """Return the hosts that `text` names, not yet reached. Raises UsageError."""
    kind, _, argument = text.partition(":")
    if kind == "namespaces" and argument.isdigit() and 1 <= int(argument) <= HOSTS_MAX:
        return HostSpecification(text, kind, int(argument))
    if kind == "ssh" and argument:
        hosts = read_host_file(Path(argument))
        return HostSpecification(text, kind, len(hosts), hosts)
    raise UsageError(
        f"--hosts {text} names no hosts.", f"Write --hosts namespaces:N with N from 1 to {HOSTS_MAX}, or ssh:FILE.toml."
    )


def open_hosts(specification: HostSpecification) -> HostSet:
    """Make or reach the hosts. Raises HarnessError with the reason when that is not possible."""
    if specification.kind == "namespaces":
        from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts

        return NamespaceHosts(specification.count)
    return SshHosts(specification.hosts)


class SshHosts:
    """Machines that are there already. Raises HostError when one cannot be reached."""

    def __init__(self, hosts: tuple[Host, ...]) -> None:
        self.hosts = hosts
        self.fleet = Fleet(hosts)
        try:
            boots = {name: result.text for name, result in self.fleet.run(f"cat {_BOOT_ID}").items()}
            _refuse_shared_real_clocks(hosts, boots)
            refusals = self.fleet.attempt(
                lambda connection: connection.run("PATH=$PATH:/usr/sbin:/sbin nft list tables", root=True)
            )
        except BaseException:
            self.fleet.close()
            raise
        self.abilities = Abilities(self.fleet, f"faultline-ssh-{secrets.token_hex(4)}")
        self.disks: HostDisks = NoDisks("only hosts of namespaces have them")
        self.shares_clock = set(boots.values()) == {_own_boot()}
        refused = [outcome for outcome in refusals.values() if isinstance(outcome, HostError)]
        self.links: LinkFaults = NoLinkFaults(refused[0].message.rstrip(".")) if refused else HostFirewalls(self.fleet)
        self.connections = HostConnections(self.fleet)
        self.cables: Cables = NoCables("a machine that loses its link loses its routes, and often SSH")
        self.qualities: LinkQualities = RemoteQualities(self.fleet, shares_clock=self.shares_clock)

    def close(self) -> None:
        """Hang up on all hosts."""
        self.links.close()
        self.qualities.close()
        self.connections.close()
        self.fleet.close()


def _refuse_shared_real_clocks(hosts: tuple[Host, ...], boots: Mapping[str, str]) -> None:
    """Refuse to strike a real clock that others live by: this machine's, or that of two hosts on one machine."""
    for host in hosts:
        others = [name for name, boot in boots.items() if boot == boots[host.name] and name != host.name]
        if host.clock == "real" and (others or boots[host.name] == _own_boot()):
            shares = f"shares it with {others[0]}" if others else "is the machine that Faultline runs on"
            raise UsageError(
                f"The real clock of {host.name} cannot be struck: it {shares}.",
                'Leave out clock = "real": clocks of processes are then struck one by one.',
            )


def _own_boot() -> str:
    with suppress(OSError):
        return Path(_BOOT_ID).read_text().strip()
    return ""
