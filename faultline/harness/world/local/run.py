"""Carries out a plan in a real world: processes, TCP, real files, real time; on this machine or on hosts.

Times of the plan count from the moment the cluster serves. Clients and proxies share one event loop, the nemesis
has a thread of its own. Where faults are late, the heal waits for them, and operations that are late too go on
meanwhile. While everything is healed nothing starts, since bringing a process back takes real time here; and the final
operations are due as long after the heal as planned, whenever that is done. However the run ends – finished, out of
time, Ctrl-C, an exception – all processes, sockets and threads are released.

Of the plan's weather only the disk applies: an fsync waits as long as it says before the machine's own disk carries it
out. Latency, loss and drift are the machine's own, until a fault adds to them.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from faultline.harness.access import access_of
from faultline.harness.errors import FaultlineError, HarnessError
from faultline.harness.fault_schedule import FaultSchedule
from faultline.harness.generator.scheduled import scheduled
from faultline.harness.history import EventSink
from faultline.harness.incremental import Watch, incremental_checkers
from faultline.harness.interpreter import Interpreter
from faultline.harness.invariant import Breach
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, answers_needed
from faultline.harness.recovery import asked_again
from faultline.harness.run_record import RunRecord, WorldName
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.local.client_host import ClientHost
from faultline.harness.world.local.clock import machine_monotonic_us, machine_wall_us
from faultline.harness.world.local.cluster import Clients, NodeCluster
from faultline.harness.world.local.decoded_messages import DecodedMessages
from faultline.harness.world.local.nemesis_thread import NemesisThread
from faultline.harness.world.local.pump import OperationPump
from faultline.harness.world.local.shared_history import SharedHistory
from faultline.harness.world.local.trace import observe, read_traces

__all__ = ["RealRun"]

HEAL_TIMEOUT_S = 60.0
LATE_FAULTS_S = (5.0, 20.0)
"""The bounds of the heal's wait for late faults: in between it waits half as long as faults were planned for."""

_WATCH_S = 0.05
_PROGRESS_S = 5.0


