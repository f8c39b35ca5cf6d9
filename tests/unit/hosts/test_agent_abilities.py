"""The meaning of agents' answers for a set of hosts, and for a node that the kernel killed for want of memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.world.hosts.clocks.clock_means import PROCESS_CLOCKS, chosen_means
from faultline.harness.world.hosts.machines import abilities
from faultline.harness.world.hosts.machines.abilities import AGENT_FAULTS, CLOCK_FAULTS, Abilities
from faultline.harness.world.hosts.machines.errors import HostError, HostUnreachable
from faultline.harness.world.hosts.machines.host_options import checked_host_options
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.local.handshake import RunSecret

CLOCKS = {"kind": "process", "vdso": "", "libfaketime": "", "real": "not asked for"}
FINE = CLOCKS | {"freeze": "", "means": "SIGSTOP", "cpu-squeeze": "", "memory-squeeze": ""}
OTHER_MACHINE = {"vdso": "this is aarch64"}
NOT_INSTALLED = {"libfaketime": "it is not installed"}


def abilities_of(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> tuple[Abilities, list[str]]:
    """A set of hosts whose agents give these answers, and a list of the hosts that were asked."""
    asked: list[str] = []

    def answer(name: str, _set_name: str) -> Any:
        asked.append(name)
        return answers[name]

    monkeypatch.setattr(abilities, "examined", answer)
    fleet: Any = SimpleNamespace(attempt=lambda action: {name: action(name) for name in answers})
    return Abilities(fleet, "faultline-test"), asked


def test_hosts_are_asked_once_and_only_when_their_abilities_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    fine, asked = abilities_of(monkeypatch, n1=FINE, n2=FINE)
    assert asked == []
    assert fine.refusals() == {} == fine.refusals()
    assert asked == ["n1", "n2"]


def test_the_first_host_that_cannot_is_named_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    old, no_root = FINE | OTHER_MACHINE | NOT_INSTALLED, FINE | {"cpu-squeeze": "no control groups"}
    mixed, _ = abilities_of(monkeypatch, n1=FINE, n2=old, n3=old | no_root)
    assert mixed.refusals() == {
        **dict.fromkeys(CLOCK_FAULTS, "on n2, vdso: this is aarch64; libfaketime: it is not installed"),
        "cpu-squeeze": "on n3, no control groups",
    }


def test_a_real_clock_is_stepped_and_does_not_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    real, _ = abilities_of(monkeypatch, n1=FINE | {"kind": "real", "real": ""})
    assert list(real.refusals()) == ["clock-drift"] and real.clock_means("n1", "auto").name == "real"
    # What is asked for on the command line outranks the host file.
    assert real.refusals("vdso") == {} and real.clock_means("n1", "libfaketime").name == "libfaketime"


@pytest.mark.parametrize(
    ("lacks", "asked", "means"),
    [
        ({}, "auto", "vdso"),
        (OTHER_MACHINE, "auto", "libfaketime"),
        (NOT_INSTALLED, "auto", "vdso"),
        ({}, "libfaketime", "libfaketime"),
        (OTHER_MACHINE, "vdso", ""),
        (NOT_INSTALLED, "libfaketime", ""),
        (OTHER_MACHINE | NOT_INSTALLED, "auto", ""),
    ],
)
def test_clocks_are_struck_by_the_best_means_that_works_or_by_the_one_that_is_asked_for(
    lacks: dict[str, str], asked: str, means: str
) -> None:
    chosen = chosen_means(asked, CLOCKS | lacks)
    assert chosen.name == means
    assert bool(chosen.refusal) == (not means)
    candidates = PROCESS_CLOCKS if asked == "auto" else (asked,)
    assert means or all(f"{name}: {lacks[name]}" in chosen.refusal for name in candidates)


def test_every_means_of_a_process_can_be_asked_for() -> None:
    for means in ("auto", *PROCESS_CLOCKS):
        assert checked_host_options({"clock": means}) == {"clock": means}
    with pytest.raises(UsageError, match="The host option clock cannot be 'real'"):
        checked_host_options({"clock": "real"})


def test_a_host_whose_agent_does_not_answer_can_do_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mute, _ = abilities_of(monkeypatch, n1=HostError("n1", "The agent on n1 did not answer."))
    assert mute.refusals() == dict.fromkeys(AGENT_FAULTS, "on n1, The agent on n1 did not answer")


def ended_channel(code: int, *, is_connected: bool = True) -> Any:
    transport = SimpleNamespace(is_active=lambda: is_connected)
    return SimpleNamespace(
        exit_status_ready=lambda: True, recv_exit_status=lambda: code, get_transport=lambda: transport
    )


@pytest.mark.parametrize(
    ("code", "is_short_of_memory", "crashes"),
    [(137, True, []), (-1, True, []), (137, False, [137]), (1, True, [1]), (0, True, [0])],
)
def test_an_end_by_the_kernel_is_no_crash_while_memory_is_short(
    tmp_path: Path, code: int, is_short_of_memory: bool, crashes: list[int]
) -> None:
    connection: Any = SimpleNamespace(host=SimpleNamespace(name="n1"))
    process = RemoteProcess("athens", connection, "/nowhere", tmp_path, RunSecret.drawn())
    process._begin(ended_channel(code))
    process.is_short_of_memory = is_short_of_memory
    assert process.take_crashes() == crashes
    assert process.take_crashes() == []
    assert process.ends_for_memory == (1 if is_short_of_memory and not crashes else 0)


@pytest.mark.parametrize("is_short_of_memory", [True, False])
def test_a_lost_connection_excuses_no_end(tmp_path: Path, is_short_of_memory: bool) -> None:
    connection: Any = SimpleNamespace(host=SimpleNamespace(name="n1"))
    process = RemoteProcess("athens", connection, "/nowhere", tmp_path, RunSecret.drawn())
    process.is_short_of_memory = is_short_of_memory
    process._begin(ended_channel(-1, is_connected=False))
    assert process.excuse_ends() == 0
    assert (process.take_crashes(), process.ends_for_memory) == ([-1], 0)
    assert process.unreachable() == "the connection to n1 broke"


def test_an_end_that_its_host_has_told_of_can_be_excused(tmp_path: Path) -> None:
    connection: Any = SimpleNamespace(host=SimpleNamespace(name="n1"))
    process = RemoteProcess("athens", connection, "/nowhere", tmp_path, RunSecret.drawn())
    process._begin(ended_channel(1))
    assert (process.excuse_ends(), process.excuse_ends(), process.take_crashes()) == (1, 0, [])


class Deaf:
    """A connection to a host that cannot be reached any more."""

    host = SimpleNamespace(name="n1")

    def run(self, script: str, **_: object) -> None:
        raise HostUnreachable("n1", "n1 cannot be reached.", "Look at it.")


class Answering(Deaf):
    def run(self, script: str, **_: object) -> None:
        """Carry it out."""


@pytest.mark.parametrize(
    ("connection", "is_connected", "unreachable"),
    [
        (Answering(), True, None),
        (Answering(), False, "the connection to n1 broke"),
        (Deaf(), True, "n1 cannot be reached."),
    ],
)
def test_a_process_whose_host_is_lost_is_not_said_to_have_ended(
    tmp_path: Path, connection: Any, is_connected: bool, unreachable: str | None
) -> None:
    process = RemoteProcess("athens", connection, "/nowhere", tmp_path, RunSecret.drawn())
    process._begin(ended_channel(-1, is_connected=is_connected))
    assert process.take_crashes() == [-1]
    assert process.unreachable() == unreachable
