"""The harness's end of the agent on a host (see the folder `agent`): sent there, asked, and let go.

The agent travels as one archive that Python can run (PEP 441): its own folder and the supervisor, below package files
that are empty, so that it imports itself by the names it has here and needs nothing else there.
"""

from __future__ import annotations

import io
import shlex
import threading
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts import agent
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError, UnreadableAnswer
from faultline.harness.world.hosts.machines.line_channel import LineChannel
from faultline.harness.world.hosts.processes import supervisor as supervisor

__all__ = ["AgentRefusal", "HostAgent", "agent_archive"]

_ANSWER_TIMEOUT_S = 20.0
_END_TIMEOUT_S = 10.0
_HOSTS = "faultline/harness/world/hosts"
_MAIN = "import sys\nfrom faultline.harness.world.hosts.agent.main import main\nmain(sys.argv[1:])\n"


class AgentRefusal(HarnessError):
    """The agent says that something cannot be done, and why."""


def agent_archive() -> bytes:
    """Return the agent as one file."""
    folder = Path(agent.__file__).parent
    content = {"__main__.py": _MAIN, f"{_HOSTS}/processes/supervisor.py": Path(supervisor.__file__).read_text()}
    content |= {f"{_HOSTS}/agent/{module.name}": module.read_text() for module in sorted(folder.glob("*.py"))}
    # An archive has no packages without this file before Python 3.13.
    for package in {str(parent) for name in content for parent in PurePosixPath(name).parents} - {"."}:
        content.setdefault(f"{package}/__init__.py", "")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name, text in sorted(content.items()):
            opened.writestr(zipfile.ZipInfo(name), text)
    return archive.getvalue()


class HostAgent:
    """The agent for the member called `member`, whose files are in `folder` on the host of `connection`.

    `set_name` tells sets of hosts apart on one machine; `is_store` says that the member runs under a supervisor.
    Started at the first question; and again after it was lost, as with its host's power.
    """

    def __init__(self, connection: Connection, folder: str, member: str, set_name: str, *, is_store: bool) -> None:
        self._connection = connection
        self._archive = f"{folder}.agent"
        kind = "supervisor" if is_store else "node"
        self.clock = "real" if connection.host.clock == "real" else "vdso"
        """The means by which clocks are struck, from the next start of the agent on."""
        self._arguments = (f"{folder}/node.pid", kind, f"{set_name}/{connection.host.name}-{member}")
        self._lock = threading.Lock()
        self._program: LineChannel | None = None

    def start(self) -> None:
        """Send the agent and wait until it answers, so that no fault has to wait for it."""
        self.ask("adopt")

    def ask(self, question: str, **arguments: Any) -> Any:
        """Return the agent's answer. Raises AgentRefusal when it says no, HostError when it does not say anything.

        One that was lost, as with its host's power, is sent again: whatever it did ended with it.
        """
        asked = {"do": question, **arguments}
        with self._lock:
            try:
                answer = self._exchange(asked)
            except TimeoutError as error:
                raise self._lost(question, error) from error
            except (OSError, EOFError):
                self._hang_up()
                try:
                    answer = self._exchange(asked)
                except (OSError, EOFError) as error:
                    raise self._lost(question, error) from error
        if "error" in answer:
            raise AgentRefusal(f"On {self._connection.host.name}, {question} is not possible: {answer['error']}.")
        return answer["answer"]

    def close(self) -> None:
        """Let the agent undo everything and end, and take its file away; harmless when it never ran."""
        with self._lock:
            if self._program is None:
                return
            channel, self._program = self._program.channel, None
            channel.shutdown_write()
            channel.status_event.wait(_END_TIMEOUT_S)
            channel.close()
        self._connection.run(f"rm -f {shlex.quote(self._archive)}", check=False)

    def _exchange(self, asked: dict[str, Any]) -> dict[str, Any]:
        program = self._running()
        try:
            answer = program.ask(asked)
            if not isinstance(answer, dict) or not {"answer", "error"} & answer.keys():
                raise UnreadableAnswer(self._connection.host.name, "the agent", msgspec.json.encode(answer))
        except UnreadableAnswer:
            # Whatever comes next over this channel need not belong to the next question.
            self._hang_up()
            raise
        return answer

    def _running(self) -> LineChannel:
        """Return the agent, sent and started unless it is there."""
        if self._program is not None and self._program.is_open:
            return self._program
        self._connection.run(f"mkdir -p {shlex.quote(str(Path(self._archive).parent))}")
        self._connection.upload(agent_archive(), self._archive)
        command = shlex.join(["exec", "python3", self._archive, *self._arguments, self.clock])
        channel = self._connection.open(self._connection.as_root(command))
        channel.settimeout(_ANSWER_TIMEOUT_S)
        self._program = LineChannel(self._connection.host.name, channel)
        return self._program

    def _hang_up(self) -> None:
        if self._program is not None:
            self._program.channel.close()

    def _lost(self, question: str, error: BaseException) -> HostError:
        said = self._program.complaint() if self._program is not None else ""
        name = self._connection.host.name
        return HostError(
            name,
            f"The agent on {name} did not answer {question}: {said or str(error) or type(error).__name__}.",
            "Has it python3 3.9 or later?",
        )
