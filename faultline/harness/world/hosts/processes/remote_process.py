"""One node process on a host, held over SSH as `harness.world.local.process` holds one on this machine.

The control channel is the SSH channel of the command that started the node, and it is the lifeline here too: when the
harness ends or the connection breaks, the node reads the end of the stream and ends. (A node that is stopped at that
moment cannot; on hosts of namespaces it goes with the host, elsewhere it waits until it is let go on.)

Signals and probes are commands of their own: what they report is what the host's kernel says.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError, UnreadableAnswer
from faultline.harness.world.local.control import ControlChannel
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.local.node_process import ANSWERS_DESCRIPTOR, NodeConfig
from faultline.harness.world.local.process import START_TIMEOUT_S

__all__ = ["RemoteProcess"]

SIGNAL_TIMEOUT_S = 5.0
_POLL_S = 0.005
_LOG_TAIL_BYTES = 600
_GONE = "gone"
_DEAD = (_GONE, "Z", "X")
_NO_CODE = -1
_KILLED_BY_KERNEL = (_NO_CODE, 128 + 9)
"""The codes of SSH for a process that a signal ended, and of a shell or supervisor for one that SIGKILL ended."""


class RemoteProcess:
    """The life of one node over any number of starts. Its files are in `remote` there, and come to `folder` at the end.
    `launcher` are the words before its command, of a program that becomes it.

    Implements `faultline.harness.world.local.process.HeldProcess`.
    """

    def __init__(self, node_id: str, connection: Connection, remote: str, folder: Path, secret: RunSecret) -> None:
        self.node_id = node_id
        self._secret = secret
        self.remote = remote
        self.log = folder / "node.log"
        self.trace = folder / "trace.jsonl"
        self.port: int | None = None
        self.starts = 0
        self.is_frozen = False
        self.is_short_of_memory = False
        self.ends_for_memory = 0
        """The number of times that the kernel killed it for want of memory while it was squeezed."""
        self.launcher: tuple[str, ...] = ()
        self._connection = connection
        self._guard = threading.Lock()
        self._crashes: list[int] = []
        self._connection_broke = False
        self._expected_to_live = False
        self._channel: Any = None
        self._control: ControlChannel | None = None
        self._pid: int | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def prepare(self) -> None:
        """Make the node's folder on the host, without anything an earlier run left there."""
        own = self._quoted("")
        # Others on the machine have no business there: a store's password stands in its files.
        self._connection.run(f"rm -rf {own} && mkdir -p {self._quoted('data')} && chmod 700 {own}")

    def spawn(self, config: NodeConfig) -> None:
        """Start the process; returns before the node is up."""
        self._connection.upload(msgspec.json.format(msgspec.json.encode(config)), f"{self.remote}/config.json")
        host = self._connection.host
        # The shell becomes the node, so that its number, written down first, is the node's.
        command = (
            f"cd {self._quoted('')} && echo $$ >node.pid && "
            f"PYTHONPATH={shlex.quote(host.python_path)} exec {shlex.join([*self.launcher, host.python])} "
            f"-m faultline.harness.world.local.node_process config.json {ANSWERS_DESCRIPTOR}>&1 >>node.log 2>&1"
        )
        self._begin(self._connection.open(command))
        self._control = ControlChannel(self._channel)
        self._control.hand_over(self._secret)

    def _begin(self, channel: Any) -> None:
        """Begin a start whose command runs in `channel`."""
        with self._guard:
            self._channel = channel
            self._expected_to_live = True
            self._pid = None
        self.starts += 1

    def wait_until_up(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the node listens. Raises HarnessError with the end of its log when it does not."""
        try:
            self.port = self.control.started(timeout_s).port
            self._pid = self._read_pid()
        except (TimeoutError, OSError) as error:
            raise HarnessError(
                f"The node {self.node_id} did not come up on {self._connection.host.name} within {timeout_s:g} s "
                f"({error}): {self.log_tail()}",
                f"See {self.remote}/node.log there, and what `faultline doctor --hosts ...` says.",
            ) from error

    def kill(self) -> None:
        """Send SIGKILL, and wait until the host's kernel no longer knows the process; harmless when it is gone."""
        self._note_crash()
        self._expected_to_live = False
        self.port = None
        if self._channel is not None:
            pid = self._pid or self._read_pid()
            self._signal("KILL", pid)
            self._wait_for(lambda: not self.is_alive())
            self._channel.close()
            self._channel = self._control = None

    def pause(self) -> None:
        """Send SIGSTOP, and wait until the host's kernel says that the process is stopped."""
        self._signal("STOP", self._known_pid())
        self._wait_for(self.is_paused)

    def resume(self) -> None:
        """Send SIGCONT, and wait until the host's kernel says that the process goes on."""
        self._signal("CONT", self._known_pid())
        self._wait_for(lambda: not self.is_paused())

    def expect_end(self) -> None:
        """Its host is about to lose power: that the process ends is no crash from now on.

        It is stopped, and not waited for: a file system that is cut off in the middle of a flush may tell the process
        that all is well, and a process that answers its client upon that would seem to lose an acknowledged write.
        """
        self._note_crash()
        self._expected_to_live = False
        self.port = None
        if self._pid is not None:
            self._signal("STOP", self._pid)

    def forget(self) -> None:
        """Its host is gone, and the process with it: nothing of it is asked any more, and the connection is dropped."""
        self._channel = self._control = None
        self._pid = None
        self._connection.drop()

    @property
    def control(self) -> ControlChannel:
        """The channel to the running node. Raises ConnectionError when there is none."""
        if self._control is None:
            raise ConnectionError(f"{self.node_id} is not running")
        return self._control

    def is_alive(self) -> bool:
        """Return whether the process exists, as the host's kernel sees it."""
        return self._kernel_state() not in _DEAD

    def is_paused(self) -> bool:
        """Return whether the process is stopped, as the host's kernel sees it."""
        return self._kernel_state() == "T"

    def take_crashes(self) -> list[int]:
        """Return the exit codes of processes that ended without being killed by us, each once."""
        self._note_crash()
        with self._guard:
            crashes, self._crashes = self._crashes, []
        return crashes

    def excuse_ends(self) -> int:
        """Return the number of ends that the host has told of, which are no crashes from now on.

        An end that a lost connection hides is not excused: it may be the node's own, or none at all.
        """
        self._note_crash()
        with self._guard:
            if self._connection_broke:
                return 0
            ends, self._crashes = self._crashes, []
        return len(ends)

    def note_end(self) -> None:
        """Take note when the process has ended: its host's kernel knows it before SSH tells how it ended."""
        if self._pid is not None and not self.is_alive():
            self._wait_for(self._has_ended)
        self._note_crash()

    def unreachable(self) -> str | None:
        """Return the reason why the end of the process is not known; None when its host has told of it."""
        if self._connection_broke:
            return f"the connection to {self._connection.host.name} broke"
        try:
            self._connection.run("true")
        except HostError as error:
            return error.message
        return None

    def log_tail(self) -> str:
        """Return the end of the node's log, as one line."""
        try:
            tail = self._connection.run(f"tail -c {_LOG_TAIL_BYTES} {self._quoted('node.log')}", check=False).stdout
        except HostError as error:
            return f"its log cannot be read: {error.message}"
        text = self._secret.redacted(tail).decode(errors="replace").strip()
        return " / ".join(text.split("\n")).strip(" /") or "its log is empty"

    def end(self) -> None:
        """Kill the node, and bring its log and trace here; what is on a host that cannot be reached any more stays."""
        with suppress(HostError):
            self.kill()
        for name, local in (("node.log", self.log), ("trace.jsonl", self.trace)):
            with suppress(HostError):
                self._connection.download(f"{self.remote}/{name}", local)
                self._redact(local)

    def _redact(self, file: Path) -> None:
        """Redact a log: a store may have logged its configuration, and others see the folder of a run."""
        content = file.read_bytes()
        redacted = self._secret.redacted(content)
        if redacted != content:
            file.write_bytes(redacted)

    def _signal(self, name: str, pid: int) -> None:
        self._connection.run(f"kill -{name} {pid} 2>/dev/null || true")

    def _has_ended(self) -> bool:
        return self._channel is None or bool(self._channel.exit_status_ready())

    def _note_crash(self) -> None:
        with self._guard:
            channel = self._channel
            if channel is not None and self._expected_to_live and channel.exit_status_ready():
                self._expected_to_live = False
                self.port = None
                code = channel.recv_exit_status()
                # SSH gives no code for a process that was killed, and none when the connection is lost.
                self._connection_broke = code == _NO_CODE and not channel.get_transport().is_active()
                is_for_memory = self.is_short_of_memory and code in _KILLED_BY_KERNEL
                if is_for_memory and not self._connection_broke:
                    self.ends_for_memory += 1
                else:
                    self._crashes.append(code)

    def _kernel_state(self) -> str:
        """Return the state letter of the process, or `gone`."""
        if self._channel is None or self._pid is None:
            return _GONE
        # The name in parentheses may hold blanks; the state is the first field after it.
        said = self._connection.run(f"cat /proc/{self._pid}/stat 2>/dev/null || echo ')' {_GONE}").text
        words = said.rpartition(")")[2].split()
        if not words:
            raise UnreadableAnswer(self._connection.host.name, f"the state of process {self._pid}", said.encode())
        return words[0]

    def _known_pid(self) -> int:
        if self._pid is None:
            raise HarnessError(f"The node {self.node_id} does not run, so it cannot be sent a signal.")
        return self._pid

    def _read_pid(self) -> int:
        said = self._connection.run(f"cat {self._quoted('node.pid')}").text
        if not said.isdecimal():
            raise UnreadableAnswer(
                self._connection.host.name, f"the file with the number of {self.node_id}", said.encode()
            )
        return int(said)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + SIGNAL_TIMEOUT_S
        while not condition() and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)

    def _quoted(self, name: str) -> str:
        return shlex.quote(f"{self.remote}/{name}".rstrip("/"))
