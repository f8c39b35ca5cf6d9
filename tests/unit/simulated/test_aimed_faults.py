"""Faults with a trigger: they strike at the event that they name, on its node, before anything else happens."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace as with_parts
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from faultline.harness.exposure import exposure_parts
from faultline.harness.floors import shortfalls
from faultline.harness.invariant import ReportingInvariant
from faultline.harness.judge import judge
from faultline.harness.plan import EVENT_NODE, Plan, PlannedFault, Trigger, Weather
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.harness.world.ports import NodeStatus
from faultline.harness.world.simulated.host import SimulatedHost
from faultline.harness.world.simulated.network import SimulatedNetwork
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.simulated.trace import SimulatedTrace
from faultline.registry import resolve
from faultline.systems_under_test.reference.shared.trace_events import EntryApplied

REQUEST = RunRequest(system="consistent-core", faults=(), operations=40, seed=3)
PARTS = resolve(REQUEST)
PLAN = make_plan(REQUEST, PARTS)
FROM_US = 700_000
MS = 1_000


class Seen(ReportingInvariant):
    """Remembers the events and breaks never."""

    id = "SEEN"
    events = (EntryApplied,)

    def __init__(self) -> None:
        self.rows: list[tuple[int, str]] = []

    def observe(self, time_us: int, node: str, event: Any, report: Any) -> None:
        self.rows.append((time_us, node))


def aimed(trigger: Trigger, kind: str = "kill", target: str = EVENT_NODE, at_us: int = FROM_US) -> Plan:
    return replace(PLAN, faults=(PlannedFault(kind, at_us, 50 * MS, target, trigger=trigger),))


def run(plan: Plan) -> RunRecord:
    record = run_simulated(plan, PARTS)
    assert record.errors == []
    return record


@pytest.fixture(scope="module")
def applied() -> list[tuple[int, str]]:
    """The time and node of each entry that was applied in the run without faults, from FROM_US on."""
    seen = Seen()
    system: Any = copy.copy(PARTS.system)
    system.invariants = lambda: [seen]
    run_simulated(PLAN, with_parts(PARTS, system=system)).whole()
    return [(time_us, node) for time_us, node in seen.rows if time_us >= FROM_US]


def test_what_happens_at_once_comes_before_all_that_is_due_and_in_its_order() -> None:
    scheduler, happened = Scheduler(), list[str]()

    def step() -> None:
        scheduler.at(0, happened.append, "due")
        scheduler.at_once(happened.append, "first")
        scheduler.at_once(happened.append, "second")
        happened.append("step")

    scheduler.at(5, step)
    scheduler.at(5, happened.append, "due before")
    scheduler.run(5)
    assert happened == ["step", "first", "second", "due before", "due"]


@pytest.mark.parametrize("ordinal", [1, 2, 5])
def test_a_fault_strikes_at_the_event_of_its_ordinal_and_on_its_node(
    ordinal: int, applied: list[tuple[int, str]]
) -> None:
    (fault,) = run(aimed(Trigger("EntryApplied", ordinal))).faults
    assert (fault.start_us, *fault.nodes) == applied[ordinal - 1]
    assert fault.stop_us == fault.start_us + 50 * MS
    assert fault.description.endswith(f", at EntryApplied number {ordinal} on any node")


def test_events_before_the_time_of_the_fault_do_not_count(applied: list[tuple[int, str]]) -> None:
    late_us = applied[6][0]
    expected = next(row for row in applied if row[0] >= late_us)
    (fault,) = run(aimed(Trigger("EntryApplied"), at_us=late_us)).faults
    assert (fault.start_us, *fault.nodes) == expected


def test_a_delay_counts_from_the_event(applied: list[tuple[int, str]]) -> None:
    (fault,) = run(aimed(Trigger("EntryApplied", 2, delay_us=700))).faults
    assert (fault.start_us, *fault.nodes) == (applied[1][0] + 700, applied[1][1])


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_trigger_of_a_role_counts_the_events_of_nodes_that_have_it(role: str) -> None:
    (fault,) = run(aimed(Trigger("EntryApplied", 3, role))).faults
    assert fault.roles == (role,)


def test_a_trigger_of_a_node_counts_its_events_alone(applied: list[tuple[int, str]]) -> None:
    (fault,) = run(aimed(Trigger("EntryApplied", 3, "cyrene"))).faults
    assert fault.nodes == ("cyrene",)


def test_an_event_on_one_node_can_strike_another_one() -> None:
    (fault,) = run(aimed(Trigger("EntryApplied", 1, "follower"), "pause", "leader")).faults
    assert fault.roles == ("leader",)


def test_a_fault_at_an_event_comes_when_the_step_has_ended_and_before_its_flush() -> None:
    """The node reports an event, then writes and sends; the strike finds the flush under way, the message waiting."""
    scheduler = Scheduler()
    network = SimulatedNetwork(scheduler, Weather(), 1, ("athens", "byzantium"), record=True)
    trace, found = SimulatedTrace(scheduler, ()), list[tuple[bool, int]]()
    host = SimulatedHost("athens", scheduler=scheduler, network=network, trace=trace, seed=1, fsync_us=(500, 500))

    def strike() -> None:
        found.append((host.syncs_now(host.incarnation), network.sent))

    host.trace = trace.port("athens", lambda _node, _event: scheduler.at_once(strike))
    scheduler.at(1_000, host.start, _Appends)
    scheduler.run(10_000)
    assert found == [(True, 0)] and network.sent == 1


class _Note(msgspec.Struct, frozen=True):
    text: str


class _Appends:
    """A node that reports an append before it makes one, flushes it, and tells the other node."""

    def __init__(self, ports: Any) -> None:
        self.ports = ports

    def start(self) -> None:
        self.ports.trace.sometimes("appending")
        self.ports.storage.append("log", b"x")
        self.ports.storage.fsync("log")
        self.ports.network.send("byzantium", _Note("appended"))

    def receive(self, source: Any, message: Any) -> None:
        raise AssertionError(f"{source} sends nothing")

    def status(self) -> NodeStatus:
        return NodeStatus(role="leader")


def test_a_run_with_triggers_is_the_same_each_time_and_from_its_stored_plan() -> None:
    plan = aimed(Trigger("EntryApplied", 4, "follower", 300))
    stored = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    assert stored == plan
    assert run(stored).history.digest() == run(plan).history.digest() != run(PLAN).history.digest()


def test_a_plan_without_triggers_is_written_as_before() -> None:
    assert b"trigger" not in msgspec.json.encode(make_plan(replace(REQUEST, faults=("kill",)), PARTS))


def test_an_event_that_does_not_come_is_told_apart_and_makes_no_run_vacuous() -> None:
    record = run(aimed(Trigger("snapshot-installed")))
    assert record.faults == []
    judgement = judge(record, PARTS, run_id="waits")
    ledger = judgement.exposure
    assert judgement.verdict is Verdict.PASS
    assert (ledger.faults_due, ledger.faults_waited, ledger.faults_applied) == (0, 1, 0)
    assert [one.waited for one in ledger.faults] == [True]
    assert not any(one.name.startswith("faults") for one in shortfalls(ledger, {}))
    assert "1 more waited for an event that did not come" in exposure_parts(ledger.figures())


def test_a_timed_fault_that_did_not_begin_still_counts_against_the_floor() -> None:
    """The negative control of the test above: only a fault with a trigger may wait."""
    never = PlannedFault("kill", PLAN.heal_us - 1, 10, "one")
    plan = replace(aimed(Trigger("snapshot-installed")), faults=(never, *aimed(Trigger("EntryApplied")).faults))
    record = run(plan)
    cut = replace_faults(record, lambda kept: kept[1:])
    ledger = judge(cut, PARTS, run_id="cut").exposure
    assert (ledger.faults_due, ledger.faults_waited, ledger.faults_applied) == (2, 0, 1)
    assert [one.name for one in shortfalls(ledger, {})][:1] == ["faults-applied"]


def replace_faults(record: RunRecord, change: Callable[[list[Any]], list[Any]]) -> RunRecord:
    return replace(record, faults=change(record.faults))


def test_an_event_that_would_come_after_the_heal_strikes_nothing() -> None:
    record = run(aimed(Trigger("EntryApplied", 1), at_us=PLAN.heal_us))
    assert record.faults == []
