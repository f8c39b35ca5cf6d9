"""The speed of the local real world: operations a second and latency with every client in a closed loop, no faults.

Each client has its next operation ready as soon as the last one completed, so the figure is what nodes, proxies, disk
and harness carry together on this machine. Nothing here is a test: figures depend on the machine.

    python benchmarks/local_world.py --seconds 5 --workers 5
    python benchmarks/local_world.py --system consistent-core --json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from faultline.harness.plan import Plan, PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.world.local.world import run_local
from faultline.registry import resolve

__all__ = ["Measurement", "closed_loop", "main", "measure"]

OPERATIONS_PER_WORKER_AND_SECOND = 1_000
KEYS = 10


@dataclass(frozen=True)
class Measurement:
    """Operations that completed `ok` a second, their latency, and the time in which the cluster elected a leader."""

    operations_per_second: float
    latency_us_p50: int
    latency_us_p99: int
    boot_us: int
    messages_per_second: float


def closed_loop(plan: Plan, seconds: float) -> Plan:
    """Return `plan` without faults, and with more reads and writes ready at time 0 than `seconds` can hold."""
    per_worker = int(seconds * OPERATIONS_PER_WORKER_AND_SECOND)
    operations = [
        PlannedOperation(
            worker, 0, "write" if number % 2 else "read", f"k{number % KEYS}", number if number % 2 else None
        )
        for number in range(per_worker)
        for worker in range(plan.workers)
    ]
    end_us = int(seconds * 1_000_000)
    return msgspec.structs.replace(plan, operations=tuple(operations), faults=(), heal_us=end_us, end_us=end_us + 1)


def measure(system: str, seconds: float, workers: int) -> Measurement:
    """Run `system` on three processes for `seconds`."""
    request = RunRequest(system=system, faults=(), world="local", duration_s=seconds, workers=workers)
    parts = resolve(request)
    plan = closed_loop(make_plan(request, parts), seconds)
    with tempfile.TemporaryDirectory() as folder:
        return _figures(run_local(plan, parts, folder=Path(folder)), seconds)


def _figures(record: RunRecord, seconds: float) -> Measurement:
    rows = [row for row in record.history.rows() if row.outcome == "ok"]
    latencies_us = sorted(row.complete_us - row.invoke_us for row in rows)
    return Measurement(
        operations_per_second=round(len(rows) / seconds, 1),
        latency_us_p50=latencies_us[len(rows) // 2],
        latency_us_p99=latencies_us[len(rows) * 99 // 100],
        boot_us=record.statistics["boot_us"],
        messages_per_second=round(record.statistics["messages_delivered"] / seconds, 1),
    )


def main(arguments: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Operations a second in the local real world, in a closed loop.")
    parser.add_argument("--system", default="consistent-core")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = asdict(measure(options.system, options.seconds, options.workers))
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:24} {value}")


if __name__ == "__main__":
    main(sys.argv[1:])
