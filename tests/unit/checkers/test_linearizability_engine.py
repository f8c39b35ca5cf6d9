"""The fast engine: both forms of it, in the places where histories are wide, long or full of crashes."""

from __future__ import annotations

import pytest

from faultline.checkers.linearizability.decision import Legality
from faultline.checkers.linearizability.engine import build_kernel
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.build_kernel import KernelBuildError
from faultline.checkers.linearizability.engine.monitor import check_zones
from faultline.checkers.linearizability.engine.native import engine_in_use, kernel
from faultline.checkers.linearizability.engine.problem import problem_of
from faultline.checkers.linearizability.engine.registers import columns_of, register_columns
from faultline.checkers.linearizability.engine.replay import is_linearization
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.engine.zones import Contradiction
from faultline.checkers.linearizability.kv import KvOperation
from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
    register_operations,
)
from faultline.checkers.porcupine import Budget
from faultline.harness.errors import HarnessError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, fail, info, ok

OK, ILLEGAL, UNKNOWN = Legality.LEGAL, Legality.ILLEGAL, Legality.UNKNOWN
ENGINES = ["python"] if engine_in_use().name == "python" else ["python", "native"]


def operations(*fields):
    """Register operations from (kind, demand, produce, call, return), rows numbered."""
    return [RegisterOperation(*values, row) for row, values in enumerate(fields)]


def judge(history, engine, budget=100_000, method="auto"):
    return check_columns(columns_of(history), Budget(budget), engine=engine, method=method)[0]


def problem(*fields):
    columns = columns_of(operations(*fields))
    return problem_of(columns, range(len(columns)))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_hundred_operations_open_at_once_are_searched(engine):
    wide = [(WRITE, None, 1 + number % 2, number, 1000 + number) for number in range(100)]
    reads = [(OBSERVE, value, None, 2000 + 2 * place, 2001 + 2 * place) for place, value in enumerate([1, 1])]
    assert judge(operations(*wide, *reads), engine).legality is OK
    assert judge(operations(*wide, *reads, (OBSERVE, 2, None, 3000, 3001)), engine).legality is ILLEGAL


@pytest.mark.parametrize("engine", ENGINES)
def test_two_thousand_crashed_operations_on_one_key_take_few_steps(engine):
    crashed = [(WRITE, None, number % 5, number, INFINITY) for number in range(2000)]
    reads = [(OBSERVE, number % 5, None, 3000 + 2 * number, 3001 + 2 * number) for number in range(300)]
    result = judge(operations(*crashed, *reads), engine, budget=2000)
    assert (result.legality, result.engine) == (OK, "slots")
    assert judge(operations(*crashed, *reads, (OBSERVE, 9, None, 4000, 4001)), engine, 2000).legality is ILLEGAL


@pytest.mark.parametrize("engine", ENGINES)
def test_values_that_must_still_be_seen_are_not_overwritten_by_those_who_could(engine):
    """Without rule R7 each of these writes may come first, and all orders of them are tried."""
    wide = [(WRITE, None, number, number, 1000 + number) for number in range(1, 40)]
    again = [(WRITE, None, 1, 5000, 5001), (OBSERVE, 1, None, 5002, 5003)]
    reads = [(OBSERVE, value, None, 900 - value, 2000 - value) for value in range(1, 40)]
    result = judge(operations(*wide, *reads, *again), engine, budget=500, method="search")
    assert (result.legality, result.engine) == (OK, "slots")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failed_cas_without_a_place_among_the_zones_is_searched(engine):
    history = operations(
        (WRITE, None, 1, 0, 1), (WRITE, None, 2, 2, INFINITY), (AVOID, 1, None, 3, 4), (OBSERVE, 1, None, 5, 6)
    )
    assert judge(history, engine).engine == "slots"
    assert judge(history, engine).legality is ILLEGAL
    assert judge(history[:3], engine).legality is OK


