"""Values that are put more than once: reads are mapped to writes, zones judge, and cores are illegal by themselves."""

from __future__ import annotations

import random

import pytest

from faultline.checkers.linearizability.decision import Legality
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.operations import (
    AVOID,
    BEGINNING,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
)
from faultline.checkers.porcupine import Budget

OK, ILLEGAL = Legality.LEGAL, Legality.ILLEGAL
ENGINES = ["python"] if engine_in_use().name == "python" else ["python", "native"]

HISTORIES = {
    "a value put again and seen again": (
        [(WRITE, None, 1, 0, 1), (WRITE, None, 2, 2, 3), (WRITE, None, 1, 4, 5), (OBSERVE, 1, None, 6, 7)],
        OK,
    ),
    "a value that was overwritten each time it was put": (
        [
            (WRITE, None, 1, 0, 1),
            (WRITE, None, 2, 2, 3),
            (OBSERVE, 1, None, 4, 5),
            (WRITE, None, 1, 6, 7),
        ],
        ILLEGAL,
    ),
    "the initial value put again": (
        [(WRITE, None, 1, 0, 1), (WRITE, None, None, 2, 3), (OBSERVE, None, None, 4, 5)],
        OK,
    ),
    "the initial value seen after it was overwritten and before it was put": (
        [(WRITE, None, 1, 0, 1), (OBSERVE, None, None, 2, 3), (WRITE, None, None, 4, 5)],
        ILLEGAL,
    ),
    "either of two open writes, each seen": (
        [
            (WRITE, None, 1, 0, 9),
            (WRITE, None, 1, 0, 9),
            (WRITE, None, 2, 0, 9),
            (OBSERVE, 1, None, 1, 2),
            (OBSERVE, 2, None, 3, 4),
            (OBSERVE, 1, None, 5, 6),
        ],
        OK,
    ),
    "two open writes, and a value that came three times": (
        [
            (WRITE, None, 1, 0, 19),
            (WRITE, None, 1, 0, 19),
            (WRITE, None, 2, 0, 19),
            (WRITE, None, 3, 0, 19),
            (OBSERVE, 1, None, 1, 2),
            (OBSERVE, 2, None, 3, 4),
            (OBSERVE, 1, None, 5, 6),
            (OBSERVE, 3, None, 7, 8),
            (OBSERVE, 1, None, 9, 10),
        ],
        ILLEGAL,
    ),
    "two open writes of a value that two compare-and-sets replaced": (
        [(WRITE, None, 1, 0, 9), (WRITE, None, 1, 0, 9), (SWAP, 1, 2, 1, 2), (SWAP, 1, 3, 3, 4)],
        OK,
    ),
    "two open writes of a value that three compare-and-sets replaced": (
        [
            (WRITE, None, 1, 0, 9),
            (WRITE, None, 1, 0, 9),
            (SWAP, 1, 2, 1, 2),
            (SWAP, 1, 3, 3, 4),
            (SWAP, 1, 4, 5, 6),
        ],
        ILLEGAL,
    ),
    "a compare-and-set that would have to follow itself": (
        [(WRITE, None, 1, 6, 7), (SWAP, 1, 2, 0, 3), (SWAP, 2, 1, 0, 3)],
        ILLEGAL,
    ),
    "a failed compare-and-set between two writes of another value": (
        [(WRITE, None, 1, 0, 1), (WRITE, None, 2, 2, 3), (WRITE, None, 1, 4, 9), (AVOID, 1, None, 5, 6)],
        OK,
    ),
    "a write repeated by a client that lost the first answer": (
        [
            (WRITE, None, 1, 0, INFINITY),
            (WRITE, None, 1, 2, 3),
            (WRITE, None, 2, 4, 5),
            (OBSERVE, 1, None, 6, 7),
            (OBSERVE, 2, None, 8, 9),
        ],
        ILLEGAL,
    ),
    "the same, and the lost one took effect late": (
        [
            (WRITE, None, 1, 0, INFINITY),
            (WRITE, None, 1, 2, 3),
            (WRITE, None, 2, 4, 5),
            (OBSERVE, 2, None, 6, 7),
            (OBSERVE, 1, None, 8, 9),
        ],
        OK,
    ),
}

