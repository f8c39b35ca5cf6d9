"""The actuators that the simulated and the local world declare."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.system import NodeSystem
from faultline.harness.world.faults import ALL_CAPABILITIES, LOCAL_CAPABILITIES, SIMULATED_CAPABILITIES, Actuators
from faultline.harness.world.local.cluster import LocalCluster
from faultline.harness.world.local.fault_port import local_fault_port
from faultline.harness.world.ports import NodeId
from faultline.harness.world.simulated.world import SimulatedWorld
from faultline.registry import resolve

REQUEST = RunRequest(system="consistent-core", duration_s=1.0, faults=())
ATHENS = NodeId("athens")


def simulated() -> SimulatedWorld:
    parts = resolve(REQUEST)
    world = SimulatedWorld(make_plan(REQUEST, parts), cast("NodeSystem", parts.system), [])
    world.boot()
    world.scheduler.run(1_000_000)
    return world


def test_every_capability_has_a_type_of_actuator() -> None:
    assert set(Actuators.__annotations__) == set(ALL_CAPABILITIES)


def test_the_simulated_world_has_an_actuator_for_each_capability_it_is_known_for() -> None:
    assert simulated().fault_port.capabilities == set(SIMULATED_CAPABILITIES)


def test_the_local_world_has_an_actuator_for_each_capability_it_is_known_for(tmp_path: Path) -> None:
    parts = resolve(REQUEST)
    cluster = LocalCluster(make_plan(REQUEST, parts), parts.system_path, tmp_path)
    loop = asyncio.new_event_loop()
    loop.close()
    assert local_fault_port(cluster, loop).capabilities == set(LOCAL_CAPABILITIES)


def test_a_capability_that_the_world_lacks_is_refused_by_name() -> None:
    with pytest.raises(HarnessError, match="lacks the capability freeze"):
        simulated().fault_port.actuator("freeze")


def test_a_node_that_was_killed_while_it_was_paused_is_not_mended_of_its_pause() -> None:
    port = simulated().fault_port
    port.actuators["pause"].strike([ATHENS], True)
    assert ATHENS not in port.nodes_up()
    port.actuators["kill"].strike([ATHENS], True)
    port.actuators["pause"].mend([ATHENS])
    assert port.actuators["kill"].probe([ATHENS]) == {ATHENS: True}
    assert port.actuators["pause"].probe([ATHENS]) == {ATHENS: False}
    port.actuators["kill"].mend([ATHENS])
    assert ATHENS in port.nodes_up()


def test_power_that_is_there_is_not_given_back_to_a_node_that_was_killed() -> None:
    port = simulated().fault_port
    port.actuators["kill"].strike([ATHENS], True)
    port.actuators["power-off"].mend([ATHENS])
    assert port.actuators["kill"].probe([ATHENS]) == {ATHENS: True}
    port.actuators["power-off"].strike([ATHENS], True)
    port.actuators["kill"].mend([ATHENS])
    assert port.actuators["kill"].probe([ATHENS]) == {ATHENS: True}
    port.actuators["power-off"].mend([ATHENS])
    assert ATHENS in port.nodes_up()


@pytest.mark.parametrize(("capability", "setting"), [("disk-read-only", "read-only"), ("fsync-fail", True)])
def test_a_node_that_ends_of_its_disk_is_no_finding_and_runs_again_when_the_disk_is_mended(
    capability: str, setting: object
) -> None:
    world = simulated()
    port = world.fault_port
    actuator = port.actuator(capability)
    leader = port.leader()
    assert leader is not None
    actuator.strike([leader], setting)
    assert actuator.probe([leader]) == {leader: setting}
    with pytest.raises(OSError, match="Read-only|Input/output"):
        write_durably(world, leader)
    world.hosts[leader].guard(lambda: write_durably(world, leader))
    assert (leader not in port.nodes_up(), world.trace.breaches()) == (True, [])
    actuator.mend([leader])
    assert leader in port.nodes_up()
    world.hosts[leader].guard(lambda: world.hosts[NodeId("unknown")])
    assert [breach.invariant for breach in world.trace.breaches()] == ["node-crash"]


def write_durably(world: SimulatedWorld, node: NodeId) -> None:
    storage = world.hosts[node].storage
    storage.append("file", b"content")
    storage.fsync("file")
