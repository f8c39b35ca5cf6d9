"""The addresses of the hosts of a set, and the links that connect this machine with them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.machines.host import HOSTS_MAX
from faultline.harness.world.hosts.namespaces.files import Site
from faultline.harness.world.hosts.namespaces.supervisor import Supervisor

__all__ = ["link_address", "plug_in", "sites"]

_SETS_MAX = 200
_NETWORK, _MANAGEMENT = 18, 19
"""Networks are 198.18.K.0/24 for nodes and clients, 198.19.K.0/24 for SSH."""


def sites(number: int, count: int) -> list[Site]:
    """Return the places of the hosts of set `number`."""
    everyone = tuple((f"n{index}", _address(_NETWORK, number, index)) for index in range(1, count + 1))
    return [
        Site(
            name=name,
            address=address,
            everyone=everyone,
            link_address=link_address(number, index),
            management_address=_address(_MANAGEMENT, number, index),
            management_link_address=_link_address(_MANAGEMENT, number, index),
        )
        for index, (name, address) in enumerate(everyone, 1)
    ]


def link_address(number: int, index: int) -> str:
    """Return the hardware address of a host; the same after a reboot, so that the others' address tables stay right."""
    return _link_address(_NETWORK, number, index)


def plug_in(supervisor: Supervisor) -> int:
    """Connect this machine with both bridges, under the first number no other set has; the link's name is the lock."""
    for number in range(_SETS_MAX):
        if not _is_free(number):
            continue
        made = _make_link(supervisor, f"faultline{number}", f"control{number}")
        if made.returncode == 0:
            _require(_make_link(supervisor, f"faultline{number}m", f"manage{number}"))
            supervisor.plug(f"control{number}", "br0")
            supervisor.plug(f"manage{number}", "br1")
            wiring = _wiring(_NETWORK, number, f"faultline{number}") + _wiring(
                _MANAGEMENT, number, f"faultline{number}m"
            )
            _require(_ip("-batch", "-", stdin=wiring))
            return number
        if "exists" not in made.stderr:
            _require(made)
    raise HarnessError(f"There are {_SETS_MAX} sets of hosts on this machine already.", "End one of them.")


def _make_link(supervisor: Supervisor, link: str, far: str) -> subprocess.CompletedProcess[str]:
    return _ip("link", "add", link, "type", "veth", "peer", "name", far, "netns", str(supervisor.pid))


def _wiring(network: int, number: int, link: str) -> str:
    """Return commands for our end of a link: its address, and the address of each host.

    Told beforehand, since a machine that asks for a host which is not up yet waits a second before it asks again.
    """
    known = [
        f"neigh replace {_address(network, number, index)} lladdr {_link_address(network, number, index)} "
        f"dev {link} nud permanent"
        for index in range(1, HOSTS_MAX + 1)
    ]
    return "\n".join([f"addr add 198.{network}.{number}.1/24 dev {link}", f"link set {link} up", *known, ""])


def _address(network: int, number: int, index: int) -> str:
    return f"198.{network}.{number}.{10 + index}"


def _link_address(network: int, number: int, index: int) -> str:
    return f"02:00:c6:{network:02x}:{number:02x}:{index:02x}"


def _is_free(number: int) -> bool:
    routes = _ip("-4", "route", "show", "root", f"198.{_NETWORK}.{number}.0/24")
    return not routes.stdout.strip() and not Path(f"/sys/class/net/faultline{number}").exists()


def _ip(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], input=stdin, capture_output=True, text=True, check=False)


def _require(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise HarnessError(
            f"The link to the hosts cannot be made: `{' '.join(done.args)}` said {done.stderr.strip()}.",
            "Does this machine allow links of its own (in a container: --privileged)?",
        )
