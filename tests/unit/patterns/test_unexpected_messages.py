"""Nodes refuse well-formed messages that no correct peer sends them, and none ends a node."""

from __future__ import annotations

from typing import Any

import pytest
from smallest_message import smallest

from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.system import HostedStore
from faultline.harness.world.ports import NodeId, UnexpectedMessage
from faultline.harness.world.simulated.world import SimulatedWorld
from faultline.registry import load_system, resolve, systems
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable

OPTIONS: dict[str, list[dict[str, str]]] = {
    "consistent-core": [
        {"election": "zab"},
        {"election": "external-store"},
        {"replication": "pull"},
        {"find_leader": "forward"},
    ],
    "transactional-kv": [{"replication_factor": "3"}],
}
WORKLOADS = {"emergent-leader": "membership", "range-transactions": "txn-append", "transactional-kv": "txn-append"}


def node_systems() -> list[str]:
    return [name for name in sorted(systems()) if not isinstance(load_system(name), HostedStore)]


def variants() -> list[Any]:
    return [
        pytest.param(name, options, id=" ".join([name, *(f"{key}={value}" for key, value in options.items())]))
        for name in node_systems()
        for options in ({}, *OPTIONS.get(name, []))
    ]


class Cluster:
    """A simulated cluster that has served for a second; `ends` are the exceptions that ended nodes of it."""

    def __init__(self, name: str, options: dict[str, str]) -> None:
        nodes = 6 if name == "coordinated-kv" else 3
        workload = WORKLOADS.get(name, "read-write")
        request = RunRequest(
            system=name,
            workload=workload,
            faults=(),
            operations=5,
            nodes=nodes,
            options=options,
            beyond_promise=True,
        )
        parts = resolve(request)
        self.ends: list[BaseException] = []
        self.world = SimulatedWorld(make_plan(request, parts), parts.system, [])
        self.world.boot()
        for host in self.world.hosts.values():
            host.on_crash = lambda _, error: self.ends.append(error)
        self.world.scheduler.run(1_000_000)

    def tell(self, target: str, source: str, message: Any) -> None:
        """Give a node the message, as the real network does, and let time pass."""
        node = self.world.hosts[NodeId(target)].node
        assert node is not None
        try:
            node.receive(NodeId(source), message)
        except UnexpectedMessage:
            return
        self.world.scheduler.run(self.world.scheduler.now_us + 100_000)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), variants())
@pytest.mark.parametrize("source", ["cyrene", "client-1", "mallory"])
def test_no_kind_of_message_ends_a_node_from_any_sender(name: str, options: dict[str, str], source: str) -> None:
    cluster = Cluster(name, options)
    for message in (each for kind in load_system(name).messages for each in smallest(kind)):
        for target in ("athens", "byzantium"):
            cluster.tell(target, source, message)
            # An answer that goes to a peer, because a peer's name was borrowed, is refused there in turn.
            assert not [end for end in cluster.ends if not isinstance(end, UnexpectedMessage)], message
            if cluster.ends:
                cluster = Cluster(name, options)


def test_a_table_refuses_the_kinds_that_it_has_no_handler_for() -> None:
    taken: list[object] = []
    table = HandlerTable({int: lambda source, message: taken.append((source, message))})
    table[int](NodeId("cyrene"), 7)
    with pytest.raises(UnexpectedMessage, match="str is no message for this node"):
        table[str](NodeId("cyrene"), "seven")
    assert taken == [("cyrene", 7)]
