"""A run in real time that stops at its first violation, on a cluster without processes and sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from faultline.harness.judge import judge
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, ok
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.verdict import Verdict
from faultline.harness.world.local.run import RealRun
from faultline.registry import resolve

WRONG_AT = 12


class Clients:
    """Clients of registers; from the twelfth operation on a read answers with a value that was never written."""

    def __init__(self) -> None:
        self.values: dict[str | None, Any] = {}
        self.invoked = 0

    def node_of(self, worker: int) -> str:
        return "athens"

    def is_ready(self, worker: int) -> bool:
        return True

    def invoke(self, worker: int, operation: Operation, done: Callable[[Outcome], None]) -> None:
        self.invoked += 1
        if operation.f == "write":
            self.values[operation.key] = operation.value
        answer = self.values.get(operation.key) if operation.f == "read" else None
        if operation.f == "read" and self.invoked >= WRONG_AT:
            answer = -1
        asyncio.get_running_loop().call_soon(done, ok(answer))

    def close(self) -> None:
        """There is nothing to close."""


class Cluster:
    """A cluster that serves at once, and never fails."""

    serving_timeout_s = 5.0
    shares_clock = True
    kept = None

    def __init__(self) -> None:
        self.processes: dict[str, Any] = {}
        self.clients = Clients()

    async def start(self) -> None:
        """It is up."""

    async def wait_until_serving(self, timeout_s: float) -> str:
        return "serving"

    def open_clients(self, errors: list[str]) -> Clients:
        return self.clients

    def unexpected_exits(self) -> list[tuple[str, int]]:
        return []

    def marks(self) -> dict[str, int]:
        return {}

    def statistics(self) -> dict[str, int]:
        return {}

    def detail(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.mark.slow
def test_a_real_run_stops_at_its_first_violation_heals_and_is_judged() -> None:
    request = RunRequest(
        system="consistent-core",
        workload="read-write",
        world="local",
        faults=(),
        duration_s=30,
        stop_at_violation=True,
    )
    parts = replace(resolve(request), heal=lambda _port: [])
    plan, cluster = make_plan(request, parts), Cluster()
    nothing: Any = None
    fake: Any = cluster
    record = asyncio.run(RealRun(plan, parts, fake, lambda _loop: nothing, world="local").carry_out())
    assert record.stopped_by is not None
    assert record.stopped_by.checker == "linearizability"
    assert WRONG_AT <= len(record.history) < 60 < len(plan.operations)
    assert [event.f for event in record.history.faults] == ["heal"]
    assert record.errors == []
    judgement = judge(record, parts, run_id="r")
    assert judgement.verdict is Verdict.VIOLATION
    assert judgement.errors == []
