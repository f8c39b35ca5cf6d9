"""Wrong clocks: `clock-step`, `clock-strobe` and `clock-drift`.

A step moves the wall clock once; a strobe moves it back and forth; a drift makes both clocks of a node run fast or
slow. Only the wall clock can go back: a system that measures time with the monotonic one is immune to steps, and not to
drift.
(Jepsen's `nemesis.time` has steps and strobes, its `faketime` rates.)

A clock belongs to the machine, so nodes that are down are hit too. Ending any of these puts the node's clock right
altogether; the packages never plan two clock faults at once.
"""

from __future__ import annotations

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import NodeId
from faultline.nemesis.standard import StandardNemesis
from faultline.nemesis.targets import aimed

__all__ = ["CLOCK_DRIFT", "ClockStep", "ClockStrobe"]

STEP_US = 500_000
DRIFT_PPM = 100_000


class ClockStep:
    """The nemesis `clock-step`. Argument: `delta_us` (default half a second forward)."""

    kind = "clock-step"
    summary = "moves wall clocks forward or back, once"
    mark = "clocks-stepped"
    needs = frozenset({"clock-step"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Step the wall clocks of the target."""
        resolution = aimed(port, fault, seed)
        nodes = resolution.nodes
        delta_us = int(fault.argument.get("delta_us", STEP_US))
        clocks = port.actuators["clock-step"]
        before = dict(clocks.probe([*map(NodeId, nodes)]))
        clocks.strike(tuple(before), delta_us)
        description = f"wall clock of {' '.join(nodes)} stepped by {delta_us / 1000:+g} ms{resolution.remark}"
        return Injection(nodes=nodes, description=description, state={"delta_us": delta_us, "before": before})

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe the offsets: each must have moved by the step, give or take half of it for the time of probing."""
        delta_us, before = injection.state["delta_us"], injection.state["before"]
        for node, offset_us in port.actuators["clock-step"].probe(tuple(before)).items():
            moved_us = offset_us - before[node]
            if abs(moved_us - delta_us) > abs(delta_us) // 2:
                return f"the clock of {node} moved by {moved_us} us instead of {delta_us} us"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Do nothing: a step happens once."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Put the clocks right."""
        port.actuators["clock-step"].mend(tuple(injection.state["before"]))


class ClockStrobe(ClockStep):
    """The nemesis `clock-strobe`: forward at the start, then back and forward again at every tick."""

    kind = "clock-strobe"
    summary = "moves wall clocks forward and back, over and over"
    mark = "clocks-strobed"
    tick_us = 25_000

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Step the other way; the direction follows from the offset, so that a lost tick does no harm."""
        delta_us, clocks = injection.state["delta_us"], port.actuators["clock-step"]
        for node, before_us in injection.state["before"].items():
            away = abs(clocks.probe([node])[node] - before_us) > abs(delta_us) // 2
            clocks.strike([node], -delta_us if away else delta_us)


CLOCK_DRIFT = StandardNemesis(
    kind="clock-drift",
    summary="lets both clocks of a node run fast or slow",
    mark="clocks-drifted",
    aims_at_nodes_up=False,
    setting=lambda fault: int(fault.argument.get("rate_ppm", DRIFT_PPM)),
    shown=lambda rate_ppm: f"{rate_ppm / 10_000:+g} %",
    description="clocks of {nodes} run {setting} fast{remark}",
    complaint="the clock of {target} runs {seen} fast instead of {wanted}",
)
