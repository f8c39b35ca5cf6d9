"""Random small histories, judged event by event by incremental checkers: at each prefix they must know what is known.

    python tools/fuzz_incremental.py --seeds 0..99999 --processes 2
    python tools/fuzz_incremental.py --seeds 0..99999 --model read-write

Each seed is one history of an object that a few clients use at once. Operations crash before or after their effect, or
fail; some answers are wrong. After each completion the prefix of the history is judged anew by a checker that sees all
of it: for registers by the port of Porcupine. The incremental checker must be certain of a violation exactly at the
first prefix that has one. The first difference is printed with its seed, and the program ends with 1.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from faultline.checkers.incremental.registers import IncrementalRegisters
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import register_operations
from faultline.checkers.porcupine import check_operations
from faultline.harness.history import History
from faultline.harness.incremental import IncrementalChecker
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, info, ok

__all__ = ["MODELS", "differences", "random_events"]

BATCH = 250
OPERATIONS_MAX = 13
KEY = "k"

Event = tuple[int, Operation | Outcome]
"""A row with its invocation or its completion."""


class Thing(Protocol):
    """An object that clients use at once."""

    def call(self) -> tuple[str, Any]:
        """Return the function and the argument of a new operation."""

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect; return its true outcome."""

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return an outcome that may be false."""


class Register:
    """A register with few values, or with values that are all different; with or without compare-and-set."""

    def __init__(self, rng: random.Random, *, with_cas: bool) -> None:
        self.rng = rng
        self.functions = ("read", "write", "cas") if with_cas else ("read", "write")
        self.domain = int(rng.random() * 3) + 2
        self.is_unique = rng.random() < 0.6
        self.state: int | None = None
        self.written = 0

    def old_value(self) -> int | None:
        """Return a value that may be there."""
        if self.rng.random() < 0.5:
            return self.state
        return int(self.rng.random() * (self.written + 1 if self.is_unique else self.domain)) or None

    def new_value(self) -> int | None:
        """Return a value to put there."""
        if self.is_unique:
            self.written += 1
            return self.written
        return int(self.rng.random() * self.domain) or None

    def call(self) -> tuple[str, Any]:
        """Return a new operation."""
        f = self.functions[int(self.rng.random() * len(self.functions))]
        if f == "read":
            return f, None
        return f, self.new_value() if f == "write" else [self.old_value(), self.new_value()]

    def effect(self, f: str, value: Any) -> Outcome:
        """Let the operation take effect."""
        if f == "read":
            return ok(self.state)
        if f == "cas" and self.state != value[0]:
            return fail(CAS_MISMATCH)
        self.state = value[1] if f == "cas" else value
        return ok()

    def wrong(self, f: str, value: Any, outcome: Outcome) -> Outcome:
        """Return another value, or the other answer."""
        if f == "read":
            return ok(self.old_value())
        if outcome.kind == "ok":
            return fail(CAS_MISMATCH) if f == "cas" else fail("refused")
        return ok()


class Model(NamedTuple):
    """A kind of object: how one is made, its incremental checker, and whether the checker of histories refutes one."""

    thing: Callable[[random.Random], Thing]
    incremental: Callable[[], IncrementalChecker]
    refutes: Callable[[History], bool]


def _port_refutes(history: History) -> bool:
    """Return whether the port of Porcupine finds no order."""
    operations = register_operations(history, range(len(history)))
    return check_operations(register_model(), referee_operations(operations)) is False


MODELS: Mapping[str, Model] = {
    "cas-register": Model(partial(Register, with_cas=True), IncrementalRegisters, _port_refutes),
    "read-write": Model(partial(Register, with_cas=False), IncrementalRegisters, _port_refutes),
}


def random_events(model: str, seed: int) -> Iterator[Event]:
    """Yield the events of the history that `seed` draws, in order; some operations never complete."""
    rng = random.Random(f"{model} {seed}")
    thing = MODELS[model].thing(rng)
    size, clients = 1 + int(rng.random() * OPERATIONS_MAX), 1 + int(rng.random() * 5)
    crashes, corruption = rng.random() * 0.3, (0.0, 0.05, 0.2)[int(rng.random() * 3)]
    processes = list(range(clients))
    under_way: dict[int, tuple[int, str, Any, Outcome | None]] = {}
    begun = 0
    while begun < size or (under_way and rng.random() < 0.97):
        client = int(rng.random() * clients)
        if client not in under_way:
            if begun < size:
                f, value = thing.call()
                under_way[client] = (begun, f, value, None)
                yield begun, Operation(processes[client], f, KEY, value)
                begun += 1
            continue
        row, f, value, outcome = under_way.pop(client)
        if rng.random() < crashes:
            # A read that ends so tells nothing; a change may have happened, or not, or certainly not.
            yield row, info("timeout") if outcome is not None or rng.random() < 0.6 else fail("refused")
            processes[client] += clients
        elif outcome is None:
            under_way[client] = (row, f, value, thing.effect(f, value))
        else:
            yield row, thing.wrong(f, value, outcome) if rng.random() < corruption else outcome


def differences(model: str, seeds: Iterable[int], counts: Counter[str]) -> list[str]:
    """Return the differences between the incremental checker and the one that sees each prefix, in words.

    `counts` counts histories by their verdict, and those of which a part was left to the check afterwards.
    """
    complaints: list[str] = []
    for seed in seeds:
        history, checker = History(), MODELS[model].incremental()
        verdict = "legal"
        for row, event in random_events(model, seed):
            if isinstance(event, Operation):
                history.invoke(event, 0, event.process, "athens")
                checker.invoke(row, event)
                continue
            history.complete(row, event, 0)
            rows = checker.complete(row, event)
            if bool(rows) != MODELS[model].refutes(history):
                told = f"certain by rows {rows}" if rows else "not certain"
                complaints.append(f"{model}, seed {seed}: {told} at row {row}, unlike the check of that prefix")
                break
            if rows:
                verdict = "illegal"
                break
        counts[verdict] += 1
        counts["left"] += bool(getattr(checker, "left", ()))
    return complaints


def _judge(model: str, seeds: range) -> tuple[list[str], Counter[str]]:
    counts: Counter[str] = Counter()
    return differences(model, seeds, counts), counts


def _batches(text: str) -> list[range]:
    first, last = map(int, text.split(".."))
    return [range(start, min(start + BATCH, last + 1)) for start in range(first, last + 1, BATCH)]


def main() -> int:
    """Judge all seeds; print differences, then the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0..9999", help="first..last, both included")
    parser.add_argument("--model", choices=tuple(MODELS), default="cas-register")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    start, counts, complaints = perf_counter(), Counter[str](), list[str]()
    batches = _batches(arguments.seeds)
    with multiprocessing.Pool(arguments.processes) as pool:
        for found, counted in pool.imap_unordered(partial(_judge, arguments.model), batches):
            complaints += found
            counts += counted
            for complaint in found:
                print(complaint)
    print(f"{sum(map(len, batches))} histories, {len(complaints)} differences, {perf_counter() - start:.0f} s")
    for what, count in sorted(counts.items()):
        print(f"  {what:8} {count}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
