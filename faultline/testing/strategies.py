"""Strategies and a state machine for Hypothesis: it chooses the run, and the simulated world carries it out.

    @SIMULATED
    @given(plans("my-store"))
    def test_my_store(plan):
        assert_plan_passes(plan)

    class MyStoreMachine(StoreMachine):             # operations, faults and pauses, one step after the other
        system = "my-store"

    TestMyStore = MyStoreMachine.TestCase
    TestMyStore.settings = SIMULATED

A failure tells the sentence, the minimal plan and the replay line of Faultline. Hypothesis keeps the failing example in
its database and tries it first the next time. This is the only module that imports Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from hypothesis import Phase, currently_in_test_context, settings
from hypothesis import strategies as st
from hypothesis.control import current_build_context
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from faultline.campaign.default_campaign import covered_faults, usual_workloads
from faultline.cli.single_run import carry_out_plan
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.judge import judge
from faultline.harness.operation import Operation
from faultline.harness.outcome import info, ok
from faultline.harness.plan import Plan, PlannedFault, PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.request import DRAWN_NUMBERS
from faultline.harness.results import RESULTS_FOLDER
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.system import HasUsualTest
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, resolve
from faultline.testing.campaigns import RunFailed

__all__ = ["SIMULATED", "StoreMachine", "assert_plan_passes", "histories", "plan_of", "plans", "universes"]

SIMULATED = settings(deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
"""Settings for tests of whole runs: without a deadline, and without Hypothesis's own shrinking, which needs hundreds of
runs where Faultline's needs some dozens. `settings(SIMULATED, max_examples=500)` changes more."""

_FAULT_SETS = ("leadership", "kill", "pause", "partition", "durability", "packet", "clock", "all")
"""The fault sets that are drawn from, as far as the system promises to bear them."""

_OPERATIONS = (30, 60, 100, 200)
_SEEDS = 2**32


def plans(system: str, **fixed: Any) -> st.SearchStrategy[Plan]:
    """Return a strategy for plans of runs of `system` in the simulated world.

    Seed, fault set, number of workers and of operations are drawn; workload and nodes are the system's usual ones.
    `fixed` are fields of a request (`faults`, `options`, `planted_bugs` …), each a value or a strategy of its own.
    Raise UsageError for a system, a field or a fault set that does not exist.
    """
    _expect_fields(fixed, _FIELDS)
    usual = _usual(system)
    if "faults" not in fixed:
        constant = {name: value for name, value in fixed.items() if not isinstance(value, st.SearchStrategy)}
        usual["faults"] = st.sampled_from(_borne(system, usual | constant))
    drawn = {
        "seed": st.integers(0, _SEEDS - 1),
        "workers": st.integers(1, 8),
        "operations": st.sampled_from(_OPERATIONS),
    }
    chosen = {name: _strategy(value) for name, value in (drawn | usual | fixed).items()}
    return st.builds(plan_of, system=st.just(system), **chosen)


def universes(system: str, **fixed: Any) -> st.SearchStrategy[Plan]:
    """Return a strategy for plans of runs of `system`, each in a universe of its own.

    The workload is drawn from those that the system promises to pass, and the seed; weather, sizes, options and some of
    the fault sets that the promise covers follow from the seed. `fixed` is as for `plans`: a number of nodes, workers
    or operations, an option or a field of the weather among them is the same in every universe. Raise UsageError for a
    system, a field or a fault set that does not exist.
    """
    _expect_fields(fixed, _FIELDS - {"universe", "held"})
    loaded = load_system(system)
    workloads = _strategy(fixed.pop("workload")) if "workload" in fixed else st.sampled_from(usual_workloads(loaded))
    drawn = {
        "seed": st.integers(0, _SEEDS - 1),
        "universe": "drawn",
        "held": tuple(name for name in DRAWN_NUMBERS if name in fixed),
    }
    chosen = {name: _strategy(value) for name, value in (drawn | fixed).items()}

    def of_workload(workload: str) -> st.SearchStrategy[Plan]:
        faults = {"faults": st.just(covered_faults(loaded, workload))}
        return st.builds(plan_of, system=st.just(system), workload=st.just(workload), **(faults | chosen))

    return workloads.flatmap(of_workload)


def plan_of(system: str, **asked: Any) -> Plan:
    """Return the plan of one run of `system`, as `plans` draws it and a failure prints it: `asked` are fields of a
    request."""
    for name in ("faults", "planted_bugs"):
        if name in asked:
            asked[name] = tuple(asked[name].split(",")) if isinstance(asked[name], str) else tuple(asked[name])
    request = RunRequest(system=system, **asked)
    return make_plan(request, resolve(request))


