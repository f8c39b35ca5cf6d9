"""A system is given its time after the heal: a run asks until each written object is read, or that time is over."""

from __future__ import annotations

import pytest

from faultline.campaign.engine import default_engine
from faultline.harness import recovery
from faultline.harness.access import Access, access_of
from faultline.harness.exposure import exposure
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, info, ok
from faultline.harness.plan import Plan, PlannedOperation
from faultline.harness.planning import RunRequest
from faultline.harness.recovery import RECOVERY_US_MAX, asked_again
from faultline.harness.verdict import Verdict

HEAL_US = 1_000_000
ACCESS = Access(reads=("read", "scan"))
FINAL = (
    PlannedOperation(0, HEAL_US + 10, "read", "k1"),
    PlannedOperation(0, HEAL_US + 20, "scan", None, ["", None]),
    PlannedOperation(1, HEAL_US + 10, "generate", "ids"),
    PlannedOperation(1, HEAL_US + 20, "write", "k1", 7),
)


def plan_of(*operations: PlannedOperation) -> Plan:
    """Return the plan of a run of these operations."""
    return Plan(
        system="toy",
        workload="toy",
        seed=0,
        nodes=("athens",),
        workers=2,
        operations=operations,
        heal_us=HEAL_US,
        end_us=20_000_000,
    )


def again(*outcomes: Outcome, now_us: int = 2_000_000) -> list[tuple[int, str]]:
    """Return the workers and functions asked again after operations with these outcomes since the heal."""
    history = History()
    before = history.invoke(Operation(0, "read", "k1"), HEAL_US - 1, 0, "athens")
    history.complete(before, ok(None), HEAL_US + 1)
    for outcome in outcomes:
        row = history.invoke(Operation(0, "read", "k1"), HEAL_US + 10, 0, "athens")
        history.complete(row, outcome, HEAL_US + 20)
    plan = plan_of(PlannedOperation(0, 0, "read", "k0"), *FINAL)
    asked = asked_again(plan, ACCESS, history, healed_us=HEAL_US, now_us=now_us)
    assert all(one.at_us > now_us for one in asked)
    return [(one.worker, one.f) for one in asked]


def test_while_nothing_was_answered_the_last_operation_that_writes_no_value_is_asked_again() -> None:
    assert again(info("timeout"), fail("unavailable")) == [(0, "scan"), (1, "generate")]
    assert again() == [(0, "scan"), (1, "generate")]


def test_an_answer_to_something_asked_after_the_heal_ends_it() -> None:
    assert again(info("timeout"), ok(1)) == []
    assert again(fail(CAS_MISMATCH)) == []


def test_a_system_has_its_time_and_no_more() -> None:
    assert again(info("timeout"), now_us=HEAL_US + RECOVERY_US_MAX - 1) != []
    assert again(info("timeout"), now_us=HEAL_US + RECOVERY_US_MAX) == []


READS_OF_OBJECTS = (
    PlannedOperation(0, HEAL_US + 10, "read", "k1"),
    PlannedOperation(0, HEAL_US + 20, "read", "k2"),
    PlannedOperation(1, HEAL_US + 30, "read", "k2"),
    PlannedOperation(1, HEAL_US + 40, "txn", None, [["r", "k3", None], ["r", "k4", None]]),
    PlannedOperation(1, HEAL_US + 50, "txn", None, [["r", "k4", None], ["w", "k5", 1]]),
)
BY_OBJECT = Access(reads=("read", "txn"))


def read_again(*written: str, read: str = "k1", now_us: int = 2_000_000) -> list[tuple[str, object]]:
    """Return the functions and keys, or steps, asked again when `written` were acknowledged and `read` was read."""
    history = History()
    for key in written:
        history.complete(history.invoke(Operation(0, "write", key, 1), HEAL_US - 9, 0, "athens"), ok(None), HEAL_US - 1)
    row = history.invoke(Operation(0, "read", read), HEAL_US + 10, 0, "athens")
    history.complete(row, ok(1), HEAL_US + 20)
    asked = asked_again(plan_of(*READS_OF_OBJECTS), BY_OBJECT, history, healed_us=HEAL_US, now_us=now_us)
    assert all(one.at_us > now_us for one in asked)
    return [(one.f, one.key or one.value) for one in asked]


