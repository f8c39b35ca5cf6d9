"""An unreadable answer of a host becomes one error, which names the host and shows the beginning of the answer."""

from __future__ import annotations

import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.machines import line_channel
from faultline.harness.world.hosts.machines.errors import HostError, UnreadableAnswer
from faultline.harness.world.hosts.machines.line_channel import LineChannel
from faultline.harness.world.hosts.processes.host_agent import AgentRefusal, HostAgent
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.local.handshake import RunSecret


class Channel:
    """A channel on which the other end says all of `said`, a few bytes at a time, and hangs up."""

    def __init__(self, said: bytes) -> None:
        self.said = said
        self.closed = False

    def sendall(self, data: bytes) -> None:
        """Discard the data."""

    def recv(self, count: int) -> bytes:
        part, self.said = self.said[:700], self.said[700:]
        return part

    def exit_status_ready(self) -> bool:
        return False

    def recv_stderr_ready(self) -> bool:
        return False

    def settimeout(self, timeout_s: float) -> None:
        """Nothing is waited for."""

    def close(self) -> None:
        self.closed = True


def agent_that_says(*said: bytes) -> tuple[HostAgent, list[Channel]]:
    """An agent on the host n1, at each start of which the next of `said` is heard."""
    channels: list[Channel] = []
    answers = iter(said)

    def opened(_command: str) -> Channel:
        channels.append(Channel(next(answers)))
        return channels[-1]

    connection: Any = SimpleNamespace(
        host=SimpleNamespace(name="n1", clock="process"),
        run=lambda *_, **__: None,
        upload=lambda *_: None,
        as_root=lambda command: command,
        open=opened,
    )
    return HostAgent(connection, "/folder/athens", "athens", "set", is_store=False), channels


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (b"Welcome to n1!", "Welcome to n1!"),
        (b"\x1b[2J\xff", "\\x1b[2J\\xff"),
        (b"", "nothing"),
        (b"[]", "[]"),
        (b"7", "7"),
        (b"{}", "{}"),
        (b'{"other":1}', '{"other":1}'),
        (b"[" * 5_000, "[" * 200 + " …"),
    ],
)
def test_what_is_no_answer_is_an_error_that_names_the_host_and_shows_how_it_began(said: bytes, shown: str) -> None:
    agent, channels = agent_that_says(said + b"\n")
    with pytest.raises(
        UnreadableAnswer, match=f"On n1, .* answered what is no answer: {re.escape(shown)}\\."
    ) as caught:
        agent.ask("adopt")
    assert "login shell" in caught.value.next_step
    assert caught.value.message.isprintable()
    assert channels[0].closed, "what comes next over it need not belong to the next question"


def test_answers_and_refusals_are_told_apart() -> None:
    agent, _ = agent_that_says(b'{"answer": {"a": 1}}\n{"error": "no room"}\n')
    assert agent.ask("adopt") == {"a": 1}
    with pytest.raises(AgentRefusal, match="On n1, freeze is not possible: no room"):
        agent.ask("freeze")


def test_an_agent_that_was_lost_is_started_anew_once() -> None:
    agent, channels = agent_that_says(b"", b'{"answer": 7}\n')
    assert agent.ask("adopt") == 7
    assert channels[0].closed
    agent, _ = agent_that_says(b"", b"half a line")
    with pytest.raises(HostError, match="The agent on n1 did not answer adopt: it has ended"):
        agent.ask("adopt")


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_channel, "LINE_BYTES_MAX", 1_000)
    with pytest.raises(UnreadableAnswer, match="xxxx …"):
        LineChannel("n1", Channel(b"x" * 10_000)).ask({})


def test_damaged_answers_are_named_errors_or_answers() -> None:
    draws = random.Random(7)
    whole = msgspec.json.encode({"answer": {"pid": 17, "threads": [1, 2, 3], "said": "é"}}) + b"\n"
    for _ in range(2_000):
        damaged = bytearray(whole)
        for _ in range(1 + int(draws.random() * 4)):
            damaged[int(draws.random() * len(damaged))] = int(draws.random() * 256)
        agent, _ = agent_that_says(bytes(damaged), bytes(damaged))
        try:
            agent.ask("adopt")
        except HarnessError as error:
            assert "n1" in error.message  # noqa: PT017  # most are damaged, and some still are answers


@pytest.mark.parametrize("said", ["Welcome!\n17", "", "-1", "17 18"])
def test_the_number_of_a_process_is_a_number(said: str, tmp_path: Path) -> None:
    connection: Any = SimpleNamespace(host=SimpleNamespace(name="n1"), run=lambda *_, **__: SimpleNamespace(text=said))
    process = RemoteProcess("athens", connection, "/folder", tmp_path, RunSecret.drawn())
    with pytest.raises(UnreadableAnswer, match="On n1, the file with the number of athens"):
        process._read_pid()