@pytest.mark.parametrize("engine", ENGINES)
def test_a_hard_key_does_not_keep_the_others_from_their_answer(engine):
    history = History()
    for number in range(400):
        row = history.invoke(Operation(0, "write", "long", number % 2), number, 0, "n")
        history.complete(row, ok(), number)
    row = history.invoke(Operation(0, "read", "illegal"), 1000, 0, "n")
    history.complete(row, ok(7), 1001)
    long, illegal = check_columns(register_columns(history), Budget(100), engine=engine, method="search")
    assert (long.legality, long.furthest, illegal.legality) == (UNKNOWN, 100, ILLEGAL)


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_times_are_concurrent(engine):
    history = operations((WRITE, None, 1, 0, 5), (OBSERVE, None, None, 5, 6))
    assert judge(history, engine).legality is OK
    assert judge(history, engine, method="search").legality is OK


CONTRADICTIONS = {
    "a value that no operation wrote": ([(OBSERVE, 1, None, 0, 1)], (0,)),
    "a value before its write": ([(OBSERVE, 1, None, 0, 1), (WRITE, None, 1, 2, 3)], (0, 1)),
    "one value replaced twice": (
        [(WRITE, None, 1, 0, 1), (SWAP, 1, 2, 2, 3), (SWAP, 1, 3, 4, 5)],
        (2, 1, 0),
    ),
    "each replaced the other": ([(SWAP, 1, 2, 0, 1), (SWAP, 2, 1, 0, 1)], (0, 1)),
    "an earlier value of a chain after a later one": (
        [(WRITE, None, 1, 0, 1), (SWAP, 1, 2, 2, 3), (OBSERVE, 1, None, 4, 5)],
        (1, 2),
    ),
    "an old value after a new one": (
        [(WRITE, None, 1, 0, 1), (WRITE, None, 2, 2, 3), (OBSERVE, 1, None, 4, 5)],
        (1, 0, 2),
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_the_monitor_names_the_operations_that_contradict_each_other(name):
    fields, named = CONTRADICTIONS[name]
    with pytest.raises(Contradiction) as refused:
        check_zones(problem(*fields))
    assert set(refused.value.operations) == set(named)
    for engine in ENGINES:
        result = judge(operations(*fields), engine)
        assert (result.legality, result.engine) == (ILLEGAL, "zones")
        assert set(result.core) == set(named)


@pytest.mark.parametrize(
    "order",
    [[1, 0], [0], [0, 0, 1], [0, 1, 2], [1, 0, 2]],
    ids=["against real time", "one is missing", "one twice", "one refused", "illegal where it stands"],
)
def test_a_false_order_is_not_believed(order):
    replayed = problem((WRITE, None, 1, 0, 1), (OBSERVE, 1, None, 2, 3), (AVOID, 1, None, 0, 9))
    assert is_linearization(replayed, [2, 0, 1])
    assert not is_linearization(replayed, order)


def test_the_shortcut_into_columns_means_what_the_long_way_means():
    history = History()
    rows = [
        ("write", 1, ok()),
        ("write", True, ok()),
        ("write", [1], info("timeout")),
        ("write", 5, fail("not-leader")),
        ("read", None, ok(1)),
        ("read", None, ok(1.0)),
        ("read", None, info("timeout")),
        ("cas", [1, 2], ok()),
        ("cas", [2, 2], ok()),
        ("cas", [2, 3], fail(CAS_MISMATCH)),
        ("cas", [2, 3], fail("not-leader")),
        ("cas", [2, 2], fail(CAS_MISMATCH)),
        ("cas", [3, 4], info("timeout")),
        ("cas", [4, 4], info("timeout")),
    ]
    for number, (f, value, outcome) in enumerate(rows):
        history.complete(history.invoke(Operation(0, f, "k", value), number, 0, "n"), outcome, number)
    for mode in ("observe", "ignore"):
        short = register_columns(history, mode)
        long = columns_of(register_operations(history, range(len(history)), mode))
        meant = [[short.values[v] for v in short.demand], [short.values[v] for v in short.produce]]
        assert meant == [[long.values[v] for v in long.demand], [long.values[v] for v in long.produce]]
        assert (short.kind, short.call, short.return_) == (long.kind, long.call, long.return_)
        assert [history.f[row] for row in short.row].count("write") == 3


TEXTS = {
    "an append seen at last is in its place": (["append a", "append b", "get ab"], OK),
    "an append that no read sees may be anywhere before a put": (["append a", "put x", "get x"], OK),
    "a tail that no operation can have written": (["append a", "get ab"], ILLEGAL),
    "one text in two places": (["append a", "append b", "get ba", "get ab"], ILLEGAL),
    "an answer that ambiguous texts can make": (["append ab", "append a", "get aba"], OK),
    "a beginning that need not have been there": (["append ab", "get ab", "append a", "get aba"], OK),
    "texts that repeat are searched": (["append x", "append x", "get xx", "append x", "get xxx"], OK),
    "texts that repeat, one too few": (["append x", "append x", "get xxx"], ILLEGAL),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("engine", ENGINES)
def test_strings_are_taken_apart_to_their_very_end(name, engine):
    lines, expected = TEXTS[name]
    parts = [KvOperation(*line.split(), 2 * row, 2 * row + 1, row) for row, line in enumerate(lines)]
    for method in ("auto", "search"):
        assert check_columns(text_columns([("k", parts)]), engine=engine, method=method)[0].legality is expected


@pytest.mark.parametrize("engine", ENGINES)
def test_pending_appends_of_unseen_and_of_repeated_texts_are_told_apart(engine):
    fields = [
        ("append", "x", 2, 5),
        ("get", "x", 6, 8),
        ("append", "xy", 9, INFINITY),
        ("append", "x", 11, INFINITY),
        ("get", "xx", 17, 24),
    ]
    parts = [KvOperation(*values, row) for row, values in enumerate(fields)]
    assert check_columns(text_columns([("k", parts)]), engine=engine)[0].legality is OK


def test_a_kernel_that_cannot_be_built_says_why(monkeypatch, tmp_path):
    monkeypatch.setattr(build_kernel, "_linker", lambda: ["no-such-compiler"])
    monkeypatch.setattr(build_kernel, "_flags", list)
    with pytest.raises(KernelBuildError, match="no-such-compiler could not be run"):
        build_kernel.build(tmp_path)
    assert not list(tmp_path.iterdir())


def test_plain_python_can_be_asked_for_and_the_reason_is_told(monkeypatch):
    monkeypatch.setenv("FAULTLINE_ENGINE", "python")
    kernel.cache_clear()
    try:
        assert engine_in_use() == ("python", "FAULTLINE_ENGINE asks for plain Python")
        with pytest.raises(HarnessError, match="native engine is not there"):
            check_columns(columns_of([]), engine="native")
    finally:
        kernel.cache_clear()


LEAVING = [(SWAP, 1, value, 10, 40 + value) for value in range(2, 8)]
"""Six compare-and-sets that are open at once, each of which leaves the value 1."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("writes", "legality"), [(6, OK), (5, ILLEGAL)])
def test_a_value_must_be_put_as_often_as_compare_and_sets_leave_it(engine, writes, legality):
    """Without rule R8 the orders of the other writes are tried first, and found to be in vain one after the other."""
    others = [(WRITE, None, 10 + number, 10, 100 + number) for number in range(12)]
    reads = [(OBSERVE, 10 + number, None, 11, 200 + number) for number in range(12)]
    fields = [(WRITE, None, 1, number, 30 + number) for number in range(writes)] + LEAVING + others + reads
    result = judge(operations(*fields), engine, budget=200, method="search")
    assert (result.legality, result.engine) == (legality, "slots")
