"""The speed of checking transactions: valid histories of lists and registers, and ones with an anomaly in them.

    python benchmarks/checkers/transactions.py
    python benchmarks/checkers/transactions.py --sizes 1000,1000000 --workload rw-register --json

Histories are those of a database that does each transaction at one moment: 10 clients that are always busy, 1 to 4
micro-operations, 10 keys in use at a time, each of which is replaced after 100 writes. Each measurement runs in a
process of its own, so that memory is its own as well: `base` is what the history itself takes with the interpreter,
`peak` what the check reached beside it. Time is processor time, the best of three checks, from Faultline's recorded
history to the verdict; encoding is part of it. The goals are those of the project for list-append under strict
serializability.

Injected anomalies: in the middle, twenty successive transactions read the state of twelve writes before (`stale`),
or every two-hundredth transaction does (`many`), which leaves large components.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from time import process_time
from typing import Any

from faultline.checkers.transactions.checker import check_transactions
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["main", "synthetic_history"]

REPETITIONS = 3
GOALS = {100_000: (0.5, 300), 1_000_000: (6.0, 3000)}
INJECTIONS = ("none", "stale", "many")


class _Client:
    """A closed loop of clients on a database with atomic transactions."""

    def __init__(self, transactions: int, write: str, injection: str, seed: int) -> None:
        self.history = History()
        self.rng = random.Random(seed)
        self.keys = list(range(10))
        self.next_key = 10
        self.store: dict[int, Any] = {}
        self.written: dict[int, int] = {}
        self.transactions = transactions
        self.write = write
        self.stale = frozenset(self._stale(transactions, injection))

    def _stale(self, transactions: int, injection: str) -> Iterator[int]:
        if injection == "stale":
            yield from range(transactions // 2, transactions // 2 + 20)
        if injection == "many":
            yield from range(100, transactions, 200)

    def body(self) -> list[list[Any]]:
        """Return the micro-operations of the next transaction."""
        micros: list[list[Any]] = []
        for _ in range(1 + int(self.rng.random() * 4)):
            slot = int(self.rng.random() * len(self.keys))
            key = self.keys[slot]
            if self.rng.random() < 0.5:
                micros.append(["r", key, None])
                continue
            self.written[key] = self.written.get(key, 0) + 1
            micros.append([self.write, key, self.written[key]])
            if self.written[key] >= 100:
                self.keys[slot] = self.next_key
                self.next_key += 1
        return micros

    def take_effect(self, row: int) -> list[list[Any]]:
        """Let the whole transaction of `row` take effect now."""
        answer: list[list[Any]] = []
        for name, key, value in self.history.value[row]:
            if name == "append":
                self.store.setdefault(key, []).append(value)
            elif name == "w":
                self.store[key] = value
            else:
                value = self._read(row, key)
            answer.append([name, key, value])
        return answer

    def _read(self, row: int, key: int) -> Any:
        value = self.store.get(key)
        if value is None:
            return None
        if self.write == "append":
            return value[:-12] if row in self.stale else value[:]
        return max(value - 12, 1) if row in self.stale else value

    def run(self) -> History:
        """Return the whole history: each client invokes, takes effect and completes, in random alternation."""
        history = self.history
        running: dict[int, tuple[int, list[list[Any]] | None]] = {}
        event = 0
        while len(history) < self.transactions or running:
            event += 1
            client = int(self.rng.random() * 10)
            if client not in running:
                if len(history) < self.transactions:
                    operation = Operation(client, "txn", None, self.body())
                    running[client] = (history.invoke(operation, event, client, ""), None)
                continue
            row, answer = running[client]
            if answer is None:
                running[client] = (row, self.take_effect(row))
            else:
                history.complete(row, Outcome("ok", answer), event)
                del running[client]
        return history


def synthetic_history(transactions: int, workload: str, injection: str = "none", seed: int = 0) -> History:
    """Return a history of that many transactions of `workload`, valid unless anomalies are injected."""
    return _Client(transactions, "append" if workload == "list-append" else "w", injection, seed).run()


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _measure(transactions: int, workload: str, model: str, injection: str) -> dict[str, Any]:
    """Make one measurement in this process."""
    history = synthetic_history(transactions, workload, injection)
    base, seconds = _megabytes(), []
    for _ in range(REPETITIONS):
        start = process_time()
        result = check_transactions(history, workload, model)
        seconds.append(process_time() - start)
    return {
        "transactions": transactions,
        "workload": workload,
        "model": model,
        "injection": injection,
        "verdict": str(result.verdict),
        "anomalies": result.detail["anomalies"],
        "first_s": round(seconds[0], 4),
        "best_s": round(min(seconds), 4),
        "base_mb": round(base, 1),
        "peak_mb": round(_megabytes(), 1),
    }


def _in_own_process(arguments: list[str]) -> dict[str, Any]:
    output = subprocess.run(
        [sys.executable, __file__, "--one", *arguments], check=True, capture_output=True, text=True
    ).stdout
    row: dict[str, Any] = json.loads(output)
    return row


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "transactions  workload     injected  verdict    best s  first s  base MB  peak MB  anomalies",
    ]
    for row in rows:
        goal = (
            GOALS.get(row["transactions"]) if row["workload"] == "list-append" and row["injection"] == "none" else None
        )
        lines.append(
            f"{row['transactions']:>12}  {row['workload']:<11}  {row['injection']:<8}  {row['verdict']:<9}"
            f"  {row['best_s']:>6.3f}  {row['first_s']:>7.3f}  {row['base_mb']:>7.0f}  {row['peak_mb']:>7.0f}"
            f"  {', '.join(row['anomalies'])}{f'(goal: {goal[0]} s, {goal[1]} MB)' if goal else ''}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--workload", choices=("list-append", "rw-register"), action="append")
    parser.add_argument("--model", default="strict-serializable")
    parser.add_argument("--injection", choices=INJECTIONS, action="append")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    workloads, injections = options.workload or ["list-append", "rw-register"], options.injection or ["none"]
    if options.one:
        print(json.dumps(_measure(sizes[0], workloads[0], options.model, injections[0])))
        return
    rows = [
        _in_own_process(
            ["--sizes", str(size), "--workload", workload, "--model", options.model, "--injection", injection]
        )
        for workload in workloads
        for injection in injections
        for size in sizes
    ]
    print(json.dumps(rows, indent=2) if options.json else _table(rows))


if __name__ == "__main__":
    main()
