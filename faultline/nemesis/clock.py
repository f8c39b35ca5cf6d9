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
from faultline.nemesis.targets import aimed

__all__ = ["ClockDrift", "ClockStep", "ClockStrobe"]

STEP_US = 500_000
DRIFT_PPM = 100_000


def _reset(port: FaultPort, injection: Injection) -> None:
    for node in injection.nodes:
        port.reset_clock(NodeId(node))


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
        before = {node: port.clock_offset_us(NodeId(node)) for node in nodes}
        for node in nodes:
            port.step_clock(NodeId(node), delta_us)
        description = f"wall clock of {' '.join(nodes)} stepped by {delta_us / 1000:+g} ms{resolution.remark}"
        return Injection(nodes=nodes, description=description, state={"delta_us": delta_us, "before": before})

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe the offsets: each must have moved by the step, give or take half of it for the time of probing."""
        delta_us = injection.state["delta_us"]
        for node, before_us in injection.state["before"].items():
            moved_us = port.clock_offset_us(NodeId(node)) - before_us
            if abs(moved_us - delta_us) > abs(delta_us) // 2:
                return f"the clock of {node} moved by {moved_us} us instead of {delta_us} us"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A step happens once."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Put the clocks right."""
        _reset(port, injection)


class ClockStrobe(ClockStep):
    """The nemesis `clock-strobe`: forward at the start, then back and forward again at every tick."""

    kind = "clock-strobe"
    summary = "moves wall clocks forward and back, over and over"
    mark = "clocks-strobed"
    tick_us = 25_000

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Step the other way; the direction follows from the offset, so that a lost tick does no harm."""
        delta_us = injection.state["delta_us"]
        for node in injection.nodes:
            away = abs(port.clock_offset_us(NodeId(node)) - injection.state["before"][node]) > abs(delta_us) // 2
            port.step_clock(NodeId(node), -delta_us if away else delta_us)


class ClockDrift:
    """The nemesis `clock-drift`. Argument: `rate_ppm` (default a tenth too fast)."""

    kind = "clock-drift"
    summary = "lets both clocks of a node run fast or slow"
    mark = "clocks-drifted"
    needs = frozenset({"clock-drift"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Let the clocks of the target drift."""
        resolution = aimed(port, fault, seed)
        nodes = resolution.nodes
        rate_ppm = int(fault.argument.get("rate_ppm", DRIFT_PPM))
        for node in nodes:
            port.drift_clock(NodeId(node), rate_ppm)
        description = f"clocks of {' '.join(nodes)} run {rate_ppm / 10_000:+g} % fast{resolution.remark}"
        return Injection(nodes=nodes, description=description, state={"rate_ppm": rate_ppm})

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe the rates."""
        for node in injection.nodes:
            seen_ppm = port.clock_rate_ppm(NodeId(node))
            if seen_ppm != injection.state["rate_ppm"]:
                return f"the clock of {node} drifts by {seen_ppm} ppm instead of {injection.state['rate_ppm']} ppm"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A drift goes on by itself."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Put the clocks right."""
        _reset(port, injection)
