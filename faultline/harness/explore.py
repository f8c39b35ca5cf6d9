"""Bounded exhaustive exploration: a plan under every order of its events within stated bounds.

The seed gives one order, that of the simulated times. From it, at most so many messages are *late*, each by at most so
many later events of its node, and at most so many nodes *crash*, each before an event of its own. This is delay-bounded
scheduling (Emmi, Qadeer and Rakamarić, POPL 2011) by repeated runs, as a run cannot be wound back. Orders that differ
only in events of different nodes are one (`faultline.harness.world.simulated.ordered`), so none is run twice.

A schedule is its plan with the decisions that depart from the seed's order. The run of a plan passes decisions in
steps. Taking one changes nothing before it, so each schedule has one parent, the schedule without its last decision,
and the schedules are a tree. Its levels are run one after the other: the first violation has the fewest decisions.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from faultline.harness.judge import CHECK_LIMIT_S, judge_by
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.plan import LateMessage, Plan, PlannedFault
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict, merge
from faultline.harness.world.simulated.ordered import Decision, OrderedScheduler

__all__ = ["CRASH_KIND", "Bounds", "Exploration", "explore"]

CRASH_KIND = "power-off"
"""The fault by which nodes crash: memory and what was not synced are lost."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of an exploration: at most `delays` late messages, each `behind` at most so many later events, and at
    most `crashes` nodes down for `down_us`. Decisions are taken from `from_us` until the heal.
    """

    delays: int = 1
    behind: int = 3
    crashes: int = 0
    down_us: int = 0
    from_us: int = 0


class Exploration(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an exploration.

    `schedules` are different orders that were run. `runs` are more: in some a late message waited for events that did
    not come, and the order was counted before. `states` are the different states passed until the heal, by the events
    that led to them. `verdicts` counts runs. `complete` says that every schedule within the bounds was run. `violation`
    is the plan of the first run that violates. `signature` and `sentence` are of the worst run.
    """

    bounds: Bounds
    schedules: int
    runs: int
    states: int
    waiting: int
    verdicts: dict[str, int]
    complete: bool
    violation: Plan | None = None
    signature: str = ""
    sentence: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict on all schedules: a pass only if every one was run, and none is undecided."""
        seen = [Verdict(name) for name in self.verdicts]
        # A schedule whose operations all fail tests nothing, and takes nothing from the others.
        told = [one for one in seen if one is not Verdict.VACUOUS or seen == [Verdict.VACUOUS]]
        return merge([*told, *([] if self.complete else [Verdict.UNKNOWN])])


class _Schedule(NamedTuple):
    """The decisions taken, the step of the last one, and the places in `late` of the messages whose longer waits are
    not among the schedules yet: the last decision, and those that before it waited for events that did not come."""

    late: tuple[LateMessage, ...] = ()
    crashes: tuple[PlannedFault, ...] = ()
    step: int = 0
    open: frozenset[int] = frozenset()


Tell = Callable[[int, int], None]


def explore(
    plan: Plan,
    parts: Parts,
    bounds: Bounds,
    *,
    goes_on: Callable[[int], bool] = lambda _runs: True,
    tell: Tell = lambda _runs, _waiting: None,
) -> Exploration:
    """Run `plan`, which has no faults of its own, under every schedule within `bounds`, until one violates.

    `goes_on(runs)` is asked before each run, and ends the exploration when it returns False. So does Ctrl-C.
    `tell(runs, waiting)` is called with the numbers of runs made and of schedules known to follow.
    """
    search = _Search(plan, parts, bounds)
    try:
        while search.waiting and search.violation is None and goes_on(search.runs):
            tell(search.runs, len(search.waiting))
            search.go_on()
    except KeyboardInterrupt:
        # It may have come before the children of the last run were noted.
        return search.result(complete=False)
    return search.result(complete=not search.waiting)


class _Search:
    """The tree of schedules as far as it is known, and the counts of what was run."""

    def __init__(self, plan: Plan, parts: Parts, bounds: Bounds) -> None:
        self._plan = plan
        self._parts = parts
        self._bounds = bounds
        self._states: set[int] = set()
        self._verdicts: Counter[str] = Counter()
        self._schedules = 0
        self._worst: Judgement | None = None
        self._longer_ones: set[tuple[object, ...]] = set()
        self.waiting = deque([_Schedule()])
        self.runs = 0
        self.violation: Plan | None = None

    def go_on(self) -> None:
        """Run the next schedule, judge it, and note those that follow from it."""
        schedule = self.waiting[0]
        plan = msgspec.structs.replace(self._plan, late=schedule.late, faults=schedule.crashes)
        scheduler = OrderedScheduler(plan, tells_states=True)
        record = run_simulated(plan, self._parts, scheduler=scheduler).whole()
        judgement = judge_by(self._parts.checkers, record, run_id="exploration", limit_s=CHECK_LIMIT_S)
        # A run that Ctrl-C ended has raised above: its schedule is still waiting.
        self.waiting.popleft()
        self.runs += 1
        self._schedules += not scheduler.unspent
        self._states.update(scheduler.states)
        self._verdicts[judgement.verdict.value] += 1
        if self._worst is None or merge([self._worst.verdict, judgement.verdict]) is not self._worst.verdict:
            self._worst = judgement
        if judgement.verdict is Verdict.VIOLATION:
            self.violation = plan
        unspent = frozenset(place for place, one in enumerate(schedule.late) if one in scheduler.unspent)
        self.waiting.extend(self._children(schedule, scheduler.decisions, unspent))
        self.waiting.extendleft(self._longer(schedule, unspent))

    def result(self, *, complete: bool) -> Exploration:
        worst = self._worst
        return Exploration(
            bounds=self._bounds,
            schedules=self._schedules,
            runs=self.runs,
            states=len(self._states),
            waiting=len(self.waiting),
            verdicts=dict(sorted(self._verdicts.items())),
            complete=complete,
            violation=self.violation,
            signature=worst.signature if worst else "",
            sentence=worst.sentence if worst else "",
        )

    def _children(self, schedule: _Schedule, decisions: list[Decision], unspent: frozenset[int]) -> Iterator[_Schedule]:
        """Yield `schedule` with each decision more that its run passed after the last one it took."""
        bounds = self._bounds
        for step, kind, place, number, time_us in decisions:
            if step <= schedule.step or time_us < bounds.from_us:
                continue
            if kind == "late" and len(schedule.late) < bounds.delays:
                late = (*schedule.late, LateMessage(place, number, 1))
                yield _Schedule(late, schedule.crashes, step, unspent | {len(schedule.late)})
            elif kind == "crash" and len(schedule.crashes) < bounds.crashes:
                crash = PlannedFault(CRASH_KIND, time_us, bounds.down_us, place, before_event=number)
                yield _Schedule(schedule.late, (*schedule.crashes, crash), step, unspent)

    def _longer(self, schedule: _Schedule, unspent: frozenset[int]) -> Iterator[_Schedule]:
        """Yield `schedule` with one of its open messages behind one event more, where that event comes.

        While it does not come, all longer waits are the same run. A further decision may make it come.
        """
        for place in sorted(schedule.open - unspent):
            one = schedule.late[place]
            longer = LateMessage(one.place, one.number, one.behind + 1)
            late = (*schedule.late[:place], longer, *schedule.late[place + 1 :])
            crashes = tuple((crash.target, crash.before_event) for crash in schedule.crashes)
            if longer.behind > self._bounds.behind or (late, crashes) in self._longer_ones:
                continue
            if len(schedule.open) > 1:
                # With several open messages, several ways lead to one schedule.
                self._longer_ones.add((late, crashes))
            yield schedule._replace(late=late)