def test_a_written_object_that_was_not_read_is_read_again_though_others_were_answered() -> None:
    assert read_again("k1", "k2") == [("read", "k2")]
    assert read_again("k1", "k2", now_us=HEAL_US + RECOVERY_US_MAX) == []


def test_an_object_is_read_again_when_a_write_was_answered_after_its_read_had_begun() -> None:
    history = History()
    write = history.invoke(Operation(0, "write", "k1", 1), HEAL_US - 9, 0, "athens")
    read = history.invoke(Operation(1, "read", "k1"), HEAL_US + 10, 1, "athens")
    history.complete(read, ok(None), HEAL_US + 20)
    history.complete(write, ok(None), HEAL_US + 30)
    asked = asked_again(plan_of(*READS_OF_OBJECTS), BY_OBJECT, history, healed_us=HEAL_US, now_us=2_000_000)
    assert [(one.f, one.key) for one in asked] == [("read", "k1")]


def test_objects_that_were_read_or_never_written_are_not_read_again() -> None:
    assert read_again("k1") == []
    assert read_again() == []


def test_a_transaction_that_reads_several_objects_is_asked_once_and_one_that_writes_is_not() -> None:
    assert read_again("k3", "k4") == [("txn", [["r", "k3", None], ["r", "k4", None]])]


def test_an_object_that_no_final_operation_reads_is_not_asked_for() -> None:
    assert read_again("k9") == []


def objects_read() -> tuple[int, int]:
    """Return how many written objects a run reads after the heal, and how many there are, where leases are long."""
    request = RunRequest(
        system="coordinated-kv",
        workload="counter",
        faults=("kill",),
        seed=2,
        options={"lease_ttl_ms": "2400", "election_timeout_ms": "125"},
        nodes=9,
        workers=5,
        operations=200,
    )
    engine = default_engine("simulated")
    parts = engine.resolve(request)
    ledger = exposure(engine.simulate(engine.plan(request, parts), parts, False), access_of(parts.workload))
    return ledger.read_after_heal, ledger.written


def test_a_partition_that_is_served_later_than_the_others_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert objects_read() == (4, 4)
    monkeypatch.setattr(recovery, "unread_after", lambda *_: [])
    assert objects_read() == (3, 4)


def run(planted_bugs: tuple[str, ...] = (), **options: str) -> tuple[Verdict, str, int]:
    """The verdict on a run of `coordinated-kv`, its finding, and how long after the heal the last answer came."""
    request = RunRequest(
        system="coordinated-kv",
        workload="unique-ids",
        faults=("all",),
        seed=430996653,
        options=options,
        nodes=6,
        workers=4,
    )
    engine = default_engine("simulated")
    parts = engine.resolve(request)
    plan = engine.plan(request, parts)
    record = engine.simulate(plan, parts, False)
    judgement = engine.judge(record, parts, "run")
    return judgement.verdict, judgement.signature, record.history.end_us() - plan.heal_us


def test_a_system_that_elects_slowly_is_not_accused_of_silence() -> None:
    options = {"partitions": "2", "read_mode": "confirmed", "rebalance_every_ms": "100", "client_timeout_ms": "250"}
    slow = {"election_timeout_ms": "1000", "watch_delivery": "pull", "watch_confirm_ms": "600"}
    verdict, _, lasted_us = run(**options, **slow, lease_margin_percent="25")
    assert verdict is Verdict.PASS
    assert 2_000_000 < lasted_us < RECOVERY_US_MAX


def test_a_system_that_never_answers_again_was_asked_for_the_whole_time() -> None:
    verdict, finding, lasted_us = run(election_timeout_ms="60000", lease_ttl_ms="300")
    assert (verdict, finding) == (Verdict.VIOLATION, "availability/no-recovery")
    assert lasted_us >= RECOVERY_US_MAX
