"""Linearizable histories of one register, into which one loss or one stale read is put: is it given its name?"""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st

from faultline.checkers import LinearizabilityChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, info, ok
from faultline.harness.verdict import Verdict

CLIENTS = 4
END = 1_000.0
STALE = {"stale-read", "refused-cas", "non-linearizable"}


class Step(NamedTuple):
    """An operation: when it is invoked, takes effect and ends; an expected value of -1 is the current one."""

    call: float
    effect: float
    return_: float
    process: int
    f: str
    value: int
    expected: int | None


def steps_of(rng: random.Random) -> list[Step]:
    """Return steps of the clients, and a read of each of them at the end, in the order of effects."""
    steps, value = [], 0
    for process in range(CLIENTS):
        now = rng.random()
        for _ in range(rng.randint(3, 10)):
            call, effect, return_ = sorted(now + 5 * rng.random() for _ in range(3))
            value += 1
            f = rng.choice(("read", "read", "write", "write", "cas"))
            steps.append(Step(call, effect, return_, process, f, value, rng.choice((-1, -1, value - 2))))
            now = return_ + 3 * rng.random()
        steps.append(Step(END, END + 1 + process, END + 9, process, "read", 0, None))
    return sorted(steps, key=lambda step: step.effect)


class Register:
    """A register that may lose its last write, once, or answer one read from an older state."""

    def __init__(self) -> None:
        self.states: list[int | None] = [None]

    def carry_out(self, step: Step, old: int | None = None) -> tuple[object, Outcome]:
        """The value of the operation and its outcome; with `old` from the state before so many changes."""
        if step.f == "read":
            return None, ok(self.states[-1 - (old or 0)])
        if step.f == "write":
            self.states.append(step.value)
            return step.value, ok()
        expected = self.states[-1] if step.expected == -1 else step.expected
        if expected != self.states[-1]:
            return [expected, step.value], fail(CAS_MISMATCH)
        self.states.append(step.value)
        return [expected, step.value], ok()


def history_of(steps: list[Step], done: list[tuple[object, Outcome]], nodes: list[str]) -> History:
    history, rows = History(), {}
    moments = [(step.call, 0, number) for number, step in enumerate(steps)]
    moments += [(step.return_, 1, number) for number, step in enumerate(steps)]
    for moment, is_end, number in sorted(moments):
        step, (value, outcome) = steps[number], done[number]
        if is_end:
            history.complete(rows[number], outcome, int(1_000 * moment))
        else:
            operation = Operation(step.process, step.f, "k", value)
            rows[number] = history.invoke(operation, int(1_000 * moment), step.process, nodes[number])
    return history


def names_in(steps: list[Step], done: list[tuple[object, Outcome]], nodes: list[str]) -> list[str]:
    result = LinearizabilityChecker().check(history_of(steps, done, nodes))
    assume(result.verdict is Verdict.VIOLATION)
    return [finding.anomaly for finding in result.findings]


@given(st.integers(0, 1 << 32))
def test_a_register_that_behaves_is_not_accused(seed: int) -> None:
    steps, register = steps_of(random.Random(seed)), Register()
    done = [register.carry_out(step) for step in steps]
    result = LinearizabilityChecker().check(history_of(steps, done, ["leader"] * len(steps)))
    assert result.verdict is Verdict.PASS


@given(st.integers(0, 1 << 32), st.integers(1, 3))
def test_the_last_writes_that_are_gone_when_all_read_in_the_end_are_lost_writes(seed: int, lost: int) -> None:
    # Of two writes that overlap it is not known which one is missing: the last ones follow one another.
    last = [Step(END - 50 + at, END - 49 + at, END - 48 + at, 0, "write", 100 + at, None) for at in range(0, 40, 10)]
    steps = sorted([*steps_of(random.Random(seed)), *last], key=lambda step: step.effect)
    register, done = Register(), []
    for step in steps:
        if step.effect > END and lost:
            del register.states[max(1, len(register.states) - lost) :]
            lost = 0
        done.append(register.carry_out(step))
    assert names_in(steps, done, ["leader"] * len(steps)) == ["lost-write"]


@given(st.integers(0, 1 << 32), st.integers(1, 3), st.integers(0, 30))
def test_one_read_of_an_old_state_at_a_node_that_lags_is_never_a_lost_write(seed: int, old: int, place: int) -> None:
    steps, register = steps_of(random.Random(seed)), Register()
    # Of several reads in the middle of the run one is stale: the final ones are in order.
    reads = [number for number, step in enumerate(steps) if step.f == "read" and step.call < END]
    assume(reads)
    stale = reads[place % len(reads)]
    done, nodes = [], []
    for number, step in enumerate(steps):
        assume(number != stale or len(register.states) > old)
        done.append(register.carry_out(step, old if number == stale else None))
        nodes.append("follower" if number == stale else "leader")
    # A compare-and-set that was rightly refused may return before the stale read, and then it is what has no place.
    assert set(names_in(steps, done, nodes)) <= {"stale-read", "refused-cas", "non-linearizable"}


@given(st.integers(0, 1 << 32), st.integers(2, 3), st.integers(5, 25))
def test_writes_that_are_lost_in_the_middle_are_never_told_as_values_that_were_never_written(
    seed: int, lost: int, place: int
) -> None:
    """A lost write that was overwritten early has a weaker name, a second compare-and-set its own."""
    steps, register, done = steps_of(random.Random(seed)), Register(), []
    for number, step in enumerate(steps):
        if number == place:
            del register.states[max(1, len(register.states) - lost) :]
        done.append(register.carry_out(step))
    assert set(names_in(steps, done, ["leader"] * len(steps))) <= {"lost-write", "lost-update", *STALE}


@given(st.integers(0, 1 << 32))
def test_a_write_that_was_not_acknowledged_is_never_called_lost(seed: int) -> None:
    """Every write is indeterminate, and none is there in the end."""
    steps = [step._replace(f="read") if step.f == "cas" else step for step in steps_of(random.Random(seed))]
    register, done = Register(), []
    for step in steps:
        if step.effect > END:
            register.states = [None]
        value, outcome = register.carry_out(step)
        done.append((value, info("timeout") if step.f == "write" else outcome))
    assert "lost-write" not in names_in(steps, done, ["leader"] * len(steps))
