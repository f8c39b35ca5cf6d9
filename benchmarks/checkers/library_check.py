"""The time of `check("register", operations)` on lists of operations: ten clients, five values, half of them reads.

Processor time, the least of five. `python benchmarks/checkers/library_check.py`
"""

from __future__ import annotations

import random
import time
from typing import Any

from faultline.checkers import Operation, check

CLIENTS, VALUES, SEED = 10, 5, 1


def operations_of_a_true_register(count: int) -> list[Operation[Any, Any]]:
    """Return `count` operations that take effect one by one, each at a moment between its call and its return."""
    rng, free = random.Random(SEED), [0.0] * CLIENTS
    moments = []
    for number in range(count):
        client = number % CLIENTS
        call = free[client] + rng.random()
        effect = call + rng.random()
        free[client] = effect + rng.random()
        moments.append((effect, client, call, free[client]))
    value: int | None = None
    operations: list[Operation[Any, Any]] = []
    for _, client, call, return_ in sorted(moments):
        if rng.random() < 0.5:
            value = rng.randrange(VALUES)
            operations.append(Operation(client, ("write", value), call, None, return_))
        else:
            operations.append(Operation(client, "read", call, value, return_))
    return operations


def main() -> None:
    """Print the least of five times for each length."""
    for count in (1_000, 10_000, 100_000):
        operations = operations_of_a_true_register(count)
        spent = []
        for _ in range(5):
            before = time.process_time()
            assert check("register", operations)
            spent.append(time.process_time() - before)
        print(f"{count:>7,} operations: {min(spent) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
