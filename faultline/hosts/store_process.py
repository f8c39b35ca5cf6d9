"""One process of a store that is a program of its own, on a host: started by its command line, held by its number.

A shell stays beside the store and reads the SSH channel: when that ends, because the harness has ended, it kills the
store. So stores have the same lifeline as nodes, although they know nothing of it.
"""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.world.real.node_process import NodeConfig
from faultline.hosts.connection import Connection
from faultline.hosts.remote_process import START_TIMEOUT_S, RemoteProcess

__all__ = ["StoreProcess"]

_POLL_S = 0.02


class StoreProcess(RemoteProcess):
    """A `HeldProcess` without a control channel. `command` is asked at each start, `up_port` tells that it is up."""

    def __init__(
        self,
        node_id: str,
        connection: Connection,
        remote: str,
        folder: Path,
        command: Callable[[], Sequence[str]],
        *,
        up_port: int,
        client_port: int,
    ) -> None:
        super().__init__(node_id, connection, remote, folder)
        self._command = command
        self._up_port = up_port
        self._client_port = client_port

    def spawn(self, config: NodeConfig) -> None:
        """Start the store; its command line is all the configuration it has."""
        command = " ".join(map(shlex.quote, self._command()))
        script = (
            f"cd {self._quoted('')} && rm -f node.pid && exec 3<&0; "
            f"{command} >>node.log 2>&1 </dev/null 3<&- & store=$!; echo $store >node.pid; "
            "{ cat <&3; kill -KILL $store; } >/dev/null 2>&1 & "
            "exec 3<&-; wait $store"
        )
        self._begin(self._connection.open(f"/bin/sh -c {shlex.quote(script)}"))

    def wait_until_up(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the store takes connections of its peers. Raises HarnessError with the end of its log."""
        deadline_s = time.monotonic() + timeout_s
        while not self._answers():
            if time.monotonic() > deadline_s or self._has_ended():
                raise HarnessError(
                    f"{self.node_id} did not come up on {self._connection.host.name}: {self.log_tail()}",
                    f"See {self.remote}/node.log there.",
                )
            time.sleep(_POLL_S)
        self._pid = self._read_pid()
        self.port = self._client_port

    def _answers(self) -> bool:
        try:
            socket.create_connection((self._connection.host.address, self._up_port), 0.5).close()
        except OSError:
            return False
        return True
