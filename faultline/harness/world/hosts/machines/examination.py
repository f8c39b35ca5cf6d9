"""The faults that each host of a set can and cannot bear, found out by asking it: for `faultline doctor --hosts`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from faultline.harness.world.hosts.clocks.clock_means import PROCESS_CLOCKS, chosen_means
from faultline.harness.world.hosts.machines.abilities import examined
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError
from faultline.harness.world.hosts.machines.finding import Finding
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.machines.host import Host
from faultline.harness.world.hosts.network.link_examination import (
    BridgedLinks,
    connections_of,
    links_of_bridged,
    links_of_machine,
)
from faultline.harness.world.hosts.storage import fsync_filter

__all__ = ["examine"]

_CLOCKS_SEEN = {
    "vdso": "by the vDSO a process of ours was put back an hour and said so",
    "libfaketime": "by libfaketime a process of ours was put back an hour and said so, which programs in Go would not",
    "real": "its real clock may be set",
}
_CLOCKS_NEXT_STEP = "Where the vDSO cannot be patched: apt-get install libfaketime. All of it needs root there."
_AGENT_NEXT_STEP = "This needs root there (sudo = true in the host file) and a kernel that allows it."


def examine(hosts: tuple[Host, ...], set_name: str = "", bridged: BridgedLinks | None = None) -> list[Finding]:
    """Look at every host, all at the same time. One that cannot be reached has that as its only finding.

    Control groups that are tried out are named after `set_name`, where the hosts are of a set that has one. `bridged`
    is that set where it strikes the links of its hosts in one place.
    """
    name = set_name or f"faultline-doctor-{os.getpid()}"
    with Fleet(hosts) as fleet:
        outcomes = fleet.attempt(lambda connection: _examined(connection, name, bridged))
    findings: list[Finding] = []
    for name, outcome in outcomes.items():
        findings += [_unreachable(name, outcome)] if isinstance(outcome, HostError) else outcome
    return findings


def _unreachable(name: str, error: HostError) -> Finding:
    return Finding(host=name, name="connection", healthy=False, seen=error.message, next_step=error.next_step)


def _examined(connection: Connection, set_name: str, bridged: BridgedLinks | None) -> list[Finding]:
    system = connection.run("uname -srm").text
    host = connection.host.name
    return [
        Finding(host=host, name="connection", healthy=True, seen=system),
        *(question(connection) for question in _QUESTIONS),
        *(links_of_machine(connection) if bridged is None else links_of_bridged(host, bridged)),
        *connections_of(connection),
        *_agent(connection, set_name),
    ]


def _nodes(connection: Connection) -> Finding:
    host = connection.host
    command = (
        f"PYTHONPATH={shlex.quote(host.python_path)} {shlex.quote(host.python)} -c "
        "'import faultline.harness.world.local.node_process, sys; print(sys.version.split()[0])'"
    )
    answer = connection.run(command, check=False)
    complaint = answer.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return Finding(
        host=host.name,
        name="nodes",
        healthy=answer.exit_code == 0,
        seen=f"Python {answer.text} runs them" if answer.exit_code == 0 else complaint,
        next_step="Install faultline there, or name the interpreter that has it: python = ... in the host file.",
    )


def _folder(connection: Connection) -> Finding:
    folder = connection.host.folder
    answer = connection.run(f"mkdir -p {shlex.quote(folder)} && test -w {shlex.quote(folder)}", check=False)
    return Finding(
        host=connection.host.name,
        name="folder",
        healthy=answer.exit_code == 0,
        seen=f"{folder} {'can' if answer.exit_code == 0 else 'cannot'} be written",
        next_step="Name another with folder = ... in the host file.",
    )


def _kill_and_pause(connection: Connection) -> Finding:
    # The shell stops a child of its own, asks the kernel for its state, and ends it.
    script = (
        "sleep 60 & pid=$!; kill -STOP $pid; "
        "for try in 1 2 3 4 5 6; do read -r _ _ state _ </proc/$pid/stat; [ $state = T ] && break; sleep .05; done; "
        "kill -KILL $pid; echo $state"
    )
    answer = connection.run(f"/bin/sh -c {shlex.quote(script)} 2>/dev/null", check=False)
    return Finding(
        host=connection.host.name,
        name="kill, pause",
        healthy=answer.text == "T",
        seen="processes can be stopped and killed" if answer.text == "T" else f"a stopped process is {answer.text!r}",
        next_step="Leave kill and pause out.",
    )


def _wrong_fsync(connection: Connection) -> Finding:
    # The filter is handed to the host's Python as it is, and lets `true` live under it.
    source = Path(fsync_filter.__file__).read_bytes()
    answer = connection.run("python3 - lies true", stdin=source, check=False)
    return Finding(
        host=connection.host.name,
        name="fsync=lies, fsync=fails",
        healthy=answer.exit_code == 0,
        seen="a process of ours synced nothing and was told it had"
        if answer.exit_code == 0
        else _first_line(answer.stderr),
        next_step="Leave --host-option fsync out. It needs python3 there, and a kernel with seccomp filters.",
    )


def _agent(connection: Connection, set_name: str) -> list[Finding]:
    """Return the findings of an agent that tried everything there."""
    name = connection.host.name
    try:
        answer = examined(connection, set_name)
    except HostError as error:
        return [Finding(host=name, name="agent", healthy=False, seen=error.message, next_step=error.next_step)]
    found = [_clocks(name, answer)]
    for title, fault, seen in (
        ("freeze", "freeze", f"a process of ours was frozen by {answer['means']}"),
        ("cpu-squeeze", "cpu-squeeze", "a process of ours was throttled when it wanted more"),
        ("memory-squeeze", "memory-squeeze", "a process of ours was killed when it wanted more"),
    ):
        why = answer[fault]
        found.append(Finding(host=name, name=title, healthy=not why, seen=why or seen, next_step=_AGENT_NEXT_STEP))
    return found


def _clocks(host: str, answer: Mapping[str, str]) -> Finding:
    """Return the means that is used there, and which others the host has or lacks."""
    means = chosen_means("auto", answer)
    others = [name for name in PROCESS_CLOCKS if name != means.name and means.name in PROCESS_CLOCKS]
    told = [f"{name}: {answer[name] or 'works too'}" for name in others]
    seen = "; ".join([_CLOCKS_SEEN[means.name], *told]) if means.name else means.refusal
    return Finding(host=host, name="clocks of stores", healthy=bool(means.name), seen=seen, next_step=_CLOCKS_NEXT_STEP)


def _first_line(stream: bytes) -> str:
    lines = stream.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else "it said nothing"


_QUESTIONS: tuple[Callable[[Connection], Finding], ...] = (_nodes, _folder, _kill_and_pause, _wrong_fsync)
