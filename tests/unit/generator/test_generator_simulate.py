"""Trying generators without a cluster, and writing them down as plans."""

from __future__ import annotations

import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.generator import (
    PENDING,
    Context,
    Draft,
    Generator,
    all_info,
    clients,
    emit,
    fault,
    function,
    limit,
    mixed,
    nemesis,
    planned_faults,
    planned_operations,
    scheduled,
    sequence,
    simulate,
    sleep,
    split,
    stagger,
    unfold,
)
from faultline.harness.generator.core import Offer, Pending
from faultline.harness.plan import PlannedFault, PlannedOperation

READS = function(lambda _: Draft("read", "k0"))


def test_a_crashed_process_gives_its_worker_a_new_one() -> None:
    events = simulate(limit(3, READS), workers=4, complete=all_info, latency_us=10)
    one = [event.process for event in simulate(limit(4, READS), workers=1, complete=all_info) if event.kind == "invoke"]
    assert one == [0, 1, 2, 3]
    assert all(event.process % 4 == event.worker for event in events)


def test_no_worker_does_two_things_at_once() -> None:
    busy: set[int] = set()
    for event in simulate(limit(200, READS), workers=3, complete=mixed):
        if event.kind == "invoke":
            assert event.worker not in busy
            busy.add(event.worker)
        else:
            busy.remove(event.worker)


def test_a_simulation_is_a_function_of_its_seed() -> None:
    generator = stagger(100, limit(50, READS))
    assert simulate(generator, workers=3, seed=4) == simulate(generator, workers=3, seed=4)
    assert simulate(generator, workers=3, seed=4) != simulate(generator, workers=3, seed=5)


def test_nothing_starts_at_or_after_the_end() -> None:
    events = simulate(stagger(100, READS), workers=3, end_us=5_000, latency_us=700)
    assert max(event.time_us for event in events if event.kind == "invoke") < 5_000
    assert len([event for event in events if event.kind == "invoke"]) * 2 == len(events)


class Stuck(Generator, frozen=True):
    def op(self, context: Context) -> Offer:
        return PENDING, self


def test_a_generator_that_waits_for_nothing_is_a_harness_error() -> None:
    with pytest.raises(HarnessError, match="nothing is in flight"):
        simulate(Stuck(), workers=1)


def test_planned_operations_are_the_invocations_of_the_simulation() -> None:
    generator = stagger(100, limit(60, unfold(lambda _, number: (Draft("write", "k", number), number + 1), 1)))
    rows = planned_operations(generator, workers=4, seed=7, latency_us=300, start_us=1_000)
    events = simulate(generator, workers=4, seed=7, latency_us=300, start_us=1_000)
    invoked = [event for event in events if event.kind == "invoke"]
    assert [(row.worker, row.at_us, row.value) for row in rows] == [(e.worker, e.time_us, e.value) for e in invoked]
    assert rows[0].at_us == 1_000
    assert len(rows) == 60


def test_planned_operations_leave_the_nemesis_out() -> None:
    both = split(limit(5, READS), sequence(fault("kill", 100), sleep(50), fault("pause", 100)))
    rows = planned_operations(both, workers=2, seed=0, latency_us=10, end_us=10_000)
    assert [row.f for row in rows] == ["read"] * 5


def test_planned_faults_are_the_nemesis_operations_one_after_another() -> None:
    both = split(READS, sequence(fault("kill", 100, "leader"), sleep(50), fault("partition", 200, shape="bridge")))
    faults = planned_faults(nemesis_part(both), seed=0, start_us=1_000, end_us=2_000)
    assert faults == (
        PlannedFault("kill", 1_000, 100, "leader", {}),
        PlannedFault("partition", 1_150, 200, "one", {"shape": "bridge"}),
    )


def nemesis_part(generator: Generator) -> Generator:
    return nemesis(generator)


def test_a_planned_fault_is_cut_short_at_the_end() -> None:
    faults = planned_faults(stagger(300, function(lambda _: fault("kill", 400))), seed=1, start_us=0, end_us=1_000)
    assert faults
    assert all(planned.stop_us <= 1_000 for planned in faults)


