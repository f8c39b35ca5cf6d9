"""A client of a leaderless system, driven by hand: what it sends, what it hears, and when its timers ring."""

from __future__ import annotations

from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import NodeId
from faultline.testing.fake_ports import FakePorts

__all__ = ["MEMBERS", "ClientStory"]

MEMBERS = tuple(map(NodeId, ("athens", "byzantium", "cyrene")))


class ClientStory:
    """A client at athens, what it sent and what it concluded."""

    def __init__(self, system: Any, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        self.ports = FakePorts("client-0")
        self.client = system.client(self.ports, MEMBERS, MEMBERS[0], options, frozenset(planted_bugs))
        self.outcomes: list[Outcome] = []
        self.client.start()

    def invoke(self, f: str, value: Any = None) -> Any:
        """Begin an operation on x; the message it sent last."""
        self.client.invoke(Operation(0, f, "x", value), self.outcomes.append)
        return self.ports.sent[-1][1] if self.ports.sent else None

    def hear(self, source: str, message: Any) -> None:
        self.client.receive(NodeId(source), message)

    def pass_time(self, duration_us: int) -> None:
        self.ports.pass_time(duration_us)

    @property
    def ended(self) -> list[tuple[str, Any, str | None]]:
        return [(outcome.kind, outcome.value, outcome.error) for outcome in self.outcomes]
