"""Random small histories, judged by the fast engine and by the port of Porcupine: they must never disagree.

    python tools/fuzz_linearizability.py --seeds 0..999999 --processes 2

Each seed is one history of a register that a few clients use at once: reads, writes and compare-and-sets, over few
values or over values that are all different; operations crash before or after their effect; some answers are corrupted.
Each is judged by the native kernel and by the plain Python engine, each with the monitor and by search alone, and every
linearization is replayed once more. The first difference is printed with its seed, and the program ends with 1.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
)
from faultline.checkers.linearizability.witness import is_linearization
from faultline.checkers.porcupine import CheckResult, check_operations

__all__ = ["disagreements", "main", "random_history"]

BATCH = 250
OPERATIONS_MAX = 13


class _Register:
    """A register that clients use at once, some of whom crash or misread."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.size = 1 + int(self.rng.random() * OPERATIONS_MAX)
        self.clients = 1 + int(self.rng.random() * 6)
        self.domain = (2, 3, 4)[int(self.rng.random() * 3)]
        self.is_unique = self.rng.random() < 0.4
        self.crashes = self.rng.random() * 0.3
        self.corruption = (0.0, 0.0, 0.1, 0.3)[int(self.rng.random() * 4)]
        self.state: int | None = None
        self.written = 0
        self.begun = 0

    def old_value(self) -> int | None:
        """A value that may be there."""
        if self.rng.random() < 0.5:
            return self.state
        return int(self.rng.random() * (self.written + 1 if self.is_unique else self.domain)) or None

    def new_value(self) -> int | None:
        """A value to put there."""
        if self.is_unique:
            self.written += 1
            return self.written
        return int(self.rng.random() * self.domain) or None

    def invoke(self, time: int) -> list[Any]:
        """A new operation: kind, demand, produce, call."""
        self.begun += 1
        kind = (OBSERVE, WRITE, SWAP)[int(self.rng.random() * 3)]
        if kind == OBSERVE:
            return [OBSERVE, None, None, time]
        if kind == WRITE:
            return [WRITE, None, self.new_value(), time]
        demand, produce = self.old_value(), self.new_value()
        return [SWAP, demand, produce, time] if demand != produce else [OBSERVE, None, None, time]

    def take_effect(self, operation: list[Any]) -> None:
        """The operation happens, now."""
        kind, demand, produce, _ = operation
        if kind == OBSERVE:
            operation[1] = self.old_value() if self.rng.random() < self.corruption else self.state
        elif kind == SWAP and self.state != demand:
            operation[0], operation[2] = AVOID, None
        else:
            self.state = produce


def random_history(seed: int) -> list[RegisterOperation]:
    """The history of `seed`, in order of call."""
    register, time = _Register(seed), 0
    under_way: dict[int, tuple[list[Any], bool]] = {}
    done: list[tuple[list[Any], int]] = []
    while register.begun < register.size or under_way:
        time += 1
        client = int(register.rng.random() * register.clients)
        operation, happened = under_way.pop(client, (None, False))
        if operation is None:
            if register.begun < register.size:
                under_way[client] = (register.invoke(time), False)
        elif register.rng.random() < register.crashes:
            if operation[0] >= WRITE:
                done.append((operation, INFINITY))
        elif happened:
            done.append((operation, time))
        else:
            register.take_effect(operation)
            under_way[client] = (operation, True)
    done.sort(key=lambda item: item[0][3])
    return [
        RegisterOperation(kind, demand, produce, call, return_, row)
        for row, ((kind, demand, produce, call), return_) in enumerate(done)
    ]


def disagreements(seeds: Sequence[int], counts: Counter[str]) -> list[str]:
    """What the engines and the port do not agree about, in words; `counts` counts what was judged, and how."""
    histories = [random_history(seed) for seed in seeds]
    expected = [check_operations(register_model(), referee_operations(history)) for history in histories]
    columns = _joined(histories)
    engines = ["python"] if engine_in_use().name == "python" else ["native", "python"]
    complaints: list[str] = []
    for engine in engines:
        for method in ("auto", "search"):
            results = check_columns(columns, engine=engine, method=method)
            begin = 0
            for seed, history, is_legal, result in zip(seeds, histories, expected, results):
                counts[f"{engine}, {result.decided_by}: {result.result}"] += 1
                order = [history[i - begin] for i in result.order]
                begin += len(history)
                if (result.result is CheckResult.OK) != is_legal:
                    complaints.append(f"seed {seed}: {engine} ({method}) says {result.result}, the port {is_legal}")
                elif is_legal and not is_linearization(order, history):
                    complaints.append(f"seed {seed}: {engine} ({method}) gives a false witness")
    return complaints


def _joined(histories: Sequence[Sequence[RegisterOperation]]) -> Columns:
    """All histories as the keys of one."""
    joined = Columns(list(range(len(histories))), [None])
    for key, history in enumerate(histories):
        columns = columns_of(history)
        base = len(joined.values) - 1
        joined.values += columns.values[1:]
        joined.key.extend([key] * len(history))
        joined.kind.extend(columns.kind)
        joined.demand.extend(value and value + base for value in columns.demand)
        joined.produce.extend(value and value + base for value in columns.produce)
        joined.call.extend(columns.call)
        joined.return_.extend(columns.return_)
        joined.row.extend(columns.row)
    return joined


def _judge(seeds: range) -> tuple[list[str], Counter[str]]:
    counts: Counter[str] = Counter()
    return disagreements(seeds, counts), counts


def _batches(text: str) -> Iterable[range]:
    first, last = map(int, text.split(".."))
    return [range(start, min(start + BATCH, last + 1)) for start in range(first, last + 1, BATCH)]


def main() -> int:
    """Judge all seeds; print what differs, then what was judged."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0..9999", help="first..last, both included")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    start, counts, complaints = perf_counter(), Counter[str](), list[str]()
    batches = list(_batches(arguments.seeds))
    with multiprocessing.Pool(arguments.processes) as pool:
        for found, counted in pool.imap_unordered(_judge, batches):
            complaints += found
            counts += counted
            for complaint in found:
                print(complaint)
    histories = sum(map(len, batches))
    print(f"{histories} histories, {len(complaints)} differences, {perf_counter() - start:.0f} s")
    for what, count in sorted(counts.items()):
        print(f"  {what:32} {count}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