def test_a_schedule_gives_each_operation_to_its_worker_at_its_time() -> None:
    rows = (
        PlannedOperation(1, 50, "read", "k0"),
        PlannedOperation(0, 10, "write", "k0", 1),
        PlannedOperation(0, 400, "write", "k0", 2),
    )
    events = simulate(scheduled(rows), workers=2, latency_us=100)
    assert [(e.worker, e.time_us, e.f, e.value) for e in events if e.kind == "invoke"] == [
        (0, 10, "write", 1),
        (1, 50, "read", None),
        (0, 400, "write", 2),
    ]


def test_a_late_worker_goes_on_as_soon_as_it_is_free() -> None:
    rows = [PlannedOperation(0, at_us, "read") for at_us in (0, 10, 20, 500)]
    events = simulate(scheduled(rows), workers=1, latency_us=100)
    assert [event.time_us for event in events if event.kind == "invoke"] == [0, 100, 200, 500]


def test_a_busy_worker_does_not_hold_up_the_others() -> None:
    rows = [PlannedOperation(0, 0, "slow"), PlannedOperation(0, 1, "late"), PlannedOperation(1, 5, "soon")]
    events = simulate(scheduled(rows), workers=2, latency_us=1_000)
    assert [(event.f, event.time_us) for event in events if event.kind == "invoke"] == [
        ("slow", 0),
        ("soon", 5),
        ("late", 1_000),
    ]


def test_operations_of_one_worker_at_one_time_keep_their_order() -> None:
    rows = [PlannedOperation(0, 7, "write", "k", value) for value in range(5)]
    events = simulate(scheduled(rows), workers=1)
    assert [event.value for event in events if event.kind == "invoke"] == [0, 1, 2, 3, 4]


def test_a_plan_scheduled_and_planned_again_is_the_same_plan() -> None:
    rows = planned_operations(stagger(100, limit(80, READS)), workers=5, seed=3, latency_us=250)
    again = planned_operations(scheduled(rows), workers=5, seed=99, latency_us=250)
    assert sorted(again, key=lambda row: (row.at_us, row.worker)) == sorted(
        rows, key=lambda row: (row.at_us, row.worker)
    )


def test_asked_too_early_a_schedule_says_when_to_ask_again_and_stays_as_it_is() -> None:
    schedule = scheduled([PlannedOperation(0, 70, "read"), PlannedOperation(1, 50, "write", "k0", 1)])
    assert schedule.op(Context.of(workers=2, time_us=49)) == (Pending(50), schedule)
    assert schedule.op(Context.of(workers=2, time_us=49, busy=[1])) == (Pending(70), schedule)
    assert schedule.op(Context.of(workers=2, time_us=50))[0] == Draft("write", "k0", 1, 1, 50)


def test_an_empty_schedule_is_exhausted() -> None:
    assert simulate(scheduled(()), workers=3) == []


def test_clients_part_of_a_split_alone_plans_the_same() -> None:
    alone = planned_operations(clients(limit(5, emit("a"))), workers=1, seed=0, latency_us=10)
    assert [row.f for row in alone] == ["a"]


def test_a_worker_that_comes_late_leaves_out_all_but_the_latest_of_what_it_missed() -> None:
    rows = [PlannedOperation(0, at_us, "read", f"k{at_us}") for at_us in (0, 10, 20, 30, 100)]
    events = simulate(scheduled(rows, skip_before_us=1_000), workers=1, latency_us=35)
    assert [(event.time_us, event.key) for event in events if event.kind == "invoke"] == [
        (0, "k0"),
        (35, "k30"),
        (100, "k100"),
    ]


def test_what_is_due_after_the_bound_is_never_left_out() -> None:
    rows = [PlannedOperation(0, at_us, "read", f"k{at_us}") for at_us in (0, 10, 20, 30, 40)]
    events = simulate(scheduled(rows, skip_before_us=20), workers=1, latency_us=35)
    assert [event.key for event in events if event.kind == "invoke"] == ["k0", "k10", "k20", "k30", "k40"]


def test_a_worker_catches_up_until_lateness_counts() -> None:
    rows = [PlannedOperation(0, at_us, "read", f"k{at_us}") for at_us in (0, 10, 20, 30, 40)]
    events = simulate(scheduled(rows, skip_before_us=40, late_from_us=60), workers=1, latency_us=35)
    assert [event.key for event in events if event.kind == "invoke"] == ["k0", "k10", "k30", "k40"]
