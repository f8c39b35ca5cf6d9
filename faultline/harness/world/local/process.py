"""One node process as the harness holds it: started, asked, stopped, continued, killed, and looked at."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Protocol

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.world.local.control import ControlChannel
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.local.node_process import NodeConfig

__all__ = ["START_TIMEOUT_S", "HeldProcess", "NodeProcess"]

START_TIMEOUT_S = 30.0
"""The time that a node may take to come up: its imports alone take a loaded machine seconds."""
SIGNAL_TIMEOUT_S = 5.0
_LOG_TAIL_CHARACTERS = 600


class HeldProcess(Protocol):
    """One node process as every real world holds it; `log` and `trace` are files of ours once the run has ended."""

    node_id: str
    log: Path
    trace: Path
    port: int | None
    starts: int

    @property
    def control(self) -> ControlChannel:
        """The channel to the running node. Raises ConnectionError when there is none."""

    def spawn(self, config: NodeConfig) -> None:
        """Start the process; returns before the node is up."""

    def wait_until_up(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the node listens. Raises HarnessError with the end of its log when it does not."""

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process is gone; harmless when it is already."""

    def pause(self) -> None:
        """Send SIGSTOP, and wait until the kernel says that the process is stopped."""

    def resume(self) -> None:
        """Send SIGCONT, and wait until the kernel says that the process goes on."""

    def is_alive(self) -> bool:
        """Return whether the process exists, as the kernel sees it."""

    def is_paused(self) -> bool:
        """Return whether the process is stopped, as the kernel sees it."""

    def take_crashes(self) -> list[int]:
        """Return the exit codes of processes that ended without being killed by us, each once."""

    def log_tail(self) -> str:
        """Return the end of the node's log, as one line."""

    def unreachable(self) -> str | None:
        """Return the reason why the machine of the process cannot be asked; None when it can."""


class NodeProcess:
    """The life of one node over any number of starts. `spawn` belongs in the thread that outlives the process.

    The kernel kills a node when the *thread* that started it ends (PR_SET_PDEATHSIG), which is why spawning and waiting
    for the node to be up are two calls.
    """

    def __init__(self, node_id: str, folder: Path, secret: RunSecret) -> None:
        self.node_id = node_id
        self._secret = secret
        self.folder = folder
        self.log = folder / "node.log"
        self.trace = folder / "trace.jsonl"
        self.data = folder / "data"
        self.port: int | None = None
        self.starts = 0
        self._guard = threading.Lock()
        self._crashes: list[int] = []
        self._expected_to_live = False
        self._process: subprocess.Popen[bytes] | None = None
        self._control: ControlChannel | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def spawn(self, config: NodeConfig) -> None:
        """Start the process; returns before the node is up."""
        config_file = self.folder / "config.json"
        config_file.write_bytes(msgspec.json.format(msgspec.json.encode(config)))
        command = [sys.executable, "-m", "faultline.harness.world.local.node_process", str(config_file)]
        ours, theirs = socket.socketpair()
        with theirs, self.log.open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=theirs.fileno(),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise HarnessError(f"The node {self.node_id} cannot be started: {error}.", "") from error
        self._control = ControlChannel(ours)
        self._control.hand_over(self._secret)
        self._expected_to_live = True
        self.starts += 1

    def wait_until_up(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the node listens. Raises HarnessError with the end of its log when it does not."""
        try:
            self.port = self.control.started(timeout_s).port
        except (TimeoutError, OSError) as error:
            raise HarnessError(
                f"The node {self.node_id} did not come up within {timeout_s:g} s ({error}): {self.log_tail()}",
                f"The whole log is {self.log}.",
            ) from error

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process is gone; harmless when it is already."""
        self._note_crash()
        self._expected_to_live = False
        self.port = None
        if self._process is not None:
            self._process.kill()
            self._process.wait(SIGNAL_TIMEOUT_S)
        if self._control is not None:
            self._control.close()
            self._control = None

    def pause(self) -> None:
        """Send SIGSTOP, and wait until the kernel says that the process is stopped."""
        self._signal(signal.SIGSTOP)
        self._wait_for_pause(True)

    def resume(self) -> None:
        """Send SIGCONT, and wait until the kernel says that the process goes on."""
        self._signal(signal.SIGCONT)
        self._wait_for_pause(False)

    @property
    def control(self) -> ControlChannel:
        """The channel to the running node. Raises ConnectionError when there is none."""
        if self._control is None:
            raise ConnectionError(f"{self.node_id} is not running")
        return self._control

    def is_alive(self) -> bool:
        """Return whether the process exists, as the kernel sees it."""
        return self._process is not None and self._process.poll() is None

    def is_paused(self) -> bool:
        """Return whether the process is stopped, as the kernel sees it."""
        return self.is_alive() and self._kernel_state() == "T"

    def take_crashes(self) -> list[int]:
        """Return the exit codes of processes that ended without being killed by us, each once."""
        self._note_crash()
        with self._guard:
            crashes, self._crashes = self._crashes, []
        return crashes

    def log_tail(self) -> str:
        """Return the end of the node's log, as one line."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return " / ".join(text[-_LOG_TAIL_CHARACTERS:].split("\n")).strip(" /") or "its log is empty"

    def unreachable(self) -> str | None:
        """Return None: the process is on this machine."""
        return None

    def _note_crash(self) -> None:
        with self._guard:
            code = self._process.poll() if self._process is not None else None
            # Asked after the poll: a kill from another thread says that it is expected before it kills.
            if code is not None and self._expected_to_live:
                self._expected_to_live = False
                self.port = None
                self._crashes.append(code)

    def _kernel_state(self) -> str:
        assert self._process is not None
        try:
            # The name in parentheses may hold blanks; the state is the first field after it.
            return Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return ""

    def _signal(self, number: signal.Signals) -> None:
        if self.is_alive():
            assert self._process is not None
            self._process.send_signal(number)

    def _wait_for_pause(self, paused: bool) -> None:
        deadline_s = time.monotonic() + SIGNAL_TIMEOUT_S
        while self.is_alive() and self.is_paused() != paused and time.monotonic() < deadline_s:
            time.sleep(0.001)
