"""The cost of the harness itself: operations a second through the interpreter, and its share of a processor.

The store is a dictionary in this process, so that the figures cover planning, dispatching, recording and writing –
everything except the store, its clients and its network.

    python benchmarks/interpreter.py                          # interpreter, whole real world, at a steady rate
    python benchmarks/interpreter.py --operations 1000000     # and the memory of a long run
    python benchmarks/interpreter.py --rate 2000 --seconds 20

`interpreter` polls and completes as fast as it can. `world` carries the same plan out as a run of real processes does:
event loop, nemesis thread, watching of nodes, lines written to `history.jsonl`, for `--seconds` or until
the last operation is done. `steady` has operations fall due at
`--rate` a second and reports the processor time the harness needs meanwhile. Peak memory is of a process without
other work.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from faultline.harness.generator.scheduled import scheduled
from faultline.harness.history import History
from faultline.harness.interpreter import Interpreter
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, ok
from faultline.harness.plan import Plan, PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.store import open_history, prepare_run
from faultline.harness.world.local.cluster import NodeCluster
from faultline.harness.world.local.fault_port import process_fault_port
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.local.node_process import NodeConfig
from faultline.harness.world.local.run import RealRun
from faultline.harness.world.ports import NodeId
from faultline.registry import resolve

__all__ = ["Measurement", "main", "measure"]

KEYS = 10


@dataclass(frozen=True)
class Measurement:
    """One row: operations, their time, the processor time of the harness, and its peak memory."""

    row: str
    operations: int
    operations_per_second: float
    cpu_us_per_operation: float
    cpu_percent: float
    peak_mb: float


class MemoryClients:
    """Clients whose store is a dictionary; answers come in the next round of the event loop, as from a socket."""

    def __init__(self, nodes: tuple[NodeId, ...]) -> None:
        self._nodes = nodes
        self._store: dict[str | None, Any] = {}
        self._loop = asyncio.get_running_loop()

    def node_of(self, worker: int) -> NodeId:
        """Return the node that `worker` would talk to."""
        return self._nodes[worker % len(self._nodes)]

    def invoke(self, worker: int, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Read or write one register."""
        self._loop.call_soon(done, perform(self._store, operation))

    def is_ready(self, worker: int) -> bool:
        """Return True: the dictionary is always ready."""
        return True

    def reconnect(self, worker: int, process: int, error: str, done: Callable[[], None]) -> None:
        """Return at once, as the dictionary is always there."""
        done()

    def close(self) -> None:
        """Close the clients, which have no connections."""


class MemoryCluster(NodeCluster):
    """A cluster without processes."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, RunSecret.drawn(), {})
        self.nodes = tuple(map(NodeId, plan.nodes))

    def config(self, node: NodeId) -> NodeConfig:
        """Refuse: no node starts, so no configuration is needed."""
        raise LookupError(f"{node} has no process")

    async def start(self) -> None:
        """Start no process."""

    def address(self, node: NodeId) -> None:
        """Refuse: no node has an address."""

    async def close(self) -> None:
        """Release no process."""

    async def wait_until_serving(self, timeout_s: float) -> str:
        """Return at once, as the dictionary is always there."""
        return "the dictionary"

    def open_clients(self, errors: list[str]) -> MemoryClients:
        """Return clients of the dictionary."""
        return MemoryClients(self.nodes)


def perform(store: dict[str | None, Any], operation: Operation) -> Outcome:
    """Return the answer of a perfect register."""
    if operation.f == "read":
        return ok(store.get(operation.key), None)
    store[operation.key] = operation.value
    return ok(operation.value, None)


def plan_of(operations: int, workers: int, rate: int, seconds: float) -> Plan:
    """Return a plan of reads and writes, all due at once or `rate` a second; a real run of it lasts `seconds`."""
    request = RunRequest(system="consistent-core", faults=(), world="local", duration_s=1.0, workers=workers)
    plan = make_plan(request, resolve(request))
    step_us = 1_000_000 / rate if rate else 0.0
    rows = tuple(
        PlannedOperation(
            number % workers,
            int(number * step_us),
            "write" if number % 2 else "read",
            f"k{number % KEYS}",
            number if number % 2 else None,
        )
        for number in range(operations)
    )
    end_us = int(seconds * 1_000_000)
    return msgspec.structs.replace(plan, operations=rows, heal_us=end_us, end_us=end_us + 1)


def interpret(plan: Plan, folder: Path) -> tuple[int, float]:
    """Poll and complete as fast as possible; return the number of operations and of seconds."""
    began_s = time.perf_counter()
    store: dict[str | None, Any] = {}
    with open_history(folder) as sink:
        history = History(sink)
        interpreter = Interpreter(
            scheduled(plan.operations), workers=plan.workers, seed=0, history=history, node_of=lambda _: "athens"
        )
        while not interpreter.finished:
            for dispatch in interpreter.poll(0):
                interpreter.complete(dispatch.worker, perform(store, dispatch.operation), 0)
    return len(history), time.perf_counter() - began_s


def carry_out(plan: Plan, folder: Path) -> tuple[int, float]:
    """Run the whole real world around the dictionary; return the number of operations and of seconds."""
    parts = resolve(plan)
    cluster = MemoryCluster(plan)
    with open_history(folder) as sink:
        # The plan has no faults, so the port is asked for processes and roles only.
        run = RealRun(
            plan,
            parts,
            cluster,
            lambda loop: process_fault_port(cluster, loop),
            world="local",
            sink=sink,
        )
        history = asyncio.run(run.carry_out()).history
    return len(history), max(history.complete_us) / 1_000_000


ROWS: dict[str, Callable[[Plan, Path], tuple[int, float]]] = {
    "interpreter": interpret,
    "world": carry_out,
    "steady": carry_out,
}


def measure(row: str, operations: int, workers: int, rate: int, seconds: float) -> Measurement:
    """Measure one row in this process, which should have done no other work."""
    plan = plan_of(operations, workers, rate if row == "steady" else 0, seconds)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        prepare_run(folder, "benchmark", plan, "local")
        began_cpu_s = time.process_time()
        done, elapsed_s = ROWS[row](plan, folder)
        cpu_s = time.process_time() - began_cpu_s
    return Measurement(
        row=row,
        operations=done,
        operations_per_second=round(done / elapsed_s, 1),
        cpu_us_per_operation=round(cpu_s / done * 1e6, 1),
        cpu_percent=round(100 * cpu_s / elapsed_s, 1),
        peak_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    )


def main(arguments: list[str]) -> None:
    """Measure each row in a process of its own and print."""
    parser = argparse.ArgumentParser(description="The cost of the harness itself, with clients of a dictionary.")
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--rate", type=int, default=2_000, help="of the row `steady`, operations a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long the real runs last")
    parser.add_argument("--row", choices=tuple(ROWS), action="append")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    spawn = multiprocessing.get_context("spawn")
    for row in options.row or ROWS:
        operations = int(options.rate * options.seconds) if row == "steady" else options.operations
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            found = asdict(
                pool.submit(measure, row, operations, options.workers, options.rate, options.seconds).result()
            )
        print(json.dumps(found) if options.json else "  ".join(f"{name} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
