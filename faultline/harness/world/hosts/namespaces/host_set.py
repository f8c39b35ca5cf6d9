"""A set of hosts made of namespaces: `--hosts namespaces:3`.

    198.18.K.1 ──── br0 ──── n1 198.18.K.11      K tells the sets on one machine apart; 198.18.0.0/15 is set aside
    this machine     ├────── n2 198.18.K.12      for tests of networks (RFC 2544), so no real network has it
                     └────── n3 198.18.K.13

Each host has network, mount, pid, uts and ipc namespaces of its own and its own sshd. The bridge is in a namespace of
its own too, where link faults are put: no rule of ours ever stands in the machine's own firewall. No route leads out.

SSH comes over a second network, 198.19.K.0/24 over a bridge of its own, as a machine's management port does: whatever
is done to the network of nodes and clients, the harness can still look at the hosts.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import paramiko

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.machines.abilities import Abilities
from faultline.harness.world.hosts.machines.errors import HostUnreachable
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.machines.host import Host
from faultline.harness.world.hosts.namespaces.bridge_cables import BridgeCables
from faultline.harness.world.hosts.namespaces.datagrams import DatagramProbe
from faultline.harness.world.hosts.namespaces.degraded_links import QueuedLinks
from faultline.harness.world.hosts.namespaces.disks import NamespaceDisks
from faultline.harness.world.hosts.namespaces.files import Site, write_host
from faultline.harness.world.hosts.namespaces.packet_queue import PacketQueue, reason_against_queues
from faultline.harness.world.hosts.namespaces.quality_probe import QualityProbe
from faultline.harness.world.hosts.namespaces.requirements import find_program, missing_requirements
from faultline.harness.world.hosts.namespaces.supervisor import SETS, Supervisor
from faultline.harness.world.hosts.namespaces.switch import Switch
from faultline.harness.world.hosts.namespaces.wiring import link_address, plug_in, sites
from faultline.harness.world.hosts.network.cables import Cables
from faultline.harness.world.hosts.network.host_connections import HostConnections
from faultline.harness.world.hosts.network.links import LinkFaults, LinkQualities, NoLinkFaults, NoLinkQualities
from faultline.harness.world.hosts.network.netem import NETEM_TRIAL, Netem
from faultline.harness.world.hosts.network.remote_qualities import RemoteQualities
from faultline.harness.world.hosts.storage.disks import HostDisks

__all__ = ["NamespaceHosts"]

_UP_TIMEOUT_S = 10.0
_POLL_S = 0.005


class NamespaceHosts:
    """`count` hosts, up when this returns. Close it, or end the process: either way nothing is left."""

    shares_clock = True

    def __init__(self, count: int) -> None:
        _refuse_where_impossible()
        # Not below a folder that the hosts have a layer over: they would not see each other's writes there, nor we.
        folder = Path(tempfile.mkdtemp(prefix=f"{SETS}{os.getpid()}-", dir="/tmp"))
        # To be passed through, not read: some stores refuse to run as root, and must get at their own folders.
        folder.chmod(0o711)
        try:
            self.supervisor = Supervisor(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            self._number = plug_in(self.supervisor)
            self.hosts = self._write(folder, count)
            self._outer = {host.name: self.supervisor.start(host.name) for host in self.hosts}
            self.fleet = Fleet(self.hosts)
            self._wait_until_up(self.hosts)
            self.links = self._make_links()
            self.abilities = Abilities(self.fleet, folder.name)
            self.qualities = self._make_qualities()
            self.connections = HostConnections(self.fleet)
            self.disks: HostDisks = self._make_disks()
            self.cables: Cables = BridgeCables(self.supervisor, self.fleet)
        except BaseException:
            self.supervisor.close()
            raise

    def network_of(self, name: str) -> Path:
        """Return the network namespace of the host `name`, as a file to enter it by."""
        return self.supervisor.network_of(self._outer[name])

    def process_of(self, name: str) -> Path:
        """Return the entry in /proc of the outermost process of the host `name`."""
        return self.supervisor.process_of(self._outer[name])

    def is_running(self, name: str) -> bool:
        """Return whether the host's outermost process exists."""
        return self.process_of(name).exists()

    def power_off(self, name: str) -> None:
        """End all processes of the host at once; its files stay, also those of its own /etc and /var.

        What its disk, if it has one, was not told to flush is not lost by this: see `disks`.
        """
        self.supervisor.stop(name)

    def power_on(self, name: str) -> None:
        """Start a host that was powered off, over the same files."""
        self._outer[name] = self.supervisor.start(name)
        self._wait_until_up([host for host in self.hosts if host.name == name])

    def close(self) -> None:
        """Take all hosts down and wait until they are gone."""
        try:
            self.links.close()
            self.qualities.close()
        finally:
            self.fleet.close()
            self.supervisor.close()

    def _make_qualities(self) -> LinkQualities:
        # One kernel serves all hosts, so one trial tells for each of them.
        if not subprocess.run(["/bin/sh", "-c", NETEM_TRIAL], capture_output=True, check=False).returncode:
            return RemoteQualities(self.fleet, shares_clock=True, chosen=Netem(self.fleet))
        reason = reason_against_queues(self.supervisor)
        if reason:
            return NoLinkQualities(reason)
        addresses = {host.name: host.address for host in self.hosts}
        links = {host.name: link_address(self._number, index) for index, host in enumerate(self.hosts, 1)}
        return QueuedLinks(PacketQueue(self.supervisor, links), QualityProbe(addresses, self.network_of))

    def _make_disks(self) -> NamespaceDisks:
        return NamespaceDisks(
            self.supervisor.folder,
            Path(f"/proc/{self.supervisor.pid}"),
            self.process_of,
            stop=self.power_off,
            start=self.power_on,
            is_running=self.is_running,
        )

    def _make_links(self) -> LinkFaults:
        nft = find_program("nft")
        if nft is None:
            return NoLinkFaults("the program nft is missing (apt-get install nftables)")
        probe = DatagramProbe({host.name: host.address for host in self.hosts}, self.network_of)
        try:
            return Switch(self.supervisor.network, nft, probe)
        except HarnessError as error:
            return NoLinkFaults(error.message.rstrip("."))

    def _write(self, folder: Path, count: int) -> tuple[Host, ...]:
        key = paramiko.ECDSAKey.generate()
        key.write_private_key_file(str(folder / "id"))
        sshd = find_program("sshd") or "/usr/sbin/sshd"
        every_site = sites(self._number, count)
        hosts, known = [], []
        for site in every_site:
            user_key = f"{key.get_name()} {key.get_base64()}"
            files = write_host(folder / site.name, folder / "layers", site, user_key, sshd)
            known.append(files.known_hosts_line)
            hosts.append(_host(folder, site, files.work))
        (folder / "known_hosts").write_text("".join(f"{line}\n" for line in known))
        return tuple(hosts)

    def _wait_until_up(self, hosts: tuple[Host, ...] | list[Host]) -> None:
        deadline_s = time.monotonic() + _UP_TIMEOUT_S
        for host in hosts:
            while not _answers(host):
                if time.monotonic() > deadline_s:
                    raise HostUnreachable(
                        host.name,
                        f"The host {host.name} did not come up within {_UP_TIMEOUT_S:g} s: {self._log(host.name)}.",
                        "`faultline doctor --hosts namespaces:1` says what this machine allows.",
                    )
                time.sleep(_POLL_S)

    def _log(self, name: str) -> str:
        logs = (self.supervisor.folder / name / "init.log", self.supervisor.folder / name / "sshd.log")
        said = [line for log in logs if log.exists() for line in log.read_text(errors="replace").splitlines()]
        return " / ".join(said[-5:]) or "it said nothing"


def _refuse_where_impossible() -> None:
    found = missing_requirements()
    if found:
        reasons = "; ".join(missing.what for missing in found)
        next_step = " ".join(missing.next_step for missing in found)
        raise HarnessError(f"Hosts of namespaces cannot be made here: {reasons}.", next_step)


def _host(folder: Path, site: Site, work: Path) -> Host:
    return Host(
        name=site.name,
        address=site.address,
        ssh_address=site.management_address,
        key=str(folder / "id"),
        known_hosts=(str(folder / "known_hosts"),),
        folder=str(work),
        python=sys.executable,
        python_path=":".join(filter(None, sys.path)),
    )


def _answers(host: Host) -> bool:
    with suppress(OSError), socket.create_connection((host.way_in, host.port), 0.05) as connection:
        connection.settimeout(1.0)
        return connection.recv(4) == b"SSH-"
    return False