PENDING_LINK = [
    (WRITE, None, 1, 1, 3),
    (WRITE, None, 1, 4, 6),
    (SWAP, 1, 4, 15, INFINITY),
    (OBSERVE, 4, None, 18, 20),
    (WRITE, None, 3, 21, 23),
    (SWAP, 3, 4, 24, INFINITY),
    (SWAP, 4, 3, 32, 34),
    (WRITE, None, 6, 38, 40),
    (OBSERVE, 4, None, 44, 46),
]
"""The compare-and-set of 4 cannot have seen the first pending one: what that saw is part of the reason."""

HISTORIES["a pending compare-and-set between a write and an unsure one"] = (PENDING_LINK, ILLEGAL)


def operations(fields):
    return [RegisterOperation(*values, row) for row, values in enumerate(fields)]


def judge(history, engine, method="auto"):
    return check_columns(columns_of(history), Budget(100_000), engine=engine, method=method)[0]


def with_others_free(history, core):
    """Return `history` with what `core` does not name relaxed: reads left out, writes at any time or never."""
    free = [operation._replace(call=BEGINNING, return_=INFINITY) for operation in history]
    return [
        operation if i in core else free[i]
        for i, operation in enumerate(history)
        if i in core or operation.kind >= WRITE
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HISTORIES)
def test_the_monitor_decides_where_values_repeat(name, engine):
    fields, expected = HISTORIES[name]
    result = judge(operations(fields), engine)
    assert (result.legality, result.engine) == (expected, "zones")
    assert judge(operations(fields), engine, "search").legality is expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name, (_, expected) in HISTORIES.items() if expected is ILLEGAL])
def test_what_a_refusal_names_is_illegal_whenever_the_other_writes_happened(name, engine):
    history = operations(HISTORIES[name][0])
    relaxed = with_others_free(history, judge(history, engine).core)
    assert judge(relaxed, engine, "search").legality is ILLEGAL


def busy_register(rng, clients, size, *, repeats):
    """Return a legal history of `size` operations of `clients` clients that are always busy.

    Values are unique, but each write with a number in `repeats` puts the value of the write before it.
    """
    history, state, begun, time = [], None, 0, 0
    under_way = []
    while begun < size or under_way:
        time += 1
        if begun < size and len(under_way) < clients:
            value = begun - 1 if begun in repeats else begun
            under_way.append([WRITE if begun % 2 else OBSERVE, None, value if begun % 2 else None, time, False])
            begun += 1
            continue
        operation = under_way[int(rng.random() * len(under_way))]
        if operation[4]:
            history.append((*operation[:4], time))
            under_way.remove(operation)
        elif operation[0] == WRITE:
            state = operation[2]
        else:
            operation[1] = state
        operation[4] = True
    return operations(sorted(history, key=lambda row: row[3]))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_repeated_value_among_fifty_clients_is_left_to_the_monitor(engine):
    history = busy_register(random.Random(3), 50, 2000, repeats=range(1001, 1003))
    accepted = judge(history, engine)
    assert (accepted.legality, accepted.engine, accepted.steps) == (OK, "zones", 0)
    late = max(i for i, operation in enumerate(history) if operation.kind == OBSERVE)
    early = next(operation.produce for operation in history if operation.kind == WRITE)
    history[late] = history[late]._replace(demand=early)
    refused = judge(history, engine)
    assert (refused.legality, refused.engine, refused.steps) == (ILLEGAL, "zones", 0)
    assert 0 < len(refused.core) <= 6


@pytest.mark.parametrize("engine", ENGINES)
def test_where_values_repeat_often_the_search_comes_first(engine):
    history = operations([(WRITE, None, 1 + number % 2, 2 * number, 2 * number + 1) for number in range(60)])
    assert judge(history, engine).engine == "slots"
