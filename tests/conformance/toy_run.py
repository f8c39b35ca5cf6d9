"""Plans and parts for the toy system: explicit operations at explicit times, and the plainest of nemeses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import toy_system

from faultline.harness.nemesis import Injection
from faultline.harness.parts import Parts
from faultline.harness.plan import NODE_NAMES, Plan, PlannedFault, PlannedOperation, Weather
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.world.faults import FaultPort, LinkQuality
from faultline.harness.world.local.world import run_local
from faultline.harness.world.ports import Link, NodeId
from faultline.nemesis import combined

MS = 1_000
START_US = 50 * MS
"""Nodes of the simulated world boot within the first milliseconds; real ones are up before time begins."""

ATHENS, BYZANTIUM, CYRENE = map(NodeId, NODE_NAMES[:3])


def probed(port: FaultPort, capability: str, injection: Injection) -> bool:
    """Return the setting in force on the only node of `injection`."""
    return bool(port.actuator(capability).probe(injection.nodes)[injection.nodes[0]])


def links_of(injection: Injection) -> list[Link]:
    """Return the links of `injection`."""
    return [(NodeId(source), NodeId(target)) for source, target in injection.links]


class Kill:
    """Kills its target, restarts it at the end."""

    kind, mark, summary, needs, tick_us = "kill", "killed", "", frozenset({"kill"}), 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        port.actuators["kill"].strike([NodeId(fault.target)], True)
        return Injection(nodes=(fault.target,))

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        return None if probed(port, "kill", injection) else "alive"

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        raise AssertionError("no ticks were asked for")

    def stop(self, port: FaultPort, injection: Injection) -> None:
        port.actuators["kill"].mend([NodeId(injection.nodes[0])])


class Pause(Kill):
    """Pauses its target, resumes it at the end."""

    kind, mark, needs = "pause", "paused", frozenset({"pause"})

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        port.actuators["pause"].strike([NodeId(fault.target)], True)
        return Injection(nodes=(fault.target,))

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        return None if probed(port, "pause", injection) else "running"

    def stop(self, port: FaultPort, injection: Injection) -> None:
        port.actuators["pause"].mend([NodeId(injection.nodes[0])])


class Cut(Kill):
    """Cuts the link from the leader to its target, one way."""

    kind, mark, needs = "cut", "was-cut", frozenset({"cut"})

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        links = ((ATHENS, NodeId(fault.target)),)
        port.actuators["cut"].strike(links, True)
        return Injection(links=links)

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        cut = port.actuators["cut"].probe(links_of(injection))
        return None if all(cut.values()) else "messages pass"

    def stop(self, port: FaultPort, injection: Injection) -> None:
        port.actuators["cut"].mend(links_of(injection))


class Slow(Cut):
    """Delays, jitters and repeats what passes from the leader to its target."""

    kind, mark, needs = "slow", "slowed", frozenset({"delay", "duplicate"})
    quality = LinkQuality(delay_us=20_000, jitter_us=10_000)

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        links = ((ATHENS, NodeId(fault.target)),)
        port.actuators["delay"].strike(links, self.quality)
        return Injection(links=links)

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        seen = port.actuators["delay"].probe(links_of(injection))
        return None if list(seen.values()) == [self.quality] else "healthy"

    def stop(self, port: FaultPort, injection: Injection) -> None:
        port.actuators["delay"].mend(links_of(injection))


class Skew(Kill):
    """Steps its target's clock a second ahead and lets it drift."""

    kind, mark, needs = "skew", "skewed", frozenset({"clock-step", "clock-drift"})

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        port.actuators["clock-step"].strike([NodeId(fault.target)], 1_000_000)
        port.actuators["clock-drift"].strike([NodeId(fault.target)], 200_000)
        return Injection(nodes=(fault.target,))

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        node = NodeId(injection.nodes[0])
        offset_us = port.actuators["clock-step"].probe([node])[node]
        rate_ppm = port.actuators["clock-drift"].probe([node])[node]
        return None if 1_000_000 <= offset_us < 1_500_000 and rate_ppm == 200_000 else f"{offset_us} us, {rate_ppm} ppm"

    def stop(self, port: FaultPort, injection: Injection) -> None:
        port.actuators["clock-step"].mend([NodeId(injection.nodes[0])])


def heal(port: FaultPort) -> list[str]:
    """Undo everything."""
    links = [(source, target) for source in port.nodes for target in port.nodes if source != target]
    for capability in ("cut", "delay"):
        port.actuator(capability).mend(links)
    for node in port.nodes:
        for capability in ("pause", "kill", "clock-step"):
            port.actuator(capability).mend([node])
    dead = port.actuators["kill"].probe(port.nodes)
    return [f"{node} is dead" for node in port.nodes if dead[node]]


class _NoWorkload:
    """The plan has its operations already."""

    name = promise = "none"
    functions: tuple[str, ...] = ()

    def generator(self, **_: Any) -> Any:
        raise AssertionError("planned already")

    def final_generator(self, **_: Any) -> Any:
        raise AssertionError("planned already")

    def checkers(self) -> tuple[()]:
        return ()


def parts(system: str = "ToySystem") -> Parts:
    """The toy system, or another of its module, with the nemeses above."""
    return Parts(
        system=getattr(toy_system, system)(),
        system_path=f"toy_system:{system}",
        workload=_NoWorkload(),
        checkers=(),
        nemeses={nemesis.kind: nemesis for nemesis in (Kill(), Pause(), Cut(), Slow(), Skew())},
        package=combined(()),
        heal=heal,
    )


def operation(at_ms: int, f: str, value: Any = None, worker: int = 0) -> PlannedOperation:
    """An operation of `worker`, `at_ms` milliseconds after the start."""
    return PlannedOperation(worker, START_US + at_ms * MS, f, "toy", value)


def fault(kind: str, at_ms: int, until_ms: int, target: str) -> PlannedFault:
    """A fault of `kind` from `at_ms` to `until_ms` milliseconds after the start."""
    return PlannedFault(kind, START_US + at_ms * MS, (until_ms - at_ms) * MS, target)


def plan(
    *operations: PlannedOperation, faults: tuple[PlannedFault, ...] = (), heal_ms: int, end_ms: int = 20_000
) -> Plan:
    """A plan for three nodes. A run ends with its last operation; `end_ms` is what a machine that stalls may take."""
    return Plan(
        system="toy",
        workload="none",
        seed=7,
        nodes=NODE_NAMES[:3],
        workers=1 + max(one.worker for one in operations),
        operations=operations,
        faults=faults,
        weather=Weather(drift_ppm_max=0),
        heal_us=START_US + heal_ms * MS,
        end_us=START_US + end_ms * MS,
    )


def run(world: str, plan: Plan, folder: Path) -> RunRecord:
    """Carry out `plan` in `world`."""
    if world == "local":
        return run_local(plan, parts(), folder=folder)
    return run_simulated(plan, parts())
