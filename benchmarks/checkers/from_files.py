"""The cost of stored histories: each of Porcupine's etcd logs alone, and a campaign's Parquet file from disk to
verdict.

    python benchmarks/checkers/from_files.py --logs ../shared/histories/porcupine/jepsen --operations 200000

A log's time is that of the engine, its columns made before, as other tools are timed with their events in memory. The
Parquet file holds reads and writes of unique values by ten clients, a thousand operations on each key; its time is that
of reading and of judging, as columns and once more by rows, every value a Python object. Processor
time, but for the logs, whose microseconds are too few for its clock.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from random import Random
from time import perf_counter, process_time

from faultline.campaign.histories import history_table, read_history, write_parquet
from faultline.checkers import LinearizabilityChecker
from faultline.checkers.importers import format_named
from faultline.checkers.importers.events import COLUMNS
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.registers import register_columns
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok

REPETITIONS = 15
CLIENTS = 10
OPERATIONS_PER_KEY = 1_000


def microseconds_of(log: Path) -> float:
    """Return the least time in which the engine judges one log."""
    columns = register_columns(format_named("jepsen-log").read(log).history)
    best_s = float("inf")
    for _ in range(REPETITIONS):
        start_s = perf_counter()
        check_columns(columns)
        best_s = min(best_s, perf_counter() - start_s)
    return best_s * 1e6


def registers(operations: int) -> History:
    """Return a linearizable history: rounds of ten overlapping reads and writes, answered in a random order."""
    history, rng, time_us = History(), Random(1), 0
    value: int | None = None
    for start in range(0, operations, CLIENTS):
        key = f"k{start // OPERATIONS_PER_KEY}"
        value = None if start % OPERATIONS_PER_KEY == 0 else value
        invoked = []
        for client in range(CLIENTS):
            written = start + client + 1 if rng.random() < 0.5 else None
            operation = Operation(client, "read" if written is None else "write", key, written)
            invoked.append((history.invoke(operation, time_us, client, "athens"), written))
            time_us += 1
        rng.shuffle(invoked)
        for row, written in invoked:
            value = value if written is None else written
            history.complete(row, ok(value if written is None else None), time_us)
            time_us += 1
    return history


def parquet_figures(operations: int) -> dict[str, float]:
    """Return operations a second, from the file to the history and from the file to the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part-0.parquet"
        write_parquet(path, history_table("run", registers(operations)))
        read_history(path, "run")  # The first use of Arrow loads and starts it, which is not part of the figures.
        start_s = process_time()
        stored = read_history(path, "run")
        read_s = process_time()
        verdict = LinearizabilityChecker().check(stored, None).verdict
        end_s = process_time()
        listed = as_lists(read_history(path, "run"))
        by_rows = LinearizabilityChecker().check(listed, None).verdict
        rows_s = process_time()
    assert verdict is by_rows
    print(f"{operations} operations in Parquet: {verdict.value}")
    return {
        "read, operations/s": operations / (read_s - start_s),
        "in all, operations/s": operations / (end_s - start_s),
        "in all by rows, operations/s": operations / (rows_s - end_s),
        "ratio": (rows_s - end_s) / (end_s - start_s),
    }


def as_lists(stored: History) -> History:
    """Return the same history with every column a list of Python values, as a run records it."""
    history = History()
    for name in COLUMNS:
        setattr(history, name, getattr(stored, name))
    return history


def main() -> None:
    """Print the figures of the logs and the Parquet file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--logs", type=Path, help="folder with etcd_*.log")
    parser.add_argument("--operations", type=int, default=200_000, help="operations in the Parquet file")
    wanted = parser.parse_args()
    if wanted.logs is not None:
        times = {log.name: microseconds_of(log) for log in sorted(wanted.logs.glob("etcd_*.log"))}
        slowest = max(times, key=times.__getitem__)
        print(f"{len(times)} logs alone: median {statistics.median(times.values()):.1f} us", end="")
        print(f", slowest {slowest} {times[slowest]:.1f} us")
    for name, figure in parquet_figures(wanted.operations).items():
        print(f"{name:<32}{figure:>14,.1f}")


if __name__ == "__main__":
    main()
