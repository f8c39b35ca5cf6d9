"""The harness's end of the agent on a host (see `faultline.hosts.agent`): sent there, asked, and let go.

The agent travels as one archive that Python can run (PEP 441): its own folder and the minder, below package files that
are empty, so that it imports itself by the names it has here and needs nothing else there.
"""

from __future__ import annotations

import io
import shlex
import threading
import zipfile
from pathlib import Path
from typing import Any

import msgspec

from faultline.harness.errors import HarnessError
from faultline.hosts import agent, minder
from faultline.hosts.connection import Connection
from faultline.hosts.errors import HostError

__all__ = ["AgentRefusal", "HostAgent", "agent_archive"]

_ANSWER_TIMEOUT_S = 20.0
_END_TIMEOUT_S = 10.0
_READ_BYTES = 65_536
_MAIN = "import sys\nfrom faultline.hosts.agent.main import main\nmain(sys.argv[1:])\n"


class AgentRefusal(HarnessError):
    """The agent says that something cannot be done, and why."""


def agent_archive() -> bytes:
    """The agent as one file."""
    folder = Path(agent.__file__).parent
    content = {"__main__.py": _MAIN, "faultline/__init__.py": "", "faultline/hosts/__init__.py": ""}
    content["faultline/hosts/minder.py"] = Path(minder.__file__).read_text()
    for module in sorted(folder.glob("*.py")):
        content[f"faultline/hosts/agent/{module.name}"] = module.read_text()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name, text in content.items():
            opened.writestr(zipfile.ZipInfo(name), text)
    return archive.getvalue()


class HostAgent:
    """The agent for the member called `member`, whose files are in `folder` on the host of `connection`.

    `set_name` tells sets of hosts apart on one machine; `is_store` says that the member runs under a minder. Started at
    the first question; and again after it was lost, as with its host's power.
    """

    def __init__(self, connection: Connection, folder: str, member: str, set_name: str, *, is_store: bool) -> None:
        self._connection = connection
        self._archive = f"{folder}.agent"
        kind = "minder" if is_store else "node"
        self.clock = "real" if connection.host.clock == "real" else "vdso"
        """The means by which clocks are struck, from the next start of the agent on."""
        self._arguments = (f"{folder}/node.pid", kind, f"{set_name}/{connection.host.name}-{member}")
        self._lock = threading.Lock()
        self._channel: Any = None
        self._heard = b""

    def start(self) -> None:
        """Send the agent and wait until it answers, so that no fault has to wait for it."""
        self.ask("adopt")

    def ask(self, question: str, **arguments: Any) -> Any:
        """The agent's answer. Raises AgentRefusal when it says no, HostError when it does not say anything.

        One that was lost, as with its host's power, is sent again: whatever it did ended with it.
        """
        sent = msgspec.json.encode({"do": question, **arguments}) + b"\n"
        with self._lock:
            try:
                answer = self._exchange(sent)
            except TimeoutError as error:
                raise self._lost(question, error) from error
            except (OSError, EOFError):
                self._channel.close()
                try:
                    answer = self._exchange(sent)
                except (OSError, EOFError) as error:
                    raise self._lost(question, error) from error
        if "error" in answer:
            raise AgentRefusal(f"On {self._connection.host.name}, {question} is not possible: {answer['error']}.")
        return answer["answer"]

    def close(self) -> None:
        """Let the agent undo everything and end, and take its file away; harmless when it never ran."""
        with self._lock:
            channel, self._channel = self._channel, None
            if channel is None:
                return
            channel.shutdown_write()
            channel.status_event.wait(_END_TIMEOUT_S)
            channel.close()
        self._connection.run(f"rm -f {shlex.quote(self._archive)}", check=False)

    def _exchange(self, sent: bytes) -> dict[str, Any]:
        self._start_if_needed()
        self._channel.sendall(sent)
        answer: dict[str, Any] = msgspec.json.decode(self._line())
        return answer

    def _start_if_needed(self) -> None:
        if self._channel is not None and not self._channel.closed and not self._channel.exit_status_ready():
            return
        self._connection.run(f"mkdir -p {shlex.quote(str(Path(self._archive).parent))}")
        self._connection.upload(agent_archive(), self._archive)
        command = shlex.join(["exec", "python3", self._archive, *self._arguments, self.clock])
        self._channel = self._connection.open(self._connection.as_root(command))
        self._channel.settimeout(_ANSWER_TIMEOUT_S)
        self._heard = b""

    def _line(self) -> bytes:
        while b"\n" not in self._heard:
            part = self._channel.recv(_READ_BYTES)
            if not part:
                raise EOFError("it has ended")
            self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def _lost(self, question: str, error: BaseException) -> HostError:
        said = b""
        if self._channel is not None:
            while self._channel.recv_stderr_ready():
                said += self._channel.recv_stderr(_READ_BYTES)
        reason = said.decode(errors="replace").strip().rpartition("\n")[2] or str(error) or type(error).__name__
        name = self._connection.host.name
        return HostError(
            name, f"The agent on {name} did not answer {question}: {reason}.", "Has it python3 3.9 or later?"
        )
