"""Bad links by the sending hosts' own kernels: Linux's netem, below a class for each peer.

On each host that sends over a bad link, the device that leads to the peer gets a tree of classes: one for everything
else, without a limit, and one for each peer, told by its address, with a netem of its own below (tc-netem(8)). The
tree is made anew at every change, host by host, so a change takes effect within a few milliseconds on all of them.
Packets of the type of service by which cuts are probed go with everything else.

Unlike the emulator's, netem's jitter lets packets of one link overtake each other.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.hosts.network.probe_marks import TOS_MASK, UNDEGRADED_TOS

__all__ = ["NETEM_HANDLE", "NETEM_TRIAL", "Netem", "netem_options", "shaping"]

_PATH = "PATH=$PATH:/usr/sbin:/sbin"
NETEM_TRIAL = f"{_PATH} unshare --net tc qdisc add dev lo root netem delay 1ms"
"""Succeeds where netem is there: it is tried in a network namespace that goes with the command."""

NETEM_HANDLE = "fa17:"
"""The handle of the harness's own tree of classes on a device."""
_REST = 1
_FIRST = 16
_UNLIMITED = "rate 100gbit quantum 60000"
_WAITING_PACKETS_MAX = 100_000


def netem_options(quality: LinkQuality) -> str:
    """Return the options of tc for a link of `quality`."""
    words = [f"netem limit {_WAITING_PACKETS_MAX}"]
    if quality.delay_us or quality.jitter_us:
        # netem spreads jitter to both sides of the delay; ours comes on top of it.
        half_us = quality.jitter_us // 2
        words.append(f"delay {quality.delay_us + half_us}us {half_us}us")
    shares = {name: getattr(quality, name) for name in ("loss", "duplicate", "reorder", "corrupt")}
    words += [f"{name} {share * 100:g}%" for name, share in shares.items() if share]
    if quality.rate_kbit_per_s:
        words.append(f"rate {quality.rate_kbit_per_s}kbit")
    return " ".join(words)


def shaping(
    device: str, qualities: Mapping[str, LinkQuality], options: Callable[[LinkQuality], str] = netem_options
) -> str:
    """Return commands for `tc -batch` that give the ways from `device` to these addresses alone their qualities."""
    head = f"dev {device} parent {NETEM_HANDLE}"
    lines = [
        f"qdisc add dev {device} root handle {NETEM_HANDLE} htb default {_REST}",
        f"class add {head} classid {NETEM_HANDLE}{_REST} htb {_UNLIMITED}",
        f"filter add {head} protocol ip prio 1 u32 match ip tos {UNDEGRADED_TOS:#x} {TOS_MASK:#x} "
        f"flowid {NETEM_HANDLE}{_REST}",
    ]
    for number, (address, quality) in enumerate(sorted(qualities.items()), _FIRST):
        place = f"{NETEM_HANDLE}{number:x}"
        lines += [
            f"class add {head} classid {place} htb {_UNLIMITED}",
            f"qdisc add dev {device} parent {place} {options(quality)}",
            f"filter add {head} protocol ip prio 2 u32 match ip dst {address}/32 flowid {place}",
        ]
    return "".join(f"{line}\n" for line in lines)


class Netem:
    """The links between the hosts of `fleet`, as the senders' kernels make them. `options` names what does it."""

    capabilities = frozenset({"loss", "delay", "duplicate", "reorder", "corrupt", "rate"})
    means = "netem on the sending hosts"

    def __init__(self, fleet: Fleet, options: Callable[[LinkQuality], str] = netem_options) -> None:
        self._fleet = fleet
        self._options = options
        self._shaped: dict[str, frozenset[str]] = {}

    def apply(self, bad: Mapping[HostLink, LinkQuality]) -> None:
        """Let exactly these links be bad."""
        wanted: dict[str, dict[str, LinkQuality]] = {}
        for (source, target), quality in bad.items():
            wanted.setdefault(source, {})[self._fleet.hosts[target].address] = quality

        def shape(connection: Connection) -> None:
            name = connection.host.name
            if name in wanted or self._shaped.get(name):
                self._shape(connection, wanted.get(name, {}))

        self._fleet.each(shape)

    def close(self) -> None:
        """Take our classes away wherever they were made; a host that cannot be reached any more keeps them."""
        for name in [name for name, devices in self._shaped.items() if devices]:
            with suppress(HostError):
                self._shape(self._fleet[name], {})

    def _shape(self, connection: Connection, qualities: Mapping[str, LinkQuality]) -> None:
        name = connection.host.name
        by_device: dict[str, dict[str, LinkQuality]] = {}
        for address, quality in qualities.items():
            by_device.setdefault(_device(connection, address), {})[address] = quality
        for device in self._shaped.get(name, frozenset()):
            connection.run(f"{_PATH} tc qdisc del dev {shlex.quote(device)} root", root=True, check=False)
        self._shaped[name] = frozenset(by_device)
        for device, chosen in by_device.items():
            _refuse_to_replace(connection, device)
            batch = shaping(device, chosen, self._options).encode()
            connection.run(f"{_PATH} tc -batch -", stdin=batch, root=True)


def _device(connection: Connection, address: str) -> str:
    """Return the device by which the host sends to `address`."""
    words = connection.run(f"{_PATH} ip -o route get {shlex.quote(address)}").text.split()
    return words[words.index("dev") + 1]


def _refuse_to_replace(connection: Connection, device: str) -> None:
    """Refuse to take away a queueing discipline that is not ours. Raises HarnessError."""
    there = connection.run(f"{_PATH} tc qdisc show dev {shlex.quote(device)} root").text
    # What the kernel put there by itself has the handle 0.
    if there and " 0: " not in f"{there} ":
        raise HarnessError(
            f"On {connection.host.name}, {device} has a queueing discipline of its own: {there.splitlines()[0]}.",
            "Remove it, or leave packet faults out.",
        )
