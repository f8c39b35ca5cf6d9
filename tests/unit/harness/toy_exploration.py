"""A system whose number of schedules is known: messages that depend on nothing but their links, and a recorder."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.access import Access
from faultline.harness.explore import Bounds, Exploration, explore
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, Weather
from faultline.harness.verdict import CheckResult, Finding, Verdict
from faultline.harness.world.ports import NodeStatus
from faultline.nemesis import combined, heal_everything
from faultline.registry import load_nemeses

__all__ = ["Toy", "ToyNode", "explored"]

HEAL_US = 500_000

Links = Mapping[str, Mapping[str, int]]
"""The number of messages from each source to each target."""

Order = tuple[str, ...]


class Note(msgspec.Struct, frozen=True):
    text: str


class ToyNode:
    """Sends its messages 50 ms after its start, and keeps those that reach it in any of its lives."""

    def __init__(self, ports, sends: Mapping[str, int], seen: list[str]) -> None:
        self._ports = ports
        self._sends = sends
        self._seen = seen

    def start(self) -> None:
        if self._sends:
            self._ports.timers.after(50_000, self._send)

    def _send(self) -> None:
        for target, count in self._sends.items():
            for number in range(count):
                self._ports.network.send(target, Note(f"{self._ports.node_id}{number}"))

    def receive(self, _source, message: Note) -> None:
        self._seen.append(message.text)

    def status(self) -> NodeStatus:
        return NodeStatus(role="follower")


class Toy:
    """The system, its workload of no operations, and the checker that keeps the order of each run.

    A run in which a node saw the sequence `broken` is a violation.
    """

    name, promise, functions, access = "toy", "", (), Access()
    options: Mapping[str, object] = {}
    planted_bugs: Mapping[str, object] = {}
    features = ()

    def __init__(self, links: Links, broken: Order = ()) -> None:
        self._links = links
        self._broken = broken
        self._seen: dict[str, list[str]] = {}
        self.orders: list[tuple[Order, ...]] = []

    def node(self, ports, members, options, planted_bugs) -> ToyNode:
        return ToyNode(ports, self._links.get(ports.node_id, {}), self._seen.setdefault(ports.node_id, []))

    def client(self, ports, members, contact, options, planted_bugs) -> ToyNode:
        return ToyNode(ports, {}, [])

    def invariants(self):
        return ()

    def check(self, history, run) -> CheckResult:
        seen = [tuple(self._seen.pop(node, ())) for node in run.plan.nodes]
        self.orders.append(tuple(seen))
        if self._broken not in seen or not self._broken:
            return CheckResult(checker=self.name, verdict=Verdict.PASS, sentence="")
        finding = Finding(checker=self.name, anomaly="order", sentence="The order is broken.")
        return CheckResult(checker=self.name, verdict=Verdict.VIOLATION, sentence="", findings=(finding,))


def explored(toy: Toy, nodes: str, bounds: Bounds, **limits) -> Exploration:
    """Explore a cluster of `nodes`, whose names are letters, under constant latencies."""
    plan = Plan(
        system="toy",
        workload="toy",
        seed=1,
        nodes=tuple(nodes),
        workers=1,
        operations=(),
        weather=Weather(latency_us_min=1_000, latency_us_max=1_000, drift_ppm_max=0),
        heal_us=HEAL_US,
        end_us=HEAL_US + 1_000,
    )
    parts = Parts(
        system=toy,
        system_path="",
        workload=toy,
        checkers=(toy,),
        nemeses=load_nemeses([]),
        package=combined([]),
        heal=heal_everything,
    )
    return explore(plan, parts, bounds, **limits)
