"""The classic checkers against slow, plain statements of what they promise, on random histories."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.checkers.classic.causal_reverse import CausalReverseChecker
from faultline.checkers.classic.counter import CounterChecker
from faultline.checkers.classic.lock import LockChecker
from faultline.checkers.classic.long_fork import LongForkChecker
from faultline.checkers.classic.monotonic import MonotonicChecker
from faultline.checkers.classic.set_full import SetFullChecker
from faultline.checkers.classic.sets import SetChecker
from faultline.harness.history import OPEN, History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.verdict import Verdict

SEEDS = st.integers(0, 2**32)


def random_history(rng, invocation, answer, *, processes=3, operations=10, outcomes=("ok", "ok", "ok", "info", "fail")):
    """Overlapping operations: `invocation(rng)` gives f and value, `answer(rng, f, value)` what an ok one answers."""
    history, running, time_us = History(), {}, 0
    begun = 0
    while begun < operations or running:
        time_us += 1
        process = rng.randrange(processes)
        if process in running:
            row, f, value = running.pop(process)
            kind = rng.choice(outcomes)
            history.complete(row, Outcome(kind, answer(rng, f, value) if kind == "ok" else None), time_us)
        elif begun < operations:
            f, value = invocation(rng, begun)
            running[process] = (history.invoke(Operation(process, f, None, value), time_us, process, "n"), f, value)
            begun += 1
    return history


def spans(history, *functions, outcome="ok"):
    """Rows with these functions and this outcome, each with its beginning and its end in indices."""
    return [
        (row, history.invoke_index[row], history.complete_index[row])
        for row in range(len(history))
        if history.f[row] in functions and history.outcome[row] == outcome
    ]


def set_history(seed):
    def answer(rng, f, _):
        return [element for element in range(10) if rng.random() < 0.85] if f == "read" else None

    return random_history(
        random.Random(seed), lambda rng, n: ("add", n) if rng.random() < 0.5 else ("read", None), answer
    )


def _known_at(history, element, adds, reads):
    """The earliest end of an acknowledged add of the element, or of a read that has it."""
    ends = [end for row, _, end in adds if history.value[row] == element]
    ends += [end for row, _, end in reads if element in history.result[row]]
    return min(ends, default=None)


@given(seed=SEEDS)
def test_elements_are_lost_or_stale_exactly_as_the_definition_has_it(seed):
    history = set_history(seed)
    adds, reads = spans(history, "add"), spans(history, "read")
    lost, stale = set(), set()
    for element in range(10):
        known = _known_at(history, element, adds, reads)
        missing = [
            begin
            for row, begin, _ in reads
            if known is not None and begin > known and element not in history.result[row]
        ]
        seen = [end for row, _, end in reads if element in history.result[row]]
        if missing:
            (lost if all(end < max(missing) for end in seen) else stale).add(element)
    counts = SetFullChecker(linearizable=True).check(history).detail["counts"]
    assert (counts.get("lost-element", 0), counts.get("stale-element", 0)) == (len(lost), len(stale))


@given(seed=SEEDS)
def test_the_last_read_lacks_what_the_set_checker_says(seed):
    history = set_history(seed)
    reads = spans(history, "read")
    result = SetChecker().check(history)
    if reads:
        row, begin, _ = max(reads, key=lambda read: read[2])
        lost = {history.value[add] for add, _, end in spans(history, "add") if end < begin} - set(history.result[row])
        assert result.detail["counts"]["lost-element"] == len(lost)
    else:
        assert result.verdict in (Verdict.UNKNOWN, Verdict.VACUOUS)


@given(seed=SEEDS)
def test_counter_bounds_are_those_of_every_moment_of_the_read(seed):
    def answer(rng, f, _):
        return rng.randint(-8, 8) if f == "read" else None

    history = random_history(
        random.Random(seed),
        lambda rng, _: ("read", None) if rng.random() < 0.4 else ("add", rng.randint(-3, 3)),
        answer,
    )
    wrong = set()
    for row, begin, end in spans(history, "read"):
        bounds = [_bounds_at(history, moment) for moment in range(begin, end)]
        if not any(lower <= history.result[row] <= upper for lower, upper in bounds):
            wrong.add(row)
    assert CounterChecker().check(history).detail["counts"].get("counter-out-of-bounds", 0) == len(wrong)


def _bounds_at(history, moment):
    lower = upper = 0
    for row in range(len(history)):
        if history.f[row] == "add" and history.outcome[row] != "fail" and history.invoke_index[row] <= moment:
            delta, is_done = history.value[row], history.outcome[row] == "ok" and history.complete_index[row] <= moment
            lower += delta if is_done else min(0, delta)
            upper += delta if is_done else max(0, delta)
    return lower, upper


@pytest.mark.parametrize("scope", ["process", "global"])
@given(seed=SEEDS)
def test_a_value_goes_back_exactly_when_two_reads_say_so(scope, seed):
    history = random_history(random.Random(seed), lambda *_: ("read", None), lambda rng, *_: rng.randint(0, 20))
    reads = spans(history, "read")
    goes_back = any(
        history.result[first] > history.result[second]
        for first, _, end in reads
        for second, begin, _ in reads
        if end < begin and (scope == "global" or history.process[first] == history.process[second])
    )
    assert (MonotonicChecker(scope=scope).check(history).verdict is Verdict.VIOLATION) == goes_back


@given(seed=SEEDS)
def test_causal_reverse_is_two_ordered_writes_of_which_a_read_sees_the_later_alone(seed):
    history = random_history(
        random.Random(seed),
        lambda rng, n: ("read", None) if rng.random() < 0.4 else ("write", n),
        lambda rng, f, _: [n for n in range(10) if rng.random() < 0.8] if f == "read" else None,
    )
    row_of = {history.value[row]: row for row in range(len(history)) if history.f[row] == "write"}
    expected = sum(
        any(
            end < history.invoke_index[row_of[value]] and history.value[first] not in history.result[read]
            for first, _, end in spans(history, "write")
            for value in history.result[read]
            if value in row_of
        )
        for read, _, _ in spans(history, "read")
    )
    assert CausalReverseChecker().check(history).detail["counts"].get("causal-reverse", 0) == expected


@given(seed=SEEDS)
def test_a_fork_is_found_exactly_when_two_reads_are_not_comparable(seed):
    rng = random.Random(seed)
    history = random_history(
        rng,
        lambda *_: ("read", [["r", key, None] for key in range(4)]),
        lambda rng, *_: [["r", key, 1 if key < 2 or rng.random() < 0.5 else None] for key in range(4)],
        operations=5,
    )
    sights = [{k for _, k, v in history.result[row] if v} for row, _, _ in spans(history, "read")]
    is_forked = any(not (a <= b or b <= a) for a in sights for b in sights)
    assert (LongForkChecker().check(history).verdict is Verdict.VIOLATION) == is_forked


@given(seed=SEEDS)
def test_a_lock_is_held_twice_exactly_when_two_certain_holds_overlap(seed):
    history = random_history(
        random.Random(seed), lambda rng, _: (rng.choice(("acquire", "release")), None), lambda *_: None
    )
    holds = []
    for process in range(3):
        rows = [row for row in range(len(history)) if history.process[row] == process]
        for place, row in enumerate(rows):
            if history.f[row] == "acquire" and history.outcome[row] == "ok":
                until = [
                    history.invoke_index[later]
                    for later in rows[place + 1 :]
                    if (history.f[later] == "release" and history.outcome[later] != "fail")
                    or (history.f[later] == "acquire" and history.outcome[later] == "ok")
                ]
                holds.append((process, history.complete_index[row], min(until, default=history.next_index)))
    assert OPEN not in [begin for _, begin, _ in holds]
    overlap = any(a[0] != b[0] and a[1] < b[1] < a[2] for a in holds for b in holds)
    found = [finding.anomaly for finding in LockChecker().check(history).findings]
    assert ("two-holders" in found) == overlap
