"""The speed and the memory of transactions on lists that are judged while they come and go.

    python benchmarks/checkers/incremental_lists.py --transactions 1000000

Clients read and append to five lists at a time, up to four steps in a transaction, and go on to five new lists after
60 transactions, as in the workload `txn-append`; every history is serializable in real time. Transactions are
generated and forgotten. Printed are transactions a second in processor time of the checker alone, the nodes of its
graph, and the peak memory of the process, to which the lists belong that the checker keeps.
"""

from __future__ import annotations

import argparse
import random
import resource
from time import process_time
from typing import Any

from faultline.checkers.incremental.lists import IncrementalLists
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, info, ok

__all__ = ["main"]

_KEYS, _TRANSACTIONS_PER_KEYS, _STEPS_MAX = 5, 60, 4

_UnderWay = tuple[int, list[list[Any]], Outcome | None]


class _Lists:
    """Lists under `clients`, of whose transactions a share crashes, half of them with their effect."""

    def __init__(self, clients: int, crashed: float) -> None:
        self.rng = random.Random(1)
        self.crashed = crashed
        self.lists: dict[str, list[int]] = {}
        self.under_way: list[_UnderWay | None] = [None] * clients
        self.begun = 0

    def steps(self) -> list[list[Any]]:
        draw, group = self.rng.random, self.begun // _TRANSACTIONS_PER_KEYS
        drawn = [(f"k{group}-{int(draw() * _KEYS)}", draw() < 0.5) for _ in range(1 + int(draw() * _STEPS_MAX))]
        number = self.begun * _STEPS_MAX
        return [
            ["r", key, None] if is_read else ["append", key, number + place]
            for place, (key, is_read) in enumerate(drawn)
        ]

    def effect(self, steps: list[list[Any]]) -> Outcome:
        is_crashed = self.rng.random() < self.crashed
        if is_crashed and self.rng.random() < 0.5:
            return info("timeout")
        done = []
        for f, key, value in steps:
            elements = self.lists.setdefault(key, [])
            if f == "append":
                elements.append(value)
            done.append([f, key, list(elements) if f == "r" else value])
        return info("timeout") if is_crashed else ok(done)


def _advance(lists: _Lists, checker: IncrementalLists) -> float:
    """Let one client begin, carry out or end a transaction; return the seconds that the checker took."""
    client = int(lists.rng.random() * len(lists.under_way))
    given = lists.under_way[client]
    if given is None:
        row, steps = lists.begun, lists.steps()
        lists.begun += 1
        lists.under_way[client] = (row, steps, None)
        started_s = process_time()
        checker.invoke(row, Operation(client, "txn", None, steps))
        return process_time() - started_s
    row, steps, outcome = given
    if outcome is None:
        lists.under_way[client] = (row, steps, lists.effect(steps))
        return 0.0
    lists.under_way[client] = None
    started_s = process_time()
    if checker.complete(row, outcome):
        raise AssertionError(f"a legal history was refused at row {row}")
    return process_time() - started_s


def main() -> None:
    """Print one line for the transactions asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--crashed", type=float, default=0.0, help="share of transactions whose outcome stays unknown")
    given = parser.parse_args()
    lists, checker = _Lists(given.clients, given.crashed), IncrementalLists(process=True, realtime=True)
    seconds = 0.0
    while lists.begun < given.transactions:
        seconds += _advance(lists, checker)
        if lists.begun % _TRANSACTIONS_PER_KEYS == 0:
            lists.lists = {key: lists.lists[key] for key in [*lists.lists][-2 * _KEYS :]}
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{lists.begun:,} transactions, {given.clients} clients, {given.crashed:.0%} crashed: "
        f"{lists.begun / seconds:,.0f} transactions/s, {checker.size} nodes in the graph, peak {peak_mb:.0f} MB"
    )


if __name__ == "__main__":
    main()
