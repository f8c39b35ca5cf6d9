"""Connections between hosts are really killed and reset, and only those that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from namespace_fixtures import on_namespaces

from faultline.harness.judge import judge
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.machines.connection import CommandResult, Connection
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.network.host_connections import HostConnections, kill_refusal, reset_refusal
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve

pytestmark = pytest.mark.real

LINKS = [(one, other) for one in ("n1", "n2", "n3") for other in ("n1", "n2", "n3") if one != other]
PAIR = [("n1", "n2"), ("n2", "n1")]
MS = 1_000


@contextmanager
def connected(hosts: NamespaceHosts, source: str, target: str) -> Iterator[Any]:
    """An open connection between two hosts; what is read from it is what the holder says when it ends."""
    hold = f"exec 3<>/dev/tcp/{target}/22; read -r -u 3 line; echo up; cat <&3; echo ended"
    channel = hosts.fleet[source].open(f"bash -c '{hold}' 2>&1")
    channel.settimeout(20)
    try:
        assert channel.recv(3) == b"up\n"
        yield channel
    finally:
        channel.close()


@on_namespaces
def test_a_killed_connection_ends_with_an_error_and_others_stay(hosts: NamespaceHosts) -> None:
    connections = hosts.connections
    if connections.refusals():
        assert all("on n" in reason for reason in connections.refusals().values())
        return
    # Other tests may have left one end of a connection whose other end is gone.
    connections.kill(LINKS)
    with connected(hosts, "n1", "n2") as held, connected(hosts, "n3", "n2"):
        (name,) = connections.open_on(("n1", "n2"))
        assert connections.open_on(("n2", "n1")) == {"-".join(reversed(name.split("-")))}
        connections.kill(PAIR)
        assert connections.open_on(("n1", "n2")) == connections.open_on(("n2", "n1")) == frozenset()
        assert len(connections.open_on(("n3", "n2"))) == 1
        said = held.makefile("rb").read()
        # Both ends are killed: whichever is first tells the other.
        assert (b"connection abort" in said or b"reset by peer" in said) and said.endswith(b"ended\n")
    with connected(hosts, "n1", "n2"):
        assert connections.open_on(("n1", "n2")) not in ({name}, frozenset())


@on_namespaces
def test_a_reset_ends_connections_and_refuses_new_ones_until_it_is_over(hosts: NamespaceHosts) -> None:
    connections = hosts.connections
    if connections.refusals():
        return
    ask = "bash -c 'exec 3<>/dev/tcp/n2/22; read -r -t 5 line <&3; echo $line'"
    with connected(hosts, "n1", "n2") as held:
        connections.reset(PAIR)
        try:
            assert connections.resets(PAIR) == frozenset(PAIR)
            assert b"Connection refused" in hosts.fleet["n1"].run(ask, check=False).stderr
            assert hosts.fleet["n3"].run(ask).text.startswith("SSH-2.0"), "a third host still gets through"
            assert hosts.fleet["n2"].run("hostname").text == "n2", "and so does the harness"
        finally:
            connections.admit(LINKS)
        held.close()
    assert connections.resets(LINKS) == frozenset()
    assert hosts.fleet["n1"].run(ask).text.startswith("SSH-2.0")
    connections.close()
    for name, left in hosts.fleet.run("PATH=$PATH:/usr/sbin:/sbin nft list tables").items():
        assert left.text == "", name


class Deaf:
    """A host on which commands are taken and nothing happens, as on a kernel that lacks the feature."""

    def __init__(self, connection: Connection, output: bytes, exit_code: int) -> None:
        self.host = connection.host
        self._answer = CommandResult(host="n1", command="", exit_code=exit_code, stdout=output, stderr=b"no such thing")

    def run(self, command: str, **_: Any) -> CommandResult:
        return self._answer


@on_namespaces
def test_a_host_that_takes_the_command_and_does_nothing_is_found_out(hosts: NamespaceHosts) -> None:
    one = hosts.fleet["n1"]
    assert "CONFIG_INET_DIAG_DESTROY" in kill_refusal(Deaf(one, b"1\n1\n", 0))  # type: ignore[arg-type]  # a stand-in
    assert "bash and ss are needed: no such thing" in kill_refusal(Deaf(one, b"", 127))  # type: ignore[arg-type]  # a stand-in
    assert "takes no rule that resets: no such thing" in reset_refusal(Deaf(one, b"", 1))  # type: ignore[arg-type]  # a stand-in


@on_namespaces
def test_refusals_name_the_first_host_that_lacks_something(
    hosts: NamespaceHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "faultline.harness.world.hosts.network.host_connections.kill_refusal",
        lambda connection: "" if connection.host.name == "n1" else "it lacks ss",
    )
    assert HostConnections(hosts.fleet).refusals().get("connection-kill") == "on n2, it lacks ss"


@pytest.mark.slow
@on_namespaces
def test_a_store_on_hosts_bears_killed_and_reset_connections(hosts: NamespaceHosts, tmp_path: Path) -> None:
    if hosts.connections.refusals():
        return
    faults = (
        PlannedFault("connection-kill", 100 * MS, 100 * MS, "all"),
        PlannedFault("connection-reset", 600 * MS, 700 * MS, "leader"),
    )
    request = RunRequest(system="consistent-core", world="hosts", seed=1, duration_s=2.0, faults=())
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=faults)
    record = run_on_hosts(plan, parts, hosts, folder=tmp_path)
    assert record.errors == [] and record.breaches == []
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in faults]
    assert {"connections-killed", "connections-reset"} <= set(record.marks)
    judgement = judge(record, parts, run_id="connections")
    assert judgement.verdict is Verdict.PASS, judgement.sentence
