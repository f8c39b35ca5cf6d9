"""The trace of a simulated world: what invariants get to see of a run, and when."""

from typing import Any

import msgspec
import pytest

from faultline.campaign.planfile import load_plan
from faultline.harness.invariant import ReportingInvariant, events_that_break
from faultline.harness.planning import make_plan
from faultline.harness.run import run_simulated
from faultline.harness.world.simulated import trace as trace_module
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.simulated.trace import SimulatedTrace
from faultline.registry import load_system, resolve, systems


class Stored(msgspec.Struct, frozen=True):
    """An event: something was stored."""

    number: int


class Read(msgspec.Struct, frozen=True):
    """An event: something was read."""

    number: int


class Noted(msgspec.Struct, frozen=True):
    """An event that no invariant wants."""


class Accuses(ReportingInvariant):
    """Accuses every event of a number, and remembers what it saw."""

    id = "ACC"

    def __init__(self, events: tuple[type[msgspec.Struct], ...], number: int = 0) -> None:
        self.events = events
        self.number = number
        self.seen: list[Any] = []

    def observe(self, time_us: int, node: str, event: Any, report: Any) -> None:
        self.seen.append((time_us, node, event))
        if event.number == self.number:
            self._breach(report, time_us, node, f"{type(event).__name__} {event.number}")


class AccusesReads(Accuses):
    """The same, of reads alone."""

    broken_by = (Read,)


class AccusesAtTheEnd(AccusesReads):
    """The same, and looks back at the end."""

    def finish(self, healed_us: int, end_us: int, report: Any) -> None:
        self._breach(report, end_us, "all", f"{len(self.seen)} seen")


def told(invariants: list[Any], events: list[tuple[int, msgspec.Struct]]) -> SimulatedTrace:
    scheduler = Scheduler()
    trace = SimulatedTrace(scheduler, invariants)
    for time_us, event in events:
        scheduler.now_us = time_us
        trace.port("athens").emit(event)
    return trace


def test_an_invariant_sees_the_events_it_wants_in_the_order_of_the_reports():
    invariant = Accuses((Read, Stored))
    told([invariant], [(1, Stored(1)), (2, Noted()), (2, Read(2)), (3, Stored(3))]).breaches()
    assert invariant.seen == [(1, "athens", Stored(1)), (2, "athens", Read(2)), (3, "athens", Stored(3))]


def test_the_first_breach_counts_whichever_invariant_of_that_name_looks_first():
    late, early = Accuses((Stored,), number=7), Accuses((Read,), number=7)
    (breach,) = told([late, early], [(5, Read(7)), (5, Stored(7)), (6, Read(7))]).breaches()
    assert breach.sentence == "Read 7"


def test_what_comes_after_the_last_event_that_could_break_it_is_not_looked_at():
    invariant = AccusesReads((Stored, Read))
    told([invariant], [(1, Stored(1)), (2, Read(2)), (3, Stored(3))]).finish(healed_us=3)
    assert [event for _, _, event in invariant.seen] == [Stored(1), Read(2)]


def test_while_a_run_goes_on_everything_is_looked_at_because_more_may_follow():
    invariant = AccusesReads((Stored, Read))
    trace = told([invariant], [(1, Stored(1)), (2, Read(2)), (3, Stored(3))])
    assert not trace.breaches()
    assert len(invariant.seen) == 3


def test_an_invariant_that_speaks_about_the_end_sees_everything():
    trace = told([AccusesAtTheEnd((Stored, Read))], [(1, Stored(1)), (2, Read(2)), (3, Stored(3))])
    trace.finish(healed_us=3)
    assert [breach.sentence for breach in trace.breaches()] == ["3 seen"]


def test_a_long_run_is_looked_at_in_pieces_and_judged_the_same(monkeypatch):
    monkeypatch.setattr(trace_module, "_ROWS_MAX", 2)
    invariant = Accuses((Stored,), number=3)
    trace = told([invariant], [(time_us, Stored(time_us % 5)) for time_us in range(1, 12)])
    assert len(trace.rows) == 1
    trace.finish(healed_us=11)
    assert len(invariant.seen) == 11
    assert [breach.time_us for breach in trace.breaches()] == [3]


def test_every_invariant_is_broken_only_by_events_that_it_wants():
    ours = [load_system(name) for name, path in sorted(systems().items()) if path.startswith("faultline.")]
    invariants = [invariant for system in ours for invariant in system.invariants()]
    assert sum(bool(events_that_break(invariant)) for invariant in invariants) >= 8
    assert [each.id for each in invariants if not set(events_that_break(each)) <= set(each.events)] == []


BUGS = sorted(
    (name, bug.campaign)
    for name, bug in load_system("consistent-core").planted_bugs.items()
    if bug.caught_by[0] in {"LOG-I7", "LOG-I3", "HWM-I2", "LOG-R15", "WAL-I1", "LWM-I3", "IDR-R14", "FR-I3", "VVL-I3"}
)


@pytest.mark.parametrize(("bug", "campaign"), BUGS)
def test_leaving_out_what_cannot_break_an_invariant_hides_no_breach(bug, campaign, monkeypatch):
    plan = load_plan(campaign)
    cell = next(cell for cell in plan.cells() if cell.system == "consistent-core" and not cell.planted_bugs)

    def breaches() -> list[list[Any]]:
        found = []
        for seed in range(2):
            request = msgspec.structs.replace(plan.request(cell, seed), planted_bugs=(bug,))
            parts = resolve(request)
            found.append(run_simulated(make_plan(request, parts), parts).breaches)
        return found

    usual = breaches()
    monkeypatch.setattr(trace_module, "events_that_break", lambda _: ())
    assert breaches() == usual
