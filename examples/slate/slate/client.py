"""A client of Slate: one request, one answer or none, and an honest outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline import CAS_MISMATCH, NodeId, Operation, Outcome, OutcomeRegistry, Ports, ok
from slate.messages import Answer, Request

__all__ = ["FUNCTIONS", "SlateClient"]

FUNCTIONS = ("read", "write", "cas")
OUTCOMES = OutcomeRegistry([CAS_MISMATCH, "not-primary", "unsupported-operation"])
"""After these errors the operation certainly did not happen. Every other one, such as a timeout, is `info`."""


class SlateClient:
    """A client that reads from `reads_from` and sends the rest to the primary, one operation at a time."""

    def __init__(self, ports: Ports, primary: NodeId, reads_from: NodeId, timeout_us: int) -> None:
        self.ports = ports
        self.primary = primary
        self.reads_from = reads_from
        self.timeout_us = timeout_us
        self.number = 0
        self.done: Callable[[Outcome], None] | None = None

    def start(self) -> None:
        """Start the client, which needs no preparation."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Send the request, and give up after a while."""
        if operation.f not in FUNCTIONS:
            done(OUTCOMES.outcome("unsupported-operation"))
            return
        self.number += 1
        self.done, number = done, self.number
        old, value = operation.value if operation.f == "cas" else (None, operation.value)
        target = self.reads_from if operation.f == "read" else self.primary
        self.ports.network.send(target, Request(number, operation.f, operation.key or "", value, old))
        self.ports.timers.after(self.timeout_us, lambda: self.end(number, OUTCOMES.outcome("timeout")))

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle an answer; one to an earlier request is late, and ignored."""
        if isinstance(message, Answer):
            outcome = ok(message.value, source) if message.error is None else OUTCOMES.outcome(message.error, source)
            self.end(message.number, outcome)

    def end(self, number: int, outcome: Outcome) -> None:
        """End the operation, unless it has ended."""
        if number == self.number and self.done is not None:
            done, self.done = self.done, None
            done(outcome)
