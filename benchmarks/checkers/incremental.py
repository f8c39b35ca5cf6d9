"""The speed and the memory of registers that are judged while operations come and go.

    python benchmarks/checkers/incremental.py
    python benchmarks/checkers/incremental.py --operations 10000000 --clients 10 --keys 10

Clients read and write atomic registers at random; every history is legal, so nothing ends early. Operations are
generated in blocks and forgotten: no history is stored. Printed are operations a second in processor time of the
checker alone, what the checker keeps at the end (values, events, configurations, open operations), and the peak memory
of the process, of which a block and Python itself are a fixed part.
"""

from __future__ import annotations

import argparse
import random
import resource
from collections.abc import Iterator
from time import process_time

from faultline.checkers.incremental.registers import IncrementalRegisters
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, info, ok

__all__ = ["main"]

BLOCK = 100_000
_CRASHED = info("timeout")

_Event = tuple[int, Operation | Outcome]


class _Registers:
    """Atomic registers under `clients`, of whose operations a share crashes and a share are compare-and-sets."""

    def __init__(self, clients: int, keys: int, crashed: float, cas: float) -> None:
        self.rng = random.Random(1)
        self.keys = [f"k{number}" for number in range(keys)]
        self.crashed, self.cas = crashed, cas
        self.values: dict[str, int | None] = dict.fromkeys(self.keys)
        self.under_way: list[tuple[int, Operation, Outcome | None] | None] = [None] * clients
        self.begun = 0

    def block(self) -> Iterator[_Event]:
        """Yield the next BLOCK operations as events; some of them complete in the block after."""
        draw, under_way, last = self.rng.random, self.under_way, self.begun + BLOCK
        while self.begun < last:
            client = int(draw() * len(under_way))
            given = under_way[client]
            if given is None:
                operation = self.operation(client)
                under_way[client] = (self.begun, operation, None)
                yield self.begun, operation
                self.begun += 1
            elif given[2] is None:
                under_way[client] = (*given[:2], self.effect(given[1]))
            else:
                under_way[client] = None
                yield given[0], given[2]

    def operation(self, client: int) -> Operation:
        """Return a new operation; each write has a new value."""
        draw = self.rng.random
        key = self.keys[int(draw() * len(self.keys))]
        kind = draw()
        if kind < self.cas:
            return Operation(client, "cas", key, [self.values[key], self.begun])
        return Operation(client, "read", key) if kind < 0.5 else Operation(client, "write", key, self.begun)

    def effect(self, operation: Operation) -> Outcome:
        """Let an operation take effect and return its outcome; half of those that crash have had their effect."""
        crashes = self.crashed and self.rng.random() < self.crashed
        if crashes and self.rng.random() < 0.5:
            return _CRASHED
        key = operation.key or ""
        if operation.f == "read":
            return _CRASHED if crashes else ok(self.values[key])
        if operation.f == "cas":
            if self.values[key] != operation.value[0]:
                return _CRASHED if crashes else fail(CAS_MISMATCH)
            self.values[key] = operation.value[1]
        else:
            self.values[key] = operation.value
        return _CRASHED if crashes else ok()


def _feed(checker: IncrementalRegisters, events: list[_Event]) -> float:
    """Give `events` to `checker`; return the seconds of processor time that it took."""
    started_s = process_time()
    for row, event in events:
        if type(event) is Operation:
            checker.invoke(row, event)
        elif type(event) is Outcome and checker.complete(row, event):
            raise AssertionError(f"a legal history was refused at row {row}")
    return process_time() - started_s


def main() -> None:
    """Print one line for the operations asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--keys", type=int, default=1)
    parser.add_argument("--crashed", type=float, default=0.0, help="share of operations whose outcome stays unknown")
    parser.add_argument("--cas", type=float, default=0.0, help="share of compare-and-sets, at most 0.5")
    given = parser.parse_args()
    registers = _Registers(given.clients, given.keys, given.crashed, given.cas)
    checker = IncrementalRegisters()
    seconds = 0.0
    while registers.begun < given.operations:
        seconds += _feed(checker, list(registers.block()))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{registers.begun:,} operations, {given.clients} clients, {given.keys} keys: "
        f"{registers.begun / seconds:,.0f} operations/s, {checker.size} kept, {len(checker.left)} keys left, "
        f"peak {peak_mb:.0f} MB"
    )


if __name__ == "__main__":
    main()
