"""One member of a store that is a program of its own, on a host: started by its command line under a supervisor.

The supervisor (`supervisor.py`) stays beside the store and reads the SSH channel: when that ends, because the harness
has ended, it kills the store. So stores have the same lifeline as nodes, although they know nothing of it. A member may
be any number of processes; kill, pause and resume act on all that the supervisor has under it.
"""

from __future__ import annotations

import shlex
import socket
import time
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import CommandFailed, HostError, UnreadableAnswer
from faultline.harness.world.hosts.processes import supervisor as supervisor
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.local.node_process import NodeConfig

__all__ = ["StoreProcess"]

_POLL_S = 0.02
_PREPARATION_TIMEOUT_S = 120.0
_TROUBLE = r"fatal|panic|error|fail|cannot|could not|can't|unable|denied|invalid|in use|no such|not found"
_EXCERPT_FROM_LINES = 40
_EXCERPT_CHARACTERS = 300
_TREE = 'tree() { for p; do echo "$p"; tree $(cat /proc/"$p"/task/*/children 2>/dev/null); done; }; '
"""A shell function: its arguments, each with everything under it as the kernel knows it."""


class StoreProcess(RemoteProcess):
    """A `HeldProcess` without a control channel: `store`'s member at `place`."""

    def __init__(
        self, store: HostedStore, place: StorePlace, connection: Connection, folder: Path, secret: RunSecret
    ) -> None:
        super().__init__(place.node, connection, place.folder, folder, secret)
        self.store = store
        self.place = place
        self.founding_lines: int | None = None
        """The number of lines that the member had logged when the cluster served for the first time; None before."""

    def install(self) -> None:
        """Write the member's files and prepare it, once, before its first start. Raises HarnessError."""
        if self._answers():
            raise HarnessError(
                f"{self.node_id} cannot start on {self._connection.host.name}: something else listens on its port "
                f"{self.store.up_port} already.",
                f"See there: ss -ltnp 'sport = :{self.store.up_port}'",
            )
        source = Path(supervisor.__file__).read_bytes()
        files = {name: text.encode() for name, text in self.store.files(self.place).items()} | {"supervisor.py": source}
        folders = sorted({str(Path(name).parent) for name in files} - {"."})
        if folders:
            self._connection.run("mkdir -p " + " ".join(self._quoted(name) for name in folders))
        for name, content in files.items():
            self._connection.upload(content, f"{self.remote}/{name}")
        script = self.store.preparation(self.place)
        if not script:
            return
        try:
            self._connection.run(
                f"cd {self._quoted('')} && {{ {script}\n}} >>node.log 2>&1", timeout_s=_PREPARATION_TIMEOUT_S
            )
        except CommandFailed as error:
            raise HarnessError(
                f"{self.node_id} could not be prepared on {self._connection.host.name} "
                f"(exit code {error.exit_code}): {self.log_tail()}",
                f"See {self.log}.",
            ) from error

    def spawn(self, config: NodeConfig) -> None:
        """Start the store; its command line is all the configuration it has."""
        command = shlex.join([*self.launcher, *self.store.command(self.place)])
        script = f"cd {self._quoted('')} && echo $$ >node.pid && exec python3 supervisor.py {command} >>node.log 2>&1"
        self._begin(self._connection.open(f"/bin/sh -c {shlex.quote(script)}"))

    def wait_until_up(self, timeout_s: float | None = None) -> None:
        """Wait until the store takes connections of its peers. Raises HarnessError with the end of its log."""
        deadline_s = time.monotonic() + (timeout_s or self.store.serving_timeout_s)
        while not self._answers():
            if time.monotonic() > deadline_s or self._has_ended():
                raise HarnessError(
                    f"{self.node_id} did not come up on {self._connection.host.name}: {self.log_tail()}",
                    f"See {self.log}.",
                )
            time.sleep(_POLL_S)
        self._pid = self._read_pid()
        self.port = self.store.client_port

    def note_founded(self) -> None:
        """The cluster serves: what the member has logged until now tells how it came about."""
        said = self._connection.run(f"wc -l <{self._quoted('node.log')}").text
        if not said.isdecimal():
            raise UnreadableAnswer(self._connection.host.name, f"the length of {self.node_id}'s log", said.encode())
        self.founding_lines = int(said)

    def log_tail(self) -> str:
        """Return the log's end as one line: the last lines that tell of trouble, each with what follows."""
        tail = f"tail -n {_EXCERPT_FROM_LINES} {self._quoted('node.log')}"
        script = f"{tail} | grep -iE -A 3 {shlex.quote(_TROUBLE)} | tail -n 4 | cut -c -{_EXCERPT_CHARACTERS}"
        try:
            said = self._secret.redacted(self._connection.run(script, check=False).stdout)
        except HostError as error:
            return f"its log cannot be read: {error.message}"
        lines = said.decode(errors="replace").split("\n")
        return " / ".join(line.strip() for line in lines if line.strip()) or super().log_tail()

    def processes(self) -> list[int]:
        """Return the numbers of all the member's processes, parents first, as its host's kernel knows them."""
        said = self._connection.run(f"{_TREE}tree {self._known_pid()}").text.split()
        return [int(pid) for pid in said[1:]]

    def is_paused(self) -> bool:
        """Return whether all of the member's processes are stopped, as the host's kernel sees them."""
        if self._channel is None or self._pid is None:
            return False
        # The name in parentheses may hold blanks; the state is the first field after it.
        script = f"{_TREE}for p in $(tree {self._pid} | tail -n +2); do sed 's/.*) //; s/ .*//' /proc/$p/stat; done"
        # A process may end while it is looked at; what it was does not matter then.
        states = set(self._connection.run(f"{{ {script}; }} 2>/dev/null; true").text.split()) - {"Z", "X"}
        return states == {"T"}

    def _signal(self, name: str, pid: int) -> None:
        """Send a signal to all of the member's processes; twice, for those that were begotten meanwhile."""
        send = f"kill -{name} $(tree {pid} | tail -n +2) 2>/dev/null"
        self._connection.run(f"{_TREE}{send}; {send}; true", root=True)

    def _answers(self) -> bool:
        try:
            socket.create_connection((self.place.address, self.store.up_port), 0.5).close()
        except OSError:
            return False
        return True
