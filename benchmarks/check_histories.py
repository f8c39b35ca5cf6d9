"""The speed of the checkers: milliseconds for a run of 200 operations, and for the etcd logs of Porcupine's test data.

    python benchmarks/check_histories.py
    python benchmarks/check_histories.py --logs ../shared/histories/porcupine/jepsen --json

The runs are those of an atomic register with six keys and five clients, so all of them are valid; a twentieth of their
operations is indeterminate. The logs are timed twice: finding the verdict with the fast search and with the port of
Porcupine, neither with parsing or explaining.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

from faultline.checkers import CHECKERS
from faultline.checkers.importers import format_named
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import RegisterOperation, register_operations
from faultline.checkers.linearizability.search import search
from faultline.checkers.porcupine import check_operations
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, info, ok
from faultline.harness.plan import NODE_NAMES, Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.workload import Checker

__all__ = ["atomic_run", "main"]

RUNS = 50
OF_EVERY_RUN = ("linearizability", "stats", "availability", "vacuity", "invariants")
"""The checkers that judge a run of the workload `register`."""

REPETITIONS = 5
LOGS = Path(__file__).parents[1] / "tests" / "data" / "histories"


class _AtomicRegisters:
    """Registers that clients use concurrently, and whose operations take effect at one moment."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.history = History()
        self.values: dict[str, int] = {}
        self.written = 0

    def invoke(self, worker: int, process: int, time_us: int) -> int:
        """Invoke a random operation on one of six keys; return its row."""
        key = f"k{int(self.rng.random() * 6)}"
        f = ("read", "write", "cas")[int(self.rng.random() * 3)]
        self.written += 1
        value = {"read": None, "write": self.written, "cas": [self.values.get(key), self.written]}[f]
        return self.history.invoke(Operation(process, f, key, value), time_us, worker, NODE_NAMES[worker % 3])

    def take_effect(self, row: int) -> Outcome:
        """Let the operation in `row` take effect now; return its outcome."""
        f, key, value = self.history.f[row], self.history.key[row] or "", self.history.value[row]
        if f == "read":
            return ok(self.values.get(key))
        if f == "cas" and self.values.get(key) != value[0]:
            return fail(CAS_MISMATCH)
        self.values[key] = value if f == "write" else value[1]
        return ok()


def atomic_run(seed: int, operations: int = 200, workers: int = 5) -> RunRecord:
    """Return a valid run of a register workload, with three faults that took effect."""
    registers = _AtomicRegisters(seed)
    rng, time_us = registers.rng, 0
    processes = list(range(workers))
    in_flight: dict[int, tuple[int, Outcome | None]] = {}
    while len(registers.history) < operations or in_flight:
        time_us += int(rng.random() * 1000)
        worker = int(rng.random() * workers)
        row, outcome = in_flight.get(worker, (-1, None))
        if row < 0:
            if len(registers.history) < operations:
                in_flight[worker] = (registers.invoke(worker, processes[worker], time_us), None)
        elif outcome is None:
            in_flight[worker] = (row, registers.take_effect(row))
        else:
            del in_flight[worker]
            if rng.random() < 0.05:
                outcome, processes[worker] = info("timeout"), processes[worker] + workers
            registers.history.complete(row, outcome, time_us)
    plan = Plan(
        system="atomic",
        workload="register",
        seed=seed,
        nodes=NODE_NAMES[:3],
        workers=workers,
        operations=(),
        heal_us=time_us * 3 // 4,
        end_us=time_us,
    )
    return RunRecord(plan=plan, world="simulated", history=registers.history)


def _best_ms(work: Callable[[], object]) -> float:
    """Return the least time of several repetitions, in milliseconds."""
    best = float("inf")
    for _ in range(REPETITIONS):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return best * 1000


def _judge_all(checker: Checker, runs: Sequence[RunRecord]) -> None:
    for run in runs:
        checker.check(run.history, run)


def _checker_figures() -> dict[str, float]:
    runs = [atomic_run(seed) for seed in range(RUNS)]
    figures: dict[str, float] = {}
    for name in OF_EVERY_RUN:
        checker = CHECKERS[name]()
        figures[f"{name}, ms per run"] = _best_ms(partial(_judge_all, checker, runs)) / RUNS
    return figures


def _log_figures(folder: Path) -> dict[str, float]:
    paths = sorted(folder.glob("etcd_*.log"))
    read = format_named("jepsen-log").read
    histories = [read(path).history for path in paths]
    parts: list[list[RegisterOperation]] = [register_operations(history, range(len(history))) for history in histories]
    model = register_model()
    return {
        "etcd logs": len(paths),
        "etcd logs, fast search, ms in all": _best_ms(lambda: [search(part) for part in parts]),
        "etcd logs, port of Porcupine, ms in all": _best_ms(
            lambda: [check_operations(model, referee_operations(part)) for part in parts]
        ),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=Path, default=LOGS, help="folder with etcd_*.log")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    figures = _checker_figures() | _log_figures(arguments.logs)
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:45} {figure:10.3f}")


if __name__ == "__main__":
    main()
