"""The ledger of what a run did, and the floors under it."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.access import FINAL_OBJECTS_MAX, Access
from faultline.harness.errors import UsageError
from faultline.harness.exposure import Exposure, FaultExposure, exposure
from faultline.harness.floors import checked_floors, shortfalls
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, NOT_CONNECTED, Outcome, fail, info, ok
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.run_record import FaultInterval, RunRecord

HEAL_US = 1_000


def record(
    *operations: tuple[str, str, int, int, Outcome], faults: tuple[FaultInterval, ...] = (), planned: int = 0
) -> RunRecord:
    """A run of operations (f, key, invoked, completed, outcome), one after the other begun."""
    history = History()
    moments = sorted(
        [(invoked, 0, row) for row, (_, _, invoked, _, _) in enumerate(operations)]
        + [(completed, 1, row) for row, (_, _, _, completed, _) in enumerate(operations)]
    )
    for at_us, is_end, row in moments:
        f, key, _, _, outcome = operations[row]
        if is_end:
            history.complete(row, outcome, at_us)
        else:
            history.invoke(Operation(row, f, key, None), at_us, row, "athens")
    plan = Plan(
        system="s",
        workload="w",
        seed=0,
        nodes=("athens",),
        workers=9,
        operations=(),
        faults=tuple(PlannedFault("kill", 10 * number, 5) for number in range(planned or len(faults))),
        heal_us=HEAL_US,
        end_us=9_000,
    )
    return RunRecord(plan=plan, world="simulated", history=history, faults=list(faults), marks={"leader-changed": 3})


def fault(start_us: int, stop_us: int, **fields: Any) -> FaultInterval:
    return FaultInterval(kind="kill", target="one", start_us=start_us, stop_us=stop_us, nodes=("athens",), **fields)


def test_operations_are_counted_by_outcome_and_refused_connections_apart() -> None:
    ledger = exposure(
        record(
            ("write", "a", 0, 10, ok()),
            ("cas", "a", 20, 30, fail(CAS_MISMATCH)),
            ("write", "a", 40, 50, fail(NOT_CONNECTED)),
            ("read", "a", 60, 70, fail("timeout")),
            ("write", "a", 80, 90, info("timeout")),
        ),
        Access(),
    )
    assert (ledger.operations, ledger.ok, ledger.fail, ledger.info) == (5, 1, 3, 1)
    assert (ledger.answered, ledger.refused) == (2, 1)


def test_each_fault_is_followed_from_plan_to_proof() -> None:
    faults = (
        fault(5, 15),
        fault(100, 200),
        fault(300, 310, applied="the probe still got through"),
        FaultInterval(kind="kill", target="one", start_us=400, stop_us=400, applied="it had not begun"),
    )
    ledger = exposure(
        record(("write", "a", 0, 10, ok()), ("read", "a", 305, 320, ok()), faults=faults, planned=5), Access()
    )
    assert [(one.applied, one.proved, one.duration_us, one.operations_in_flight) for one in ledger.faults] == [
        (True, True, 10, 1),
        (True, True, 100, 0),
        (True, False, 10, 1),
        (False, False, 0, 0),
        (False, False, 0, 0),
    ]
    assert (len(ledger.faults), ledger.faults_applied, ledger.faults_struck) == (5, 2, 1)


def test_an_object_counts_as_read_only_by_a_read_that_began_after_the_heal() -> None:
    ledger = exposure(
        record(
            ("write", "a", 0, 10, ok()),
            ("write", "b", 20, 30, ok()),
            ("write", "c", 40, 50, info("timeout")),
            ("read", "b", HEAL_US - 1, HEAL_US + 10, ok(1)),
            ("read", "a", HEAL_US + 20, HEAL_US + 30, ok(1)),
            ("read", "b", HEAL_US + 40, HEAL_US + 50, fail("timeout")),
        ),
        Access(),
    )
    assert (ledger.written, ledger.read_after_heal, ledger.unread) == (2, 1, ("b",))


@pytest.mark.parametrize(("invoked_us", "unread"), [(HEAL_US + 49, ("a",)), (HEAL_US + 50, ())])
def test_a_read_that_began_before_the_last_write_was_answered_may_miss_it_and_does_not_count(
    invoked_us: int, unread: tuple[str, ...]
) -> None:
    ledger = exposure(
        record(
            ("write", "a", 0, 10, ok()),
            ("write", "a", 20, HEAL_US + 50, ok()),
            ("read", "a", invoked_us, HEAL_US + 60, ok()),
        ),
        Access(),
    )
    assert ledger.unread == unread


def test_declared_features_are_told_entered_or_not() -> None:
    ledger = exposure(record(), Access(), ("leader-changed", "snapshot-installed"))
    assert ledger.features == {"leader-changed": 3, "snapshot-installed": 0}


def struck(count: int, *, of: int, flying: int = 9) -> tuple[FaultExposure, ...]:
    return tuple(
        FaultExposure(kind="kill", start_us=0, applied=place < count, proved=place < count, operations_in_flight=flying)
        for place in range(of)
    )


BELOW = {
    "operations-answered": (Exposure(operations=100, answered=19), Exposure(operations=100, answered=20)),
    "faults-applied": (Exposure(faults=struck(15, of=20)), Exposure(faults=struck(16, of=20))),
    "faults-struck": (
        Exposure(faults=struck(2, of=2) + struck(3, of=3, flying=0)),
        Exposure(faults=struck(3, of=3) + struck(3, of=3, flying=0)),
    ),
    "writes-read": (
        Exposure(written=9, read_after_heal=8, unread=("k7",)),
        Exposure(written=9, read_after_heal=9),
    ),
}


@pytest.mark.parametrize("name", BELOW)
def test_each_floor_is_missed_just_below_it_and_reached_at_it(name: str) -> None:
    below, at = BELOW[name]
    (shortfall,) = shortfalls(below, {})
    assert shortfall.name == name and "below the floor of" in shortfall.sentence
    assert list(shortfalls(at, {})) == []
    assert list(shortfalls(below, {name: 0.0})) == []
    assert [each.name for each in shortfalls(at, {name: 1.0})] in ([name], [])


def test_what_was_not_read_is_named() -> None:
    (shortfall,) = shortfalls(Exposure(written=9, read_after_heal=4, unread=("a", "b", "c", "d", "e")), {})
    assert shortfall.sentence == (
        "4 of 9 objects with an acknowledged write were read after the heal, below the floor of 100%; "
        "not a, b, c and 2 more."
    )


def test_of_very_many_objects_the_stated_sample_is_due() -> None:
    assert list(shortfalls(Exposure(written=10 * FINAL_OBJECTS_MAX, read_after_heal=FINAL_OBJECTS_MAX), {})) == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"fault-applied": 0.5}, "no floor called 'fault-applied'"),
        ({"faults-applied": 1.5}, "a share from 0 to 1, not 1.5"),
        ({"faults-applied": float("nan")}, "a share from 0 to 1"),
        ({"faults-applied": 0.0, "faults-struck": 0.5}, "contradict each other"),
    ],
)
def test_floors_that_make_no_sense_are_refused(asked: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        checked_floors(asked)


def test_a_store_that_answers_nothing_falls_below_the_first_floor() -> None:
    silent = exposure(record(*(("write", "a", 10 * n, 10 * n + 5, fail(NOT_CONNECTED)) for n in range(9))), Access())
    assert [each.name for each in shortfalls(silent, {})] == ["operations-answered"]
