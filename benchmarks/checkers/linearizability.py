"""The speed of the linearizability engine: real logs, and registers of 10^3 … 10^6 operations on one key and on many.

    python benchmarks/checkers/linearizability.py
    python benchmarks/checkers/linearizability.py --operations 1000000 --json
    python benchmarks/checkers/linearizability.py --engine python --operations 10000

Every client always has an operation open, which is as much contention as there can be. Kinds: `unique` reads and writes
values that are all different, `unique-cas` also replaces them, `five` reads and writes five values, `five-cas` also
replaces those, and `five-blind-cas` replaces them a third of the time whatever it holds. In some histories
one read is changed, at nine tenths; in some the value of so many writes is that of the write before, the first of them
in the middle; in histories with crashes one operation in so many never returns. Figures are milliseconds of processor
time from columns to verdicts that have been replayed, the least of three, and the peak memory of the process
afterwards; encoding is measured by itself.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time

from faultline.checkers.importers import format_named
from faultline.checkers.importers.events import COLUMNS
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.columns import PENDING, Columns
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.engine.registers import register_columns
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE
from faultline.checkers.porcupine import Budget
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok

__all__ = ["joined_logs", "main", "register_history", "synthetic"]

LOGS = Path(__file__).parents[2] / "tests" / "data" / "histories"
STEPS_MAX = 30_000_000
REPETITIONS = 3


class _Key:
    """A register that `clients` clients use all the time."""

    def __init__(self, kind: str, clients: int, rng: random.Random) -> None:
        self.rng, self.clients, self.state, self.written = rng, clients, 0, 0
        self.has_cas, self.is_unique = kind.endswith("cas"), kind.startswith("unique")
        self.is_blind = kind.endswith("blind-cas")

    def operation(self) -> list[int]:
        """Return the kind, demand and produce of the next operation."""
        draw, (reads, writes) = self.rng.random(), (1 / 3, 2 / 3) if self.is_blind else (0.5, 0.75)
        if draw < reads:
            return [OBSERVE, 0, 0]
        self.written += 1
        value = self.written if self.is_unique else 1 + int(self.rng.random() * 5)
        if not self.has_cas or draw < writes:
            return [WRITE, 0, value]
        looks = self.is_unique or (not self.is_blind and self.rng.random() < 0.5)
        expected = self.state if looks else 1 + int(self.rng.random() * 5)
        return [SWAP, expected, value] if expected != value else [OBSERVE, 0, 0]

    def take_effect(self, operation: list[int]) -> None:
        """Let the operation take effect now."""
        if operation[0] == OBSERVE:
            operation[1] = self.state
        elif operation[0] == SWAP and operation[1] != self.state:
            operation[0], operation[2] = AVOID, 0
        else:
            self.state = operation[2]


def register_history(
    kind: str,
    clients: int,
    operations: int,
    *,
    keys: int = 1,
    crashes: float = 0.0,
    is_corrupted: bool = False,
    repeats: int = 0,
    seed: int = 1,
) -> Columns:
    """Return the columns of a history of `operations` operations; `crashes` is the share of those that never return.

    So many writes as `repeats` says put the value of the write before, from the middle on: they, and every operation on
    their value, get the other number.
    """
    rng = random.Random(seed)
    columns, base = Columns(list(range(keys)), [None]), 0
    for key in range(keys):
        register = _Key(kind, clients, rng)
        rows = sorted(_carried_out(register, operations // keys, crashes), key=lambda row: row[3])
        if repeats:
            rows = _with_repeats(rows, register.written, repeats)
        if is_corrupted:
            _corrupt(rows)
        for name, column in zip(("kind", "demand", "produce", "call", "return_"), zip(*rows)):
            setattr(columns, name, getattr(columns, name) + array(getattr(columns, name).typecode, column))
        columns.key.extend([key] * len(rows))
        base = max(base, register.written, 5)
    columns.values += list(range(1, base + 1))
    columns.row = array("q", range(len(columns.kind)))
    return columns


def _carried_out(register: _Key, operations: int, crashes: float) -> Iterator[tuple[int, int, int, int, int]]:
    rng, time = register.rng, 0
    under_way = [(register.operation(), client, False) for client in range(register.clients)]
    begun = time = register.clients
    while under_way:
        time += 1
        place = int(rng.random() * len(under_way))
        operation, call, happened = under_way[place]
        if not happened:
            register.take_effect(operation)
            under_way[place] = (operation, call, True)
            continue
        crashed = rng.random() < crashes
        if not crashed or operation[0] >= WRITE:
            yield operation[0], operation[1], operation[2], call, PENDING if crashed else time
        if begun < operations:
            begun, time = begun + 1, time + 1
            under_way[place] = (register.operation(), time, False)
        else:
            under_way.pop(place)


def _corrupt(rows: list[tuple[int, int, int, int, int]]) -> None:
    """Let a read at nine tenths see a value of long before."""
    late = next(place for place in range(len(rows) * 9 // 10, len(rows)) if rows[place][0] == OBSERVE)
    early = next(row for row in rows[len(rows) // 2 :] if row[0] == WRITE and row[2] != rows[late][1])
    rows[late] = (OBSERVE, early[2], 0, *rows[late][3:])


def _with_repeats(
    rows: list[tuple[int, int, int, int, int]], written: int, repeats: int
) -> list[tuple[int, int, int, int, int]]:
    """Return `rows` with every second value from the middle on, so many as `repeats`, replaced by the one before."""
    again = range(written // 2 + 1, min(written, written // 2 + 2 * repeats) + 1, 2)
    return [(kind, d - (d in again), p - (p in again), call, return_) for kind, d, p, call, return_ in rows]


def _measure(columns: Columns, engine: str | None) -> dict[str, object]:
    best, verdicts = float("inf"), ""
    for _ in range(REPETITIONS):
        start = process_time()
        decisions = check_columns(columns, Budget(STEPS_MAX), engine=engine)
        best = min(best, process_time() - start)
        verdicts = ", ".join(sorted({f"{decision.legality} by {decision.engine}" for decision in decisions}))
        if best > 2:
            break
    return {"ms": round(best * 1000, 3), "verdict": verdicts, "peak_mb": _peak_mb()}


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def synthetic(operations: int) -> Iterator[tuple[str, Callable[[], Columns]]]:
    """Return registers of 10^3 operations and more, by name, each built when it is asked for."""
    for size in [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= operations]:
        for kind in ("unique", "unique-cas", "five", "five-cas"):
            for clients in (10, 50):
                yield f"{kind}, {clients} clients, {size}", partial(register_history, kind, clients, size)
            corrupted = partial(register_history, kind, 10, size, is_corrupted=True)
            yield f"{kind}, 10 clients, {size}, a read changed", corrupted
        for repeats in (1, size // 100):
            repeated = partial(register_history, "unique", 50, size, repeats=repeats)
            yield f"unique, 50 clients, {size}, {repeats} repeated", repeated
            name = f"unique, 50 clients, {size}, {repeats} repeated, a read changed"
            yield name, partial(repeated, is_corrupted=True)
        for seed in range(1, 11 if size == 1_000 else 2):
            blind = partial(register_history, "five-blind-cas", 50, size, seed=seed)
            yield f"five-blind-cas, 50 clients, {size}, seed {seed}", blind
        for kind in ("unique-cas", "five-cas"):
            yield f"{kind}, 10 clients, {size}, a fifth crash", partial(register_history, kind, 10, size, crashes=0.2)
        yield f"five-cas, 50 clients, {size} on 100 keys", partial(register_history, "five-cas", 50, size, keys=100)


def _encoding(operations: int) -> float:
    """Return operations a second from a History, ten keys one after the other, to verdicts."""
    history, rng = History(), random.Random(1)
    last: dict[str, int] = {}
    for number in range(operations):
        key, value = f"k{number % 10}", None if rng.random() < 0.5 else number
        row = history.invoke(Operation(number % 5, "read" if value is None else "write", key, value), number, 0, "n")
        if value is not None:
            last[key] = value
        history.complete(row, ok(last.get(key)), number)
    start = process_time()
    check_columns(register_columns(history))
    return operations / (process_time() - start)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=100_000, help="the largest history")
    parser.add_argument("--only", default="", help="only histories whose name holds this")
    parser.add_argument("--engine", choices=("native", "python"), help="default: what is in use")
    parser.add_argument("--logs", type=Path, default=LOGS, help="folder with etcd_*.log")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, object]] = {}
    for name, make in [*_real(arguments.logs), *synthetic(arguments.operations)]:
        if arguments.only not in name:
            continue
        figures[name] = _measure(make(), arguments.engine)
        if not arguments.json:
            figure = figures[name]
            print(f"{name:48} {figure['ms']:>12} ms {figure['peak_mb']:>6} MB  {figure['verdict']}", flush=True)
    speed = _encoding(min(arguments.operations, 200_000)) if not arguments.only else 0.0
    if arguments.json:
        print(json.dumps({"engine": engine_in_use().name, "figures": figures, "operations_per_s": speed}))
    elif speed:
        print(f"from History to verdicts: {speed:,.0f} operations/s, engine {engine_in_use().name}")


def joined_logs(folder: Path) -> Columns:
    """Return the etcd logs in `folder` as one history, each log a key."""
    read, whole = format_named("jepsen-log").read, History()
    for path in sorted(folder.glob("etcd_*.log")):
        history = read(path).history
        for name in COLUMNS:
            getattr(whole, name).extend([path.stem] * len(history) if name == "key" else getattr(history, name))
    return register_columns(whole)


def _real(folder: Path) -> Iterator[tuple[str, Callable[[], Columns]]]:
    yield f"{len(list(folder.glob('etcd_*.log')))} etcd logs in one batch", partial(joined_logs, folder)


if __name__ == "__main__":
    main()
