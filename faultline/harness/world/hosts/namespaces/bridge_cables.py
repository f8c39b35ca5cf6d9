"""The cables between hosts of namespaces and their bridge, pulled at the bridge's end."""

from __future__ import annotations

import subprocess

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.namespaces.supervisor import Supervisor

__all__ = ["BridgeCables"]


class BridgeCables:
    """The cables of the hosts under `supervisor`; `fleet` reaches them over their management ports."""

    refusal = ""

    def __init__(self, supervisor: Supervisor, fleet: Fleet) -> None:
        self._supervisor = supervisor
        self._fleet = fleet

    def take_down(self, host: str) -> None:
        """Take the bridge's port to the host down."""
        self._set(host, "down")

    def bring_up(self, host: str) -> None:
        """Bring the bridge's port up again; it forwards at once, since the bridge looks for no loops."""
        self._set(host, "up")

    def is_down(self, host: str) -> bool:
        """Return whether the host's kernel says that its end has no carrier."""
        return "NO-CARRIER" in self._fleet[host].run("PATH=$PATH:/usr/sbin:/sbin ip -o link show dev eth0").text

    def _set(self, host: str, state: str) -> None:
        command = ["nsenter", f"--net={self._supervisor.network}", "ip", "link", "set", host, state]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise HarnessError(f"The link of {host} cannot be set {state}: {done.stderr.strip()}.", "Is the host on?")
