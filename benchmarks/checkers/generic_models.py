"""Any model: the generic engine against the port of Porcupine, in one process, on a bank of eight accounts.

    python benchmarks/checkers/generic_models.py
    python benchmarks/checkers/generic_models.py --clients 10 --operations 1000 --json

Half of the operations move money between two accounts, half read all of them; every client always has one open. Each
history is checked as it is, and illegal: with one amount in the middle read wrong. The engine is timed without hooks;
with `readonly`; and with a `can_reach` that knows how far each account can still move.
Times are processor times, the least of three; the port gets one try, of as many steps as `--port-steps-max`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import process_time
from typing import Any

from faultline.checkers.linearizability.generic import check_part
from faultline.checkers.linearizability.generic_search import NO_HOOKS, Hooks
from faultline.checkers.porcupine import UNLIMITED, Budget, Model, Operation, check_single

__all__ = ["BANK", "bank_history", "main", "with_a_wrong_read"]

ACCOUNTS = 8
REPETITIONS = 3

Transfer = tuple[int, int, int]
Balances = tuple[int, ...]


def _step(balances: Balances, given: Transfer | None, answer: Balances | None) -> tuple[bool, Balances]:
    return (balances == answer, balances) if given is None else (True, _moved(balances, given))


def _moved(balances: Balances, transfer: Transfer) -> Balances:
    source, target, amount = transfer
    changed = list(balances)
    changed[source] -= amount
    changed[target] += amount
    return tuple(changed)


BANK: Model[Balances, Transfer | None, Balances | None] = Model(init=lambda: (100,) * ACCOUNTS, step=_step)
"""Accounts that start with 100 each; an input is a transfer, or None for a read of all."""

BankOperation = Operation[Transfer | None, Balances | None]


def _sums_reach(balances: Balances, read: BankOperation, available: Sequence[BankOperation]) -> bool:
    """Return whether each account could reach its read balance by some of the transfers to and from it."""
    least, most = list(balances), list(balances)
    for operation in available:
        if operation.input is not None:
            source, target, amount = operation.input
            least[source] -= amount
            most[target] += amount
    return all(low <= seen <= high for low, seen, high in zip(least, read.output or (), most))


def _is_read(given: Transfer | None, _answer: Balances | None) -> bool:
    return given is None


HOOKS: dict[str, Hooks[Any, Any, Any]] = {
    "no hooks": NO_HOOKS,
    "readonly": Hooks(readonly=_is_read),
    "can_reach": Hooks(readonly=_is_read, can_reach=_sums_reach),
}


def bank_history(clients: int, operations: int, seed: int) -> list[BankOperation]:
    """Return the history of the clients of a correct bank."""
    rng = random.Random(seed)
    balances: Balances = (100,) * ACCOUNTS
    history: list[BankOperation] = []
    open_: dict[int, tuple[Transfer | None, int, bool, Balances | None]] = {}
    begun = time = 0
    while len(history) < operations:
        time += 1
        client = int(rng.random() * clients)
        if client not in open_:
            if begun < operations:
                open_[client], begun = (_draw(rng), time, False, None), begun + 1
            continue
        given, call, is_done, answer = open_[client]
        if is_done:
            history.append(Operation(client, given, call, answer, time))
            del open_[client]
            if begun < operations:
                open_[client], begun = (_draw(rng), time + 1, False, None), begun + 1
            continue
        balances = balances if given is None else _moved(balances, given)
        open_[client] = (given, call, True, balances if given is None else None)
    return history


def with_a_wrong_read(history: Sequence[BankOperation]) -> list[BankOperation]:
    """Return the history with one account read one too high, in the middle."""
    reads = [at for at, operation in enumerate(history) if operation.input is None]
    at = reads[len(reads) // 2]
    first, *others = history[at].output or ()
    changed = list(history)
    changed[at] = replace(history[at], output=(first + 1, *others))
    return changed


def _draw(rng: random.Random) -> Transfer | None:
    if rng.random() < 0.5:
        return None
    return int(rng.random() * ACCOUNTS), int(rng.random() * ACCOUNTS), 1 + int(rng.random() * 5)


def _best_ms(work: Callable[[], Any], repetitions: int = REPETITIONS) -> tuple[float, Any]:
    best, answer = float("inf"), None
    for _ in range(repetitions):
        start = process_time()
        answer = work()
        best = min(best, process_time() - start)
    return round(best * 1000, 2), answer


def _figures(history: Sequence[BankOperation], port_steps_max: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, hooks in HOOKS.items():
        best_ms, found = _best_ms(partial(check_part, BANK, history, UNLIMITED, hooks))
        figures |= {f"{name}, ms": best_ms, f"{name}, steps": found.steps, f"{name}, verdict": found.legality.value}
    port_ms, port = _best_ms(lambda: check_single(BANK, history, Budget(port_steps_max)), 1)
    return figures | {"port, ms": port_ms, "port, steps": port.steps, "port, verdict": port.result.value}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, help="default: 5, 10 and 20, with 200, 1,000 and 400 operations")
    parser.add_argument("--operations", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--port-steps-max", type=int, default=5_000_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object for each history")
    arguments = parser.parse_args()
    sizes = [(5, 200), (10, 1_000), (20, 400)]
    for clients, operations in [(arguments.clients, arguments.operations)] if arguments.clients else sizes:
        for seed in arguments.seeds:
            true = bank_history(clients, operations, seed)
            for name, history in (("true", true), ("changed", with_a_wrong_read(true))):
                figures = _figures(history, arguments.port_steps_max)
                line = {"clients": clients, "operations": operations, "seed": seed, "history": name, **figures}
                print(
                    json.dumps(line) if arguments.json else "  ".join(f"{k} {v}" for k, v in line.items()), flush=True
                )


if __name__ == "__main__":
    main()
