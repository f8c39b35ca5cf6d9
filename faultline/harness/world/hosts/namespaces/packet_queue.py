"""Degraded links between hosts of namespaces, by a program that the kernel hands their packets to (NFQUEUE).

For kernels without netem. One rule per degraded link stands in the bridge's namespace, all of them replaced in one
step; the packets they pick go to the link emulator, a process among the supervisor's. A link that becomes bad is told
to the emulator before its rule is there, and one that becomes healthy before its rule goes, so packets are never handed
to a program that does not know what to do with them.

The rules are legacy iptables, which see bridged packets with the ports they pass; nftables has no such thing for
bridges in kernels without `NFT_QUEUE`.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.namespaces.emulation_orders import Answer, LinkReport, LinkSetting, Order
from faultline.harness.world.hosts.namespaces.netfilter_queue import NETFILTER, bind_request, decoded
from faultline.harness.world.hosts.namespaces.own_network import BUFFER_BYTES, enlarge_buffers, made_in
from faultline.harness.world.hosts.namespaces.requirements import find_program
from faultline.harness.world.hosts.namespaces.supervisor import Supervisor
from faultline.harness.world.hosts.network.links import HostLink

__all__ = ["PacketQueue", "queue_rules", "reason_against_queues"]

_HEALTHY = LinkQuality()
_SERVICE = "link-emulator"
_START_TIMEOUT_S = 20.0
_ANSWER_TIMEOUT_S = 20.0
_POLL_S = 0.005
_TRIED_QUEUE = 65_000


def queue_rules(queues: Mapping[HostLink, int]) -> str:
    """Return the input of iptables-restore under which exactly the packets of these links go to their queues."""
    rules = [
        f"-A FORWARD -m physdev --physdev-in {source} --physdev-out {target} -j NFQUEUE --queue-num {queue} "
        "--queue-bypass"
        for (source, target), queue in sorted(queues.items())
    ]
    return "\n".join(["*mangle", *rules, "COMMIT", ""])


def reason_against_queues(supervisor: Supervisor) -> str:
    """Try it in the bridge's namespace: why packets cannot be handed over there; empty when they can."""
    program = _restore_program()
    if program is None:
        return "the program iptables-legacy-restore is missing (apt-get install iptables)"
    tried = _restore(supervisor, program, queue_rules({("faultline-a", "faultline-b"): _TRIED_QUEUE}))
    untried = _restore(supervisor, program, queue_rules({}))
    if tried.returncode or untried.returncode:
        said = (tried.stderr + untried.stderr).strip().splitlines()
        return f"iptables takes no NFQUEUE rule ({said[0] if said else 'it said nothing'})"
    try:
        with made_in(
            supervisor.network, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER)
        ) as queues:
            enlarge_buffers(queues, BUFFER_BYTES)
            queues.send(bind_request(_TRIED_QUEUE))
            errors = [message.error for message in decoded(queues.recv(4096)) if message.error]
    except PermissionError:
        return "only the machine's root may give a socket the room that bursts of packets need"
    except OSError as error:
        return f"the kernel has no packet queues (CONFIG_NETFILTER_NETLINK_QUEUE: {error.strerror})"
    return f"the kernel refuses packet queues (error {errors[0]})" if errors else ""


class PacketQueue:
    """The degraded links of the hosts under `supervisor`; `link_addresses` are their hardware addresses by name."""

    def __init__(self, supervisor: Supervisor, link_addresses: Mapping[str, str]) -> None:
        self._supervisor = supervisor
        self._link_addresses = link_addresses
        names = list(link_addresses)
        links = [(source, target) for source in names for target in names if source != target]
        self._queues = {link: number for number, link in enumerate(links, 1)}
        self._program = _restore_program() or "iptables-legacy-restore"
        self._degraded: set[HostLink] = set()
        self._path = supervisor.folder / f"{_SERVICE}.socket"
        self._connection: socket.socket | None = None

    def degrade(self, qualities: Mapping[HostLink, LinkQuality]) -> None:
        """Give links these qualities; others stay as they are."""
        bad = {link for link, quality in qualities.items() if quality != _HEALTHY}
        degraded = (self._degraded - set(qualities)) | bad
        if not degraded and not self._degraded:
            return
        told = [self._setting(link, quality) for link, quality in qualities.items() if link in self._degraded | bad]
        self._ask(Order(links=tuple(told)))
        if degraded != self._degraded:
            self._install(degraded)
        self._degraded = degraded

    def start(self) -> None:
        """Start the emulator before it is needed, so that the first fault need not wait for it."""
        self._ask(Order())

    def reports(self) -> dict[HostLink, LinkReport]:
        """Return the reports of all links that were ever degraded."""
        if not self._path.exists():
            return {}
        return {(report.source, report.target): report for report in self._ask(Order()).links}

    def close(self) -> None:
        """Hang up; the emulator and its rules go with the supervisor."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _setting(self, link: HostLink, quality: LinkQuality) -> LinkSetting:
        source, target = link
        head = f"{self._link_addresses[target]}{self._link_addresses[source]}0800".replace(":", "")
        return LinkSetting(self._queues[link], source, target, head, quality)

    def _install(self, degraded: Iterable[HostLink]) -> None:
        done = _restore(self._supervisor, self._program, queue_rules({link: self._queues[link] for link in degraded}))
        if done.returncode:
            raise HarnessError(f"The bridge does not take the rules for degraded links: {done.stderr.strip()}.")

    def _ask(self, order: Order) -> Answer:
        if self._connection is None:
            self._connection = self._connect()
        try:
            self._connection.sendall(msgspec.json.encode(order) + b"\n")
            with self._connection.makefile("rb") as stream:
                line = stream.readline()
        except OSError as error:
            raise self._lost(str(error)) from error
        if not line:
            raise self._lost("it has ended")
        answer = msgspec.json.decode(line, type=Answer)
        if answer.problem:
            raise HarnessError(f"Links cannot be degraded: {answer.problem}.", "Leave packet faults out.")
        return answer

    def _lost(self, why: str) -> HarnessError:
        log = (self._supervisor.folder / f"{_SERVICE}.log").read_text(errors="replace").strip().splitlines()
        said = log[-1] if log else "it said nothing"
        return HarnessError(f"The process that degrades links does not answer ({why}): {said}.", "Run it again.")

    def _connect(self) -> socket.socket:
        """Start the emulator the first time, and wait until it takes orders."""
        if not self._path.exists():
            command = [sys.executable, "-m", "faultline.harness.world.hosts.namespaces.link_emulator", str(self._path)]
            self._supervisor.serve(_SERVICE, f"PYTHONPATH={shlex.quote(':'.join(sys.path))} exec {shlex.join(command)}")
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while not self._path.exists():
            if time.monotonic() > deadline_s:
                raise self._lost("it did not come up")
            time.sleep(_POLL_S)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_ANSWER_TIMEOUT_S)
        try:
            connection.connect(str(self._path))
        except OSError as error:
            connection.close()
            raise self._lost(str(error)) from error
        return connection


def _restore_program() -> str | None:
    return find_program("iptables-legacy-restore") or find_program("iptables-restore")


def _restore(supervisor: Supervisor, program: str, rules: str) -> subprocess.CompletedProcess[str]:
    """Replace the mangle table beside the bridge as a whole."""
    command = ["nsenter", f"--net={supervisor.network}", program, "--wait"]
    # The machine's own lock is for its own rules, and only root may take it.
    environment = os.environ | {"XTABLES_LOCKFILE": str(supervisor.folder / "xtables.lock")}
    return subprocess.run(command, input=rules, capture_output=True, text=True, check=False, env=environment)
