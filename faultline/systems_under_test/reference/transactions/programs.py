"""The transactions that clients of `transactional-kv` can be asked for, each a short program of reads and writes.

    txn        [["r", k, null], ["append", k, e], ["w", k, v]]   these steps, in order; answers them, reads filled in
    txn        the same on a table, its key: `conditions.py`     inserts, changes and deletes rows, selects by condition
    transfer   {"from", "to", "amount", "opening"}               moves an amount, unless the balance is too small
    balances   {"accounts": [...]}                               answers all balances; null for an unused account
    book       a guest, under the key of a day                   books truck and backhoe if both are free; their guests
    bookings   nothing, under the key of a day                   answers the guests that have them, [truck, backhoe]

An unused account holds its `opening` balance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from faultline.harness.operation import Operation
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Program, Read, Refused, Write
from faultline.systems_under_test.reference.transactions.conditions import steps_on_table

__all__ = ["FUNCTIONS", "INSUFFICIENT_BALANCE", "booking_keys", "carry_out", "only_reads", "program_of"]

INSUFFICIENT_BALANCE = "insufficient-balance"
"""The error of a transfer when the account to be debited holds less than the amount."""

_BOOKABLE = ("truck", "backhoe")


def booking_keys(day: str) -> tuple[str, ...]:
    """Return the keys of a booking of `day`: the truck's and the backhoe's."""
    return tuple(f"{what}_booking_on_{day}" for what in _BOOKABLE)


def _steps(operation: Operation) -> Program:
    if operation.key:
        return (yield from steps_on_table(operation.key, operation.value))
    done = []
    for kind, key, value in operation.value:
        if kind == "r":
            done.append([kind, key, (yield Read(key))])
        elif kind == "append":
            before = yield Read(key)
            yield Write(key, [*(before or ()), value])
            done.append([kind, key, value])
        else:
            yield Write(key, value)
            done.append([kind, key, value])
    return done


def _transfer(operation: Operation) -> Program:
    value = operation.value
    opening, amount = value["opening"], value["amount"]
    left = _or(opening, (yield Read(value["from"]))) - amount
    if left < 0:
        raise Refused(INSUFFICIENT_BALANCE)
    more = _or(opening, (yield Read(value["to"]))) + amount
    yield Write(value["from"], left)
    yield Write(value["to"], more)
    return None


def _balances(operation: Operation) -> Program:
    found = {}
    for account in operation.value["accounts"]:
        found[account] = yield Read(account)
    return found


def _book(operation: Operation) -> Program:
    owners = yield from _bookings(operation)
    if owners != [None] * len(owners):
        return owners
    for key in booking_keys(operation.key or ""):
        yield Write(key, operation.value)
    return [operation.value] * len(owners)


def _bookings(operation: Operation) -> Program:
    truck, backhoe = booking_keys(operation.key or "")
    return [(yield Read(truck)), (yield Read(backhoe))]


def _or(default: int, found: int | None) -> int:
    return default if found is None else found


_PROGRAMS: Mapping[str, Callable[[Operation], Program]] = {
    "txn": _steps,
    "transfer": _transfer,
    "balances": _balances,
    "book": _book,
    "bookings": _bookings,
}

FUNCTIONS = tuple(_PROGRAMS)
"""The functions that a client can be asked for."""


def carry_out(program: Program, answer_of: Callable[[Read | Write], Any]) -> Any:
    """Run `program`, with the answer of `answer_of` to each of its steps, and return its answer."""
    answer = None
    while True:
        try:
            step = program.send(answer)
        except StopIteration as end:
            return end.value
        answer = answer_of(step)


def program_of(operation: Operation) -> Callable[[], Program] | None:
    """Return the factory of the programs of `operation`, one for each attempt; None for an unknown function."""
    program = _PROGRAMS.get(operation.f)
    return None if program is None else lambda: program(operation)


def only_reads(operation: Operation) -> bool:
    """Return whether the transaction cannot write."""
    if operation.f == "txn":
        return all(step[0] in ("r", "rp") for step in operation.value)
    return operation.f in ("balances", "bookings")
