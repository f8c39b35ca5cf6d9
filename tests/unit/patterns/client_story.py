"""A client of a leaderless system, driven by hand: what it sends, what it hears, and when its timers ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import NodeId

__all__ = ["MEMBERS", "ClientStory"]

MEMBERS = tuple(map(NodeId, ("athens", "byzantium", "cyrene")))


class _Ports:
    """Ports of a client: the messages it sends, and one clock whose timers ring when the test says so."""

    def __init__(self) -> None:
        self.node_id = NodeId("client-0")
        self.clock = self.network = self.timers = self.trace = self.random = self.storage = self
        self.now_us = 0
        self.sent: list[tuple[str, Any]] = []
        self.set: list[list[Any]] = []

    def monotonic_us(self) -> int:
        return self.now_us

    def send(self, to: NodeId, message: Any) -> None:
        self.sent.append((to, message))

    send_ahead = send

    def every(self, interval_us: int, callback: Callable[[], None]) -> Any:
        def ring() -> None:
            self.after(interval_us, ring)
            callback()

        return self.after(interval_us, ring)

    def after(self, delay_us: int, callback: Callable[[], None]) -> Any:
        entry = [self.now_us + delay_us, callback]
        self.set.append(entry)
        return type("Timer", (), {"cancel": lambda _: entry.__setitem__(1, None)})()

    def sometimes(self, mark: str) -> None:
        """Marks are of no interest here."""


class ClientStory:
    """A client at athens, what it sent and what it concluded."""

    def __init__(self, system: Any, mutants: tuple[str, ...] = (), **options: str) -> None:
        self.ports = _Ports()
        self.client = system.client(self.ports, MEMBERS, MEMBERS[0], options, frozenset(mutants))
        self.outcomes: list[Outcome] = []
        self.client.start()

    def invoke(self, f: str, value: Any = None) -> Any:
        """Begin an operation on x; the message it sent last."""
        self.client.invoke(Operation(0, f, "x", value), self.outcomes.append)
        return self.ports.sent[-1][1] if self.ports.sent else None

    def hear(self, source: str, message: Any) -> None:
        self.client.receive(NodeId(source), message)

    def pass_time(self, duration_us: int) -> None:
        end_us = self.ports.now_us + duration_us
        while due := [entry for entry in self.ports.set if entry[1] is not None and entry[0] <= end_us]:
            entry = min(due, key=lambda each: each[0])
            self.ports.set.remove(entry)
            self.ports.now_us = entry[0]
            entry[1]()
        self.ports.now_us = end_us

    @property
    def ended(self) -> list[tuple[str, Any, str | None]]:
        return [(outcome.kind, outcome.value, outcome.error) for outcome in self.outcomes]
