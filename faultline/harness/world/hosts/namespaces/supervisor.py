"""The harness's end of a supervisor: the process whose life is the life of a set of hosts (see `supervisor.sh`).

The harness holds the write end of the supervisor's standard input and nothing else. So there is no clean-up that a
crash, SIGTERM or SIGKILL of the harness could leave out: the stream ends with it, and the supervisor takes everything
down.
"""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from faultline.harness.errors import HarnessError

__all__ = ["SETS", "Supervisor"]

SETS = "faultline-hosts-"
"""The beginning of the names of sets' folders, before the number of the process that made them."""

_SCRIPT = Path(__file__).with_name("supervisor.sh")
_UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")
_END_TIMEOUT_S = 20.0


class Supervisor:
    """A running supervisor over `folder`. Raises HarnessError with what it said when it does not come up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        # A session of its own: Ctrl-C is meant for the harness, which decides when the hosts go.
        with (folder / "supervisor.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*_UNSHARE, "/bin/sh", str(_SCRIPT), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                text=True,
            )
        self._expect("ready")

    @property
    def pid(self) -> int:
        """The process whose network namespace is the bridge's and whose mount namespace is the supervisor's."""
        return self._process.pid

    @property
    def network(self) -> Path:
        """The network namespace of the bridge."""
        return Path(f"/proc/{self.pid}/ns/net")

    def network_of(self, outer_pid: int) -> Path:
        """Return the network namespace of the host that `start` answered with `outer_pid`."""
        return self.process_of(outer_pid) / "ns" / "net"

    def process_of(self, outer_pid: int) -> Path:
        """Return the entry in /proc of the host's outermost process, as seen from here."""
        # The number counts in the supervisor's pid namespace, so it is looked up in the supervisor's own /proc.
        return Path(f"/proc/{self.pid}/root/proc/{outer_pid}")

    def start(self, host: str) -> int:
        """Start the host; returns the number of its outermost process among the supervisor's."""
        return int(self._ask(f"start {host}", "started").split()[1])

    def stop(self, host: str) -> None:
        """Power the host off."""
        self._ask(f"stop {host}", "stopped")

    def plug(self, link: str, bridge: str) -> None:
        """Join `link`, which must be in the bridge's namespace, to the bridge."""
        self._ask(f"plug {link} {bridge}", "plugged")

    def serve(self, name: str, script: str) -> None:
        """Run the shell script in the bridge's namespace until everything is taken down; what it says goes to a log."""
        (self.folder / f"{name}.sh").write_text(f"{script}\n")
        self._ask(f"serve {name}", "serving")

    def close(self) -> None:
        """Take everything down, and wait until it is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, command: str, answer: str) -> str:
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()
            return self._expect(answer)

    def _expect(self, answer: str) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith(answer):
            said = (self.folder / "supervisor.log").read_text(errors="replace").strip() or "it said nothing"
            self.close()
            raise HarnessError(
                f"The namespaces for the hosts cannot be made: {' / '.join(said.splitlines())}.",
                "Does this machine allow them (in a container: --privileged)? Otherwise use --world local.",
            )
        return line