class RealRun:
    """One run of `plan` on `cluster`, with faults through the port that `make_port` gives. To be carried out once.

    `sink` receives the history's lines as they happen, `progress` a sentence now and then.
    """

    def __init__(
        self,
        plan: Plan,
        parts: Parts,
        cluster: NodeCluster,
        make_port: Callable[[asyncio.AbstractEventLoop], FaultPort],
        *,
        world: WorldName,
        sink: EventSink | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.plan = plan
        self.parts = parts
        self.world = world
        self.progress = progress or _say_nothing
        self._make_port = make_port
        self.errors: list[str] = []
        self.crashes: list[Breach] = []
        self.history = SharedHistory(sink)
        self.watch = Watch(incremental_checkers(parts.checkers)) if plan.stop_at_violation else None
        self.cluster = cluster
        self.interrupted = False
        self._failure: BaseException | None = None
        self._ready_us, self._started_at_us = machine_monotonic_us(), machine_wall_us()
        self._due_before_us = plan.heal_us
        self._healed_late_us = self._serving_late_us = 0

    async def carry_out(self) -> RunRecord:
        """Carry the plan out; however that ends, the cluster is closed.

        Ctrl-C once ends the run early with `interrupted` set in the record. Raises HarnessError when the cluster does
        not come up, or when something broke on the way.
        """
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._changed = asyncio.Event()
        loop.set_exception_handler(self._fail)
        try:
            with _interrupts_go_to(loop, self._interrupt):
                await self._boot()
                await self._run()
        finally:
            await self.cluster.close()
        return self._record()

    async def _boot(self) -> None:
        self.progress(f"starting {len(self.plan.nodes)} node processes")
        started_us = machine_monotonic_us()
        await self.cluster.start()
        serving = await self.cluster.wait_until_serving(self.cluster.serving_timeout_s)
        # Both clocks at once: what nodes log in wall-clock time is put into the time of the run by these two.
        self._ready_us, self._started_at_us = machine_monotonic_us(), machine_wall_us()
        self._boot_us = self._ready_us - started_us
        self.progress(f"{serving} after {self._boot_us / 1_000_000:.2f} s")

    async def _run(self) -> None:
        self.clients: Clients = self.cluster.open_clients(self.errors) or ClientHost(
            self.plan, self.parts.system, self.cluster.secret, self.cluster.address, self.errors, self.cluster.kept
        )
        self.interpreter = Interpreter(
            scheduled(self.plan.operations, workers=self.plan.workers, skip_before_us=self.plan.heal_us),
            workers=self.plan.workers,
            seed=self.plan.seed,
            history=self.history,
            node_of=self.clients.node_of,
            watch=self.watch,
            remembered=answers_needed(self.plan),
        )
        self.pump = OperationPump(
            self.interpreter,
            self.clients,
            loop=self._loop,
            now_us=self._now_us,
            start_us=self._ready_us,
            due_before_us=lambda: 0 if self.interrupted else self._due_before_us,
            on_finished=self._changed.set,
        )
        port = self._make_port(self._loop)
        self.schedule = FaultSchedule(self.plan, self.parts, port, self.history, self._now_us, self.errors)
        self._healed = asyncio.Event()
        nemesis = NemesisThread(
            self.plan,
            self.schedule,
            self._now_us,
            lambda: self._tell(self._note_heal_begun),
            lambda: self._tell(self._note_healed),
            self.errors,
        )
        try:
            nemesis.start()
            self._loop.call_soon(self.pump.pump)
            await self._operate()
            await self._wait_for_late_faults()
            if self._is_stopped():
                self.schedule.cut_short()
            nemesis.heal_now()
            await self._wait_for_heal()
            await self._finish()
        finally:
            self.pump.stop()
            self._watch_nodes()
            self.clients.close()
            nemesis.heal_now()
            if not await asyncio.to_thread(nemesis.join):
                self.errors.append("The nemesis did not come to an end.")
            self.interpreter.abandon(self._now_us())

    async def _operate(self) -> None:
        """Let operations and faults happen until it is time to heal."""
        await self._until(self.plan.heal_us, self._is_stopped)

    async def _wait_for_late_faults(self) -> None:
        """Wait, within bounds, for the planned faults to end: they take their time on a slow machine."""
        least_us, most_us = (int(bound_s * 1_000_000) for bound_s in LATE_FAULTS_S)
        patience_us = min(max(self.plan.heal_us // 2, least_us), most_us)
        await self._until(self.plan.heal_us + patience_us, lambda: self._is_stopped() or self._healed.is_set())

    async def _wait_for_heal(self) -> None:
        """Wait until all faults are undone and the cluster serves again."""
        try:
            await asyncio.wait_for(self._healed.wait(), HEAL_TIMEOUT_S)
            if not self.interrupted:
                await self.cluster.wait_until_serving(self.cluster.serving_timeout_s)
        except TimeoutError:
            self.errors.append(f"The heal was not done after {HEAL_TIMEOUT_S:g} s.")
        except HarnessError as error:
            self.errors.append(f"After the heal: {error}")
        self._serving_late_us = max(self._now_us() - self.plan.heal_us, 0)

    async def _finish(self) -> None:
        """Let what is left of the operations happen, and as long after the heal as planned the final ones; nothing of
        it once a violation is certain."""
        if self._is_stopped():
            return
        self._let_start(before_us=self.plan.final_us)
        await self._until(self.plan.final_us + self._healed_late_us, self._is_stopped)
        self._let_start(before_us=sys.maxsize)
        while True:
            await self._until(self.plan.end_us + self._serving_late_us, lambda: self.interpreter.finished)
            if self.interrupted or self._is_stopped() or not self.interpreter.finished or not self._asks_again():
                return

    def _asks_again(self) -> bool:
        """Return whether reads are asked again, as nothing was answered since the heal or an object was not read."""
        again = asked_again(
            self.plan,
            access_of(self.parts.workload),
            self.history,
            healed_us=self.plan.heal_us + self._serving_late_us,
            now_us=self._now_us(),
        )
        self.interpreter.go_on(scheduled(again, workers=self.plan.workers))
        self._let_start(before_us=sys.maxsize)
        return bool(again)

    def _is_stopped(self) -> bool:
        return self.watch is not None and self.watch.violation is not None

    def _let_start(self, *, before_us: int) -> None:
        self._due_before_us = before_us
        self._loop.call_soon(self.pump.pump)

    async def _until(self, at_us: int, is_done: Callable[[], bool]) -> None:
        next_report_us = self._now_us() + int(_PROGRESS_S * 1_000_000)
        while not (self.interrupted or is_done()) and (left_us := at_us - self._now_us()) > 0:
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(left_us / 1_000_000, _WATCH_S))
            self._refuse_to_go_on_broken()
            self._watch_nodes()
            if self._now_us() >= next_report_us:
                next_report_us += int(_PROGRESS_S * 1_000_000)
                self.progress(f"{self._now_us() / 1_000_000:.0f} s: {len(self.history)} operations")

    def _interrupt(self) -> None:
        self.interrupted = True
        self._changed.set()

    def _fail(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Fail the run, as a callback raised – a client, the history's sink, the harness itself: it proves nothing."""
        if self._failure is None:
            self._failure = context.get("exception") or RuntimeError(context.get("message", "unknown"))
        self._changed.set()

    def _refuse_to_go_on_broken(self) -> None:
        if isinstance(self._failure, FaultlineError):
            raise self._failure
        if self._failure is not None:
            raise HarnessError(
                f"The run broke after {len(self.history)} operations: {self._failure!r}.",
                "What was recorded until then is in the run's folder.",
            ) from self._failure

    def _now_us(self) -> int:
        return machine_monotonic_us() - self._ready_us

    def _tell(self, note: Callable[[], None]) -> None:
        # A heal that took too long may end after the run, and find its loop closed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(note)

    def _note_heal_begun(self) -> None:
        self._due_before_us = 0

    def _note_healed(self) -> None:
        self._healed_late_us = max(self._now_us() - self.plan.heal_us, 0)
        self._healed.set()
        self._changed.set()

    def _watch_nodes(self) -> None:
        """Tell of nodes that ended without being killed: a finding about the system, not about the harness."""
        for node, code in self.cluster.unexpected_exits():
            process = self.cluster.processes[node]
            lost = process.unreachable()
            if lost is not None:
                # A connection that breaks looks like a process that its kernel killed, and proves nothing about it.
                self.errors.append(f"The harness lost sight of {node}, which may have ended or not: {lost}")
                continue
            sentence = f"{node} ended of its own with code {code}: {process.log_tail()}"
            self.crashes.append(Breach(invariant="node-crash", sentence=sentence, time_us=self._now_us(), node=node))

    def _record(self) -> RunRecord:
        processes = self.cluster.processes.values()
        # Traces of machines whose clocks have nothing to do with each other cannot be put into one order.
        lines = read_traces(process.trace for process in processes) if self.cluster.shares_clock else []
        breaches, marks = observe(lines, self.parts.system.invariants(), lambda time_us: time_us - self._ready_us)
        kept = self.cluster.kept
        found = sorted(breaches + self.crashes, key=lambda breach: (breach.time_us, breach.invariant))
        return RunRecord(
            plan=self.plan,
            world=self.world,
            history=self.history,
            faults=self.schedule.intervals(),
            marks=dict(sorted((marks | self.cluster.marks() | self.schedule.marks).items())),
            breaches=found,
            messages=DecodedMessages(kept, self.parts.system.messages, self._ready_us) if kept is not None else [],
            messages_dropped_us=max(int(kept.dropped_s * 1_000_000) - self._ready_us, 0) if kept is not None else 0,
            errors=[*self.errors, *(self.watch.problems if self.watch is not None else ())],
            statistics=self.cluster.statistics()
            | {
                "boot_us": self._boot_us,
                "run_us": self._now_us(),
                "serving_us_max": int(self.cluster.serving_timeout_s * 1_000_000),
                "node_starts": sum(process.starts for process in processes),
                "trace_events": len(lines),
            }
            | ({"messages_dropped": kept.dropped} if kept is not None else {}),
            interrupted=self.interrupted,
            stopped_by=self.watch.violation if self.watch is not None else None,
            started_at_us=self._started_at_us,
            detail={"node_logs": [str(process.log) for process in processes]} | self.cluster.detail(),
        )


@contextmanager
def _interrupts_go_to(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> Iterator[None]:
    """Deliver the first Ctrl-C to `callback`; a second one raises KeyboardInterrupt as usual. Main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop.call_soon_threadsafe(callback)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _say_nothing(sentence: str) -> None:
    """Ignore the progress of a run that is not watched."""