def assert_plan_passes(plan: Plan, *, output: Path = RESULTS_FOLDER) -> None:
    """Carry out `plan` in the simulated world. Raise RunFailed when it violates, fails or is not decided.

    A run that tested nothing (no operation met a fault) is no failure. The run is kept below `output`, shrunk and
    reported, once Hypothesis shows its final example, or at once in a test without Hypothesis.
    """
    __tracebackhide__ = True
    parts = resolve(plan)
    verdict = judge(run_simulated(plan, parts), parts, run_id="").verdict
    if verdict in (Verdict.PASS, Verdict.VACUOUS):
        return
    # Hypothesis takes failures at one line with one type for the same, so kept and unkept ones are raised here alike.
    is_shown = not currently_in_test_context() or current_build_context().is_final
    finished = carry_out_plan(plan, output) if is_shown else None
    raise RunFailed(finished, f"{plan.system} did not pass with seed {plan.seed}.")


_FIELDS = frozenset(RunRequest.__struct_fields__) - {"system", "world", "host_options"}


def _expect_fields(fixed: Mapping[str, Any], known: frozenset[str]) -> None:
    """Raise UsageError for a field that is not `known`."""
    unknown = sorted(fixed.keys() - known)
    if unknown:
        raise UsageError(f"A plan has no {', '.join(unknown)} to be fixed.", f"It has {', '.join(sorted(known))}.")


def _strategy(value: Any) -> st.SearchStrategy[Any]:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)


def _usual(system: str) -> dict[str, Any]:
    """Return the workload and the number of nodes with which the system is usually tested, where it names them."""
    loaded = load_system(system)
    if not isinstance(loaded, HasUsualTest):
        return {}
    return {"workload": loaded.usual_workload, "nodes": loaded.usual_nodes}


