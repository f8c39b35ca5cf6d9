"""The checker of scans against every order: one key, one scan, a few changes, all that real time permits."""

from __future__ import annotations

from itertools import permutations, product
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from faultline.checkers.scans import ScansChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info, ok

OUTCOMES = {"ok": ok(), "info": info("timeout"), "fail": fail("refused")}


class Step(NamedTuple):
    f: str
    value: int | None
    outcome: str
    begin: int
    end: int

    @property
    def latest(self) -> float:
        return self.end if self.outcome == "ok" else float("inf")


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Step], int | None]:
    """Up to four changes and, last, a scan with what it found: nothing, or the value of some write."""
    kinds = draw(st.lists(st.sampled_from(["write", "write", "delete"]), max_size=4))
    times = iter(draw(st.permutations(range(2 * len(kinds) + 2))))
    steps = []
    for number, f in enumerate([*kinds, "scan"]):
        begin, end = sorted((next(times), next(times)))
        outcome = "ok" if f == "scan" else draw(st.sampled_from(["ok", "ok", "info", "fail"]))
        steps.append(Step(f, number if f == "write" else None, outcome, begin, end))
    found = draw(st.sampled_from([None, *range(len(kinds))]))
    return steps, found


def history_of(steps: list[Step], found: int | None) -> History:
    history, rows = History(), {}
    moments = [(step.begin, number, False) for number, step in enumerate(steps)]
    moments += [(step.end, number, True) for number, step in enumerate(steps)]
    for time_us, number, is_end in sorted(moments):
        step = steps[number]
        is_scan = step.f == "scan"
        if not is_end:
            key, value = (None, ["", None]) if is_scan else ("k", step.value)
            rows[number] = history.invoke(Operation(number, step.f, key, value), time_us, number, "athens")
        else:
            seen = ok([] if found is None else [["k", found]])
            outcome: Outcome = seen if is_scan else OUTCOMES[step.outcome]
            history.complete(rows[number], outcome, time_us)
    return history


def is_possible(steps: list[Step], found: int | None) -> bool:
    """Return whether an order that real time permits, with any of the unknown changes, shows the scan what it found."""
    certain = [step for step in steps if step.outcome == "ok"]
    unknown = [step for step in steps if step.outcome == "info"]
    for chosen in product([True, False], repeat=len(unknown)):
        done = certain + [step for step, is_in in zip(unknown, chosen, strict=True) if is_in]
        for order in permutations(done):
            if _respects_time(order) and _shown(order) == found:
                return True
    return False


def _respects_time(order: tuple[Step, ...]) -> bool:
    return not any(later.latest < earlier.begin for place, earlier in enumerate(order) for later in order[place + 1 :])


def _shown(order: tuple[Step, ...]) -> int | None:
    held = None
    for step in order:
        if step.f == "scan":
            return held
        held = step.value
    raise AssertionError("every order has the scan")


@given(stories())
def test_a_scan_is_accused_exactly_when_no_order_explains_it(story: tuple[list[Step], int | None]) -> None:
    steps, found = story
    findings = ScansChecker().check(history_of(steps, found)).findings
    assert bool(findings) is not is_possible(steps, found)
