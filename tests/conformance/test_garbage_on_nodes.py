"""Garbage at a node's port, from a peer that knows the run's secret, ends a connection and never a node."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from smallest_message import smallest

from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.system import HostedStore
from faultline.harness.verdict import Verdict
from faultline.harness.world.framing import FrameDecoder, encode_frame
from faultline.harness.world.local import world as local
from faultline.harness.world.local.cluster import LocalCluster
from faultline.harness.world.local.handshake import Caller, RunSecret
from faultline.registry import load_system, resolve, systems

FOR_CLIENTS = {
    "consistent-core": "ClientResponse",
    "coordinated-kv": "DataResponse",
    "coordination-service": "ClientResponse",
    "data-grid": "GridResponse",
    "emergent-leader": "ViewResponse",
    "follower-reads": "ClientResponse",
    "gossip": "ViewResponse",
    "logged-store": "StoreAnswer",
    "partitioned-kv": "RegisterClientResponse",
    "paxos-kv": "ClientResponse",
    "quorum-kv": "SiblingsResponse",
    "quorum-register": "ValueResponse",
    "range-kv": "KeyResponse",
    "range-transactions": "Reply",
    "timestamped-kv": "ReadResponse",
    "transactional-kv": "Reply",
}
"""A kind of message that only clients are sent, of each system."""
WORKLOADS = {
    "emergent-leader": "membership",
    "gossip": "metadata",
    "quorum-kv": "siblings",
    "range-transactions": "txn-append",
    "transactional-kv": "txn-append",
}
TIMEOUT_S = 30.0


def garbage(system: str) -> dict[str, bytes]:
    """Nine kinds of frames that a node has no use for."""
    kinds = {kind.__name__: kind for kind in load_system(system).messages}
    wrong = smallest(kinds[FOR_CLIENTS[system]])[0]
    record: Any = msgspec.to_builtins(wrong)
    tag = record[0] if isinstance(record, list) else record["type"]
    return {
        "nothing": b"",
        "another format": b"GET / HTTP/1.1\r\n\r\n",
        "a record cut short": msgspec.msgpack.encode(wrong)[:-1],
        "an unknown kind": msgspec.msgpack.encode({"type": "no such kind"}),
        "no fields": msgspec.msgpack.encode([tag] if isinstance(record, list) else {"type": tag}),
        "another type": msgspec.msgpack.encode(7),
        "text that is no UTF-8": b"\x81\xa4type\xa1\xff",
        "nesting without end": b"\x91" * 20_000 + b"\xc0",
        "a message for clients": msgspec.msgpack.encode(wrong),
    }


def let_in(node: str, address: tuple[str, int], secret: RunSecret) -> socket.socket:
    """A connection to `node` as from a client of the run."""
    connection = socket.create_connection(address, TIMEOUT_S)
    caller, decoder = Caller(secret, "client-999", node), FrameDecoder()
    connection.sendall(caller.hello)
    answers: list[bytes] = []
    while not answers:
        answers = decoder.feed(connection.recv(4_096))
    connection.sendall(caller.answer(answers[0]))
    return connection


def is_hung_up_on(connection: socket.socket, frame: bytes) -> bool:
    """Return whether the node ends the connection when it is sent `frame`."""
    with connection:
        connection.sendall(frame)
        try:
            return connection.recv(4_096) == b""
        except ConnectionResetError:
            return True


def node_systems() -> list[str]:
    return [name for name in sorted(systems()) if not isinstance(load_system(name), HostedStore)]


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("system", node_systems())
def test_garbage_ends_connections_and_neither_nodes_nor_verdicts(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters: list[LocalCluster] = []
    staying: list[tuple[str, str]] = []
    pestered: list[tuple[str, str]] = []

    class Watched(LocalCluster):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            clusters.append(self)

    def pester(_sentence: str) -> None:
        (cluster,) = clusters
        if not cluster.has_served or pestered:
            return
        for node in cluster.nodes:
            address = cluster.address(node)
            assert address is not None
            for what, payload in garbage(system).items():
                pestered.append((node, what))
                if not is_hung_up_on(let_in(node, address, cluster.secret), encode_frame(payload)):
                    staying.append((node, what))

    monkeypatch.setattr(local, "LocalCluster", Watched)
    request = RunRequest(
        system=system,
        workload=WORKLOADS.get(system, "read-write"),
        world="local",
        seed=3,
        duration_s=0.5,
        operations=30,
        faults=(),
        nodes=6 if system == "coordinated-kv" else 3,
        beyond_promise=True,
    )
    parts = resolve(request)
    record = local.run_local(make_plan(request, parts), parts, folder=tmp_path, progress=pester)
    assert (len(pestered), staying) == (9 * len(clusters[0].nodes), [])
    assert (record.breaches, record.errors) == ([], [])
    assert judge(record, parts, run_id=system).verdict is not Verdict.VIOLATION
    for log in tmp_path.glob("nodes/*/node.log"):
        assert f"{FOR_CLIENTS[system]} is no message for this node" in log.read_text()