def _borne(system: str, asked: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the fault sets under which the system promises to pass. Raise UsageError when it bears none."""
    borne: list[tuple[str, ...]] = []
    refusals: list[UsageError] = []
    for name in _FAULT_SETS:
        try:
            plan_of(system, **(dict(asked) | {"faults": (name,)}))
        except UsageError as refusal:
            refusals.append(refusal)
        else:
            borne.append((name,))
    if not borne:
        raise refusals[0]
    return borne


class StoreMachine(RuleBasedStateMachine):
    """A run that is put together step by step: operations, faults and pauses. Subclass it and set `system`.

    `workload` gives the operations, in its own order; `kinds` are the kinds of faults, which are fault sets of the
    same name. The steps make a plan, which is carried out and judged when Hypothesis ends the sequence. Rules and
    invariants of your own may call `perform`, and `run` for the answers so far.
    """

    system: ClassVar[str]
    workload: ClassVar[str] = "register"
    kinds: ClassVar[tuple[str, ...]] = ("kill", "pause", "partition")
    nodes: ClassVar[int] = 3
    workers: ClassVar[int] = 3
    options: ClassVar[Mapping[str, str]] = {}
    planted_bugs: ClassVar[tuple[str, ...]] = ()
    output: ClassVar[Path] = RESULTS_FOLDER

    def __init__(self) -> None:
        super().__init__()
        self._whole = plan_of(
            self.system,
            workload=self.workload,
            faults=self.kinds,
            nodes=self.nodes,
            workers=self.workers,
            options=dict(self.options),
            planted_bugs=self.planted_bugs,
        )
        self._waiting = [one for one in self._whole.operations if one.at_us < self._whole.heal_us]
        self._operations: list[PlannedOperation] = []
        self._faults: list[PlannedFault] = []
        self.now_us = self._whole.operations[0].at_us

    @precondition(lambda self: self._waiting)
    @rule(worker=st.runner().flatmap(lambda machine: st.integers(0, machine.workers - 1)))
    def invoke(self, worker: int) -> None:
        """Let `worker` begin the workload's next operation, as soon as its last one has ended."""
        operation = self._waiting.pop(0)
        self.perform(worker, operation.f, operation.key, operation.value)

    @rule(duration_ms=st.integers(1, 500))
    def wait(self, duration_ms: int) -> None:
        """Let time pass before the next step."""
        self.now_us += 1_000 * duration_ms

    @rule(
        kind=st.runner().flatmap(lambda machine: st.sampled_from(machine.kinds)),
        struck=st.sampled_from(("leader", "follower", "one", "all")),
        duration_ms=st.integers(20, 1_000),
    )
    def strike(self, kind: str, struck: str, duration_ms: int) -> None:
        """Let a fault begin now, or once the last one has ended: a fault on top of another may not bite."""
        self.now_us = max([self.now_us, *(fault.stop_us + _BETWEEN_FAULTS_US for fault in self._faults[-1:])])
        self._faults.append(PlannedFault(kind, self.now_us, 1_000 * duration_ms, struck))

    def perform(self, worker: int, f: str, key: str | None = None, value: Any = None) -> None:
        """Let `worker` begin this operation now, for rules of your own."""
        self._operations.append(PlannedOperation(worker, self.now_us, f, key, value))

    def plan(self) -> Plan:
        """Return the plan of the steps so far, with the heal and the workload's final reads after them."""
        whole = self._whole
        heal_us = max([self.now_us, *(fault.stop_us for fault in self._faults)]) + 1
        later_us = heal_us - whole.heal_us
        final = [
            msgspec.structs.replace(one, at_us=one.at_us + later_us)
            for one in whole.operations
            if one.at_us >= whole.heal_us
        ]
        return msgspec.structs.replace(
            whole,
            operations=(*self._operations, *final),
            faults=tuple(self._faults),
            heal_us=heal_us,
            end_us=whole.end_us + later_us,
        )

    def run(self) -> RunRecord:
        """Carry out the steps so far and return the record, for rules and invariants of your own."""
        plan = self.plan()
        return run_simulated(plan, resolve(plan))

    def teardown(self) -> None:
        """Judge the run of all steps. Raise RunFailed when it does not pass."""
        if self._operations:
            assert_plan_passes(self.plan(), output=self.output)


_BETWEEN_FAULTS_US = 100_000

_Call = tuple[str, Any]
_Step = Callable[[Any, str, Any], tuple[Any, Any]]
"""A function from the state, the function called and its argument to the next state and the answer."""


class _Object(msgspec.Struct, frozen=True):
    """A sequential object: its first state, the strategy of calls, and its step."""

    first: Any
    calls: st.SearchStrategy[_Call]
    step: _Step


def _register(state: Any, f: str, value: Any) -> tuple[Any, Any]:
    return (state, state) if f == "read" else (value, None)


def _set(state: tuple[int, ...], f: str, value: Any) -> tuple[Any, Any]:
    return (state, list(state)) if f == "read" else (tuple(sorted({*state, value})), None)


def _counter(state: int, f: str, value: Any) -> tuple[Any, Any]:
    return (state, state) if f == "read" else (state + value, None)


def _read_and(change: str) -> st.SearchStrategy[_Call]:
    return st.just(("read", None)) | st.tuples(st.just(change), st.integers(0, 9))


_OBJECTS: Mapping[str, _Object] = {
    "register": _Object(None, _read_and("write"), _register),
    "linearizable-set": _Object((), _read_and("add"), _set),
    "linearizable-counter": _Object(0, _read_and("add"), _counter),
}


class _Concurrency:
    """Processes that each have at most one operation under way, on one object; it records their history."""

    def __init__(self, subject: _Object, processes: int) -> None:
        self.history = History()
        self._subject = subject
        self._state = subject.first
        self._processes = list(range(processes))
        self._rows: dict[int, int] = {}
        self._answers: dict[int, Any] = {}

    def advance(self, worker: int, draw: st.DrawFn) -> None:
        """Take the next step of a worker: its operation begins, takes effect, or ends, in that order."""
        now_us = 1_000 * self.history.next_index
        if worker not in self._rows:
            f, value = draw(self._subject.calls)
            operation = Operation(self._processes[worker], f, None, value)
            self._rows[worker] = self.history.invoke(operation, now_us, worker, "")
        elif draw(st.integers(0, 9)) == 9:
            # Whether it has taken effect or not, the client never learns; a process that lost an answer is over.
            self.history.complete(self._rows.pop(worker), info("timeout"), now_us)
            self._answers.pop(worker, None)
            self._processes[worker] += len(self._processes)
        elif worker not in self._answers:
            row = self._rows[worker]
            self._state, self._answers[worker] = self._subject.step(
                self._state, self.history.f[row], self.history.value[row]
            )
        else:
            self.history.complete(self._rows.pop(worker), ok(self._answers.pop(worker)), now_us)


@st.composite
def histories(draw: st.DrawFn, model: str, *, steps_max: int = 40, processes: int = 3) -> History:
    """Draw a linearizable history of concurrent operations under `model`: `register`, `linearizable-set` or
    `linearizable-counter`.

    Each operation takes effect at a moment of its own between its beginning and its end; some never get an answer. So
    a right checker accepts every history. For cases that it must refuse, change an answer.
    """
    if model not in _OBJECTS:
        raise UsageError(f"There are no histories of the model {model}.", f"Choose one of {', '.join(_OBJECTS)}.")
    concurrency = _Concurrency(_OBJECTS[model], processes)
    for worker in draw(st.lists(st.integers(0, processes - 1), min_size=1, max_size=steps_max)):
        concurrency.advance(worker, draw)
    return concurrency.history
