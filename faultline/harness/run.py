"""The simulated run of a plan: boot the cluster, drive clients and faults, heal, and record.

The interpreter decides which operation is invoked when; this module moves it along in virtual time. A run ends when
every planned operation has completed after the heal and the system has answered or its time is over. Otherwise it ends
at the plan's end, and operations still in flight stay open.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import msgspec

from faultline.harness.access import access_of
from faultline.harness.deadline import Overdue, deadline
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.fault_schedule import FaultSchedule
from faultline.harness.generator.scheduled import scheduled
from faultline.harness.history import EventSink, History
from faultline.harness.incremental import Watch, incremental_checkers
from faultline.harness.interpreter import Dispatch, Interpreter
from faultline.harness.outcome import Outcome
from faultline.harness.parts import Parts, refuse_what_cannot_run
from faultline.harness.plan import Plan, answers_needed
from faultline.harness.recovery import asked_again
from faultline.harness.run_record import RunRecord
from faultline.harness.triggers import TriggerWatch
from faultline.harness.world.faults import SIMULATED_CAPABILITIES
from faultline.harness.world.simulated.ordered import OrderedScheduler
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.simulated.trace import Watch as NodeWatch
from faultline.harness.world.simulated.world import BOOT_US_MAX, SimulatedClient, SimulatedWorld

__all__ = ["LIMIT_S", "LIMIT_S_PER_OPERATION", "limit_s", "refuse_what_cannot_boot", "run_simulated"]

LIMIT_S = 300.0
LIMIT_S_PER_OPERATION = 0.02


def run_simulated(
    plan: Plan,
    parts: Parts,
    *,
    sink: EventSink | None = None,
    record_messages: bool = False,
    scheduler: Scheduler | None = None,
    observer: NodeWatch | None = None,
) -> RunRecord:
    """Carry out `plan`; the record is a pure function of it.

    Ctrl-C ends the run where it is; the record then says so and holds all events until then.
    `sink` receives the history's lines as they happen; `record_messages` keeps every message for diagrams, which
    costs time but changes nothing else. A `scheduler` of the caller's, new for this run, sees or changes its events.
    `observer` is called with the node and the name of each event and mark that a node reports.
    Raise HarnessError when the run does not end (`limit_s`), and UsageError when `scheduler` cannot follow the plan.
    """
    if plan.is_ordered:
        scheduler = _ordered(plan, scheduler)
    refuse_what_cannot_run(plan, parts, frozenset(SIMULATED_CAPABILITIES), "simulated")
    errors: list[str] = []
    world = SimulatedWorld(plan, parts.system, errors, record_messages=record_messages, scheduler=scheduler)
    run = _SimulatedRun(plan, parts, sink, world, errors, observer)
    seconds = limit_s(plan)
    try:
        with deadline(seconds):
            return run.carry_out()
    except Overdue:
        raise HarnessError(
            f"The simulated run did not end: after {seconds:g} s it stood at {run.scheduler.now_us / 1e6:.3f} s of "
            "virtual time.",
            "Code of the system, its client or the workload does not return; py-spy shows where it is.",
        ) from None


def _ordered(plan: Plan, scheduler: Scheduler | None) -> OrderedScheduler:
    """Return the scheduler for a plan that orders its own events. Raise `UsageError` for one that cannot."""
    if scheduler is None:
        return OrderedScheduler(plan)
    if not isinstance(scheduler, OrderedScheduler):
        raise UsageError(
            "This run is one of an exploration: its plan orders events itself, and no other event can be undone in it.",
            "Look at it with its report, or repeat it with `faultline replay`.",
        )
    return scheduler


def refuse_what_cannot_boot(plan: Plan, parts: Parts) -> None:
    """Raise UsageError when the nodes or clients of `plan` refuse their options, members or planted bugs."""
    world = SimulatedWorld(plan, parts.system, [])
    world.boot()
    for worker in range(plan.workers):
        world.open_client(worker, plan.nodes[worker % len(plan.nodes)])
    world.scheduler.run(BOOT_US_MAX)


def limit_s(plan: Plan) -> float:
    """Return the time that the run of `plan` may take: some thousand times its usual time."""
    return LIMIT_S + LIMIT_S_PER_OPERATION * len(plan.operations)


class _SimulatedRun:
    def __init__(
        self,
        plan: Plan,
        parts: Parts,
        sink: EventSink | None,
        world: SimulatedWorld,
        errors: list[str],
        observer: NodeWatch | None,
    ) -> None:
        self.plan = plan
        self._observers = [] if observer is None else [observer]
        self.history = History(sink)
        self.errors = errors
        self.world = world
        self.scheduler = self.world.scheduler
        self.faults = FaultSchedule(
            plan, parts, self.world.fault_port, self.history, lambda: self.scheduler.now_us, self.errors
        )
        self.watch = Watch(incremental_checkers(parts.checkers)) if plan.stop_at_violation else None
        self.interpreter = Interpreter(
            scheduled(plan.operations, workers=plan.workers, skip_before_us=plan.heal_us, late_from_us=plan.final_us),
            workers=plan.workers,
            seed=plan.seed_of_chances,
            history=self.history,
            node_of=self._node_of,
            watch=self.watch,
            remembered=answers_needed(plan),
        )
        self._access = access_of(parts.workload)
        self.clients: dict[int, SimulatedClient] = {}
        self._wake_us: int | None = None

    def carry_out(self) -> RunRecord:
        self.world.boot()
        for worker in range(self.plan.workers):
            self.clients[worker] = self.world.open_client(worker, self._node_of(worker))
        self._agree_on_faults()
        interrupted = False
        try:
            self._pump()
            self.scheduler.run(self.plan.end_us)
        except KeyboardInterrupt:
            interrupted = True
        self.interpreter.abandon(self.scheduler.now_us)
        # What must hold in the end is not asked of a run that was cut short.
        if not interrupted and not self._is_stopped():
            self.world.trace.finish(self.plan.heal_us)
        return self._record(interrupted)

    def _node_of(self, worker: int) -> str:
        return self.plan.nodes[worker % len(self.plan.nodes)]

    def _is_stopped(self) -> bool:
        return self.watch is not None and self.watch.violation is not None

    def _stop_when_finished(self) -> None:
        now_us, heal_us = self.scheduler.now_us, self.plan.heal_us
        if now_us < heal_us or not self.interpreter.finished:
            return
        again = asked_again(self.plan, self._access, self.history, healed_us=heal_us, now_us=now_us)
        if again:
            self.interpreter.go_on(scheduled(again, workers=self.plan.workers))
            self.scheduler.at(now_us, self._pump)
        else:
            self.scheduler.stop()

    def _pump(self) -> None:
        """Invoke all operations that may start now, and set the timer for the next one; heal and end a run in which a
        violation is certain."""
        if self.watch is not None and self._is_stopped():
            self.faults.cut_short()
            self.faults.heal()
            self.scheduler.stop()
            return
        for dispatch in self.interpreter.poll(self.scheduler.now_us):
            self.clients[dispatch.worker].invoke(dispatch.operation, self._when_done(dispatch))
        wake_us = self.interpreter.next_wake_us()
        if wake_us is not None and wake_us != self._wake_us:
            self._wake_us = wake_us
            self.scheduler.at(wake_us, self._wake, wake_us)
        self._stop_when_finished()

    def _wake(self, wake_us: int) -> None:
        if wake_us == self._wake_us:
            self._wake_us = None
            self._pump()

    def _when_done(self, dispatch: Dispatch) -> Callable[[Outcome], None]:
        def done(outcome: Outcome) -> None:
            worker = dispatch.worker
            if self.interpreter.complete(worker, outcome, self.scheduler.now_us, dispatch.row):
                self.clients[worker].close()
                process = dispatch.operation.process + self.plan.workers
                self.clients[worker] = self.world.open_client(process, self._node_of(worker))
            self.scheduler.at(0, self._pump)

        return done

    def _agree_on_faults(self) -> None:
        if any(fault.trigger is not msgspec.UNSET for fault in self.plan.faults):
            watch = TriggerWatch(self.plan, lambda: self.scheduler.now_us, self.world.fault_port.leader, self._aim)
            self._observers.append(watch.seen)
        if self._observers:
            self.world.watch_nodes(_all_of(self._observers))
        for number, fault in enumerate(self.plan.faults):
            if fault.trigger is not msgspec.UNSET:
                continue
            if isinstance(self.scheduler, OrderedScheduler) and fault.before_event is not msgspec.UNSET:
                strike = functools.partial(self._strike, number)
                self.scheduler.before(fault.target, fault.before_event, strike)
            else:
                self.scheduler.at(fault.at_us, self._start_fault, number)
                self.scheduler.at(fault.stop_us, self.faults.stop, number)
        self.scheduler.at(self.plan.heal_us, self._heal)

    def _heal(self) -> None:
        self.faults.heal()
        self._stop_when_finished()

    def _start_fault(self, number: int, node: str = "") -> None:
        self.faults.start(number, node)
        tick_us = self.faults.tick_us(number)
        if tick_us:
            self.scheduler.at(self.scheduler.now_us + tick_us, self._tick_fault, number, tick_us, 1)

    def _aim(self, number: int, node: str) -> None:
        """Let fault `number` strike, whose event has just happened on `node`, in a step that has not ended yet."""
        trigger = self.plan.faults[number].trigger
        assert trigger is not msgspec.UNSET, "only faults with a trigger are aimed"
        if trigger.delay_us:
            self.scheduler.at(self.scheduler.now_us + trigger.delay_us, self._strike, number, node)
        else:
            self.scheduler.at_once(self._strike, number, node)

    def _strike(self, number: int, node: str = "") -> None:
        """Start fault `number` now, and end it when its time is over."""
        self._start_fault(number, node)
        duration_us = self.plan.faults[number].duration_us
        if duration_us:
            self.scheduler.at(self.scheduler.now_us + duration_us, self.faults.stop, number)
        else:
            self.faults.stop(number)

    def _tick_fault(self, number: int, tick_us: int, count: int) -> None:
        if self.faults.is_active(number):
            self.faults.tick(number, count)
            self.scheduler.at(self.scheduler.now_us + tick_us, self._tick_fault, number, tick_us, count + 1)

    def _record(self, interrupted: bool) -> RunRecord:
        world = self.world
        return RunRecord(
            plan=self.plan,
            world="simulated",
            history=self.history,
            faults=self.faults.intervals(),
            marks=dict(sorted((world.trace.marks | self.faults.marks).items())),
            breaches=world.trace.breaches(),
            errors=[*self.errors, *(self.watch.problems if self.watch is not None else ())],
            messages=world.network.records or [],
            statistics={
                "events": self.scheduler.events,
                "messages_sent": world.network.sent,
                "virtual_us": self.scheduler.now_us,
            },
            interrupted=interrupted,
            stopped_by=self.watch.violation if self.watch is not None else None,
        )


def _all_of(observers: Sequence[NodeWatch]) -> NodeWatch:
    """Return one observer that calls all `observers`, in order."""
    if len(observers) == 1:
        return observers[0]

    def observe(node: str, event: str) -> None:
        for observer in observers:
            observer(node, event)

    return observe
