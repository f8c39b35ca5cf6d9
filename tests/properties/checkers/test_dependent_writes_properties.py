"""The checker of dependent writes against a closure of what happened before, computed in full."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from faultline.checkers.dependent_writes import DependentWritesChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import info, ok
from faultline.harness.verdict import Verdict


class Step(NamedTuple):
    """An operation of a session; `seen` is the write that was read, or is the cause of a write, `given` the one whose
    answer is handed over."""

    session: int
    f: str
    key: int
    seen: int | None
    given: int | None
    acknowledged: bool
    begin: int
    end: int


def story(chance: Random) -> list[Step]:
    """Return up to twelve operations of three sessions on two keys, each session one after the other, all reads
    possible."""
    count = chance.randint(5, 12)
    kinds = [chance.choice(["write", "read", "read", "read-after"]) for _ in range(count)]
    keys = [chance.randint(0, 1) for _ in range(count)]
    sessions = [chance.randint(0, 2) for _ in range(count)]
    times = iter(range(4 * count))
    begins, ends = [0] * count, [0] * count
    open_by: dict[int, int] = {}
    for number in range(count):
        for session in [sessions[number], *(each for each in range(3) if chance.random() < 0.6)]:
            if session in open_by:
                ends[open_by.pop(session)] = next(times)
        begins[number] = next(times)
        open_by[sessions[number]] = number
    for number in open_by.values():
        ends[number] = next(times)
    steps: list[Step] = []
    retired: set[int] = set()
    writes = [number for number in range(count) if kinds[number] == "write"]
    for number, (f, key, session) in enumerate(zip(kinds, keys, sessions, strict=True)):
        if session in retired:
            continue
        acknowledged = f != "write" or chance.random() < 0.8
        retired |= set() if acknowledged else {session}
        place, until = (key - 1, begins[number]) if f == "write" else (key, ends[number])
        known = [other for other in writes if keys[other] == place and begins[other] < until]
        seen = chance.choice([None, *known, *known])
        given = chance.choice([None, *writes])
        steps.append(Step(session, f, key, seen, given, acknowledged, begins[number], ends[number]))
    return numbered(steps, begins)


def numbered(steps: list[Step], begins: list[int]) -> list[Step]:
    """Return the steps with `seen` and `given` as places among them; what is not there any more was not seen."""
    place = {step.begin: number for number, step in enumerate(steps)}

    def placed(number: int | None) -> int | None:
        return None if number is None else place.get(begins[number])

    return [step._replace(seen=placed(step.seen), given=placed(step.given)) for step in steps]


def is_shown(steps: list[Step], write: int, moment: int) -> bool:
    """Return whether a client had been shown the write by then: by its acknowledgement or by a read."""
    if steps[write].acknowledged and steps[write].end < moment:
        return True
    return any(step.f != "write" and step.seen == write and step.end < moment for step in steps)


def value(steps: list[Step], number: int) -> list[object]:
    seen = steps[number].seen
    return [number, None if seen is None else value(steps, seen)]


def history_of(steps: list[Step]) -> History:
    history, rows = History(), {}
    moments = [(step.begin, number, False) for number, step in enumerate(steps)]
    moments += [(step.end, number, True) for number, step in enumerate(steps)]
    for time_us, number, is_end in sorted(moments):
        step = steps[number]
        if not is_end:
            asked: object = value(steps, number) if step.f == "write" else None
            if step.f == "read-after":
                asked = [None, step.given]
            operation = Operation(step.session, step.f, f"c/{step.key}", asked)
            rows[number] = history.invoke(operation, time_us, step.session, "athens")
        elif step.f == "write":
            history.complete(rows[number], ok(number) if step.acknowledged else info("timeout"), time_us)
        else:
            history.complete(rows[number], ok(None if step.seen is None else value(steps, step.seen)), time_us)
    return history


def happened_before(steps: list[Step], across_clients: bool) -> list[list[bool]]:
    """Return for each two operations whether the first is known when the second is performed."""
    count = len(steps)
    before = [[False] * count for _ in steps]
    for one, other in product(range(count), repeat=2):
        first, second = steps[one], steps[other]
        before[one][other] = first.session == second.session and first.end < second.begin
        if second.f == "read-after" and second.given == one and first.acknowledged and first.end < second.begin:
            before[one][other] = True
    # A read passes on what it showed to what comes after it, not to itself: it is judged by what was known before.
    shown = [[False] * count for _ in steps]
    for other, step in enumerate(steps):
        told = across_clients and step.seen is not None and is_shown(steps, step.seen, step.begin)
        if step.seen is not None and (step.f != "write" or told):
            shown[step.seen][other] = True
    reached = [[before[i][j] or (shown[i][j] and steps[j].f == "write") for j in range(count)] for i in range(count)]
    for _ in range(count):
        for one, middle, other in product(range(count), repeat=3):
            through = reached[one][middle] or shown[one][middle]
            reached[one][other] = reached[one][other] or (through and reached[middle][other])
    return reached


def is_wrong(steps: list[Step], across_clients: bool) -> bool:
    """Return whether a read misses a write that happened before it for an older one, or for nothing."""
    reached = happened_before(steps, across_clients)
    for number, step in enumerate(steps):
        if step.f == "write":
            continue
        for known, write in enumerate(steps):
            if write.f != "write" or write.key != step.key or not reached[known][number]:
                continue
            seen = None if step.seen is None else steps[step.seen]
            if seen is None or (seen.acknowledged and seen.end < write.begin):
                return True
    return False


def part_of(history: History, rows: tuple[int, ...]) -> History:
    """Return the history of these operations alone, in the order of their events."""
    part, place = History(), {}
    moments = [(history.invoke_index[row], row, False) for row in rows]
    moments += [(history.complete_index[row], row, True) for row in rows]
    for time_us, row, is_end in sorted(moments):
        if not is_end:
            operation = Operation(history.process[row], history.f[row], history.key[row], history.value[row])
            place[row] = part.invoke(operation, time_us, history.worker[row], "athens")
        elif history.outcome[row] == "ok":
            part.complete(place[row], ok(history.result[row]), time_us)
    return part


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.booleans())
def test_a_history_is_refused_exactly_when_a_read_misses_what_happened_before_it(
    seed: int, across_clients: bool
) -> None:
    steps = story(Random(seed))
    result = DependentWritesChecker(across_clients=across_clients).check(history_of(steps))
    assert (result.verdict is Verdict.VIOLATION) == is_wrong(steps, across_clients)


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.booleans())
def test_the_rows_of_a_finding_alone_show_it(seed: int, across_clients: bool) -> None:
    checker, history = DependentWritesChecker(across_clients=across_clients), history_of(story(Random(seed)))
    for finding in checker.check(history).findings:
        alone = checker.check(part_of(history, finding.operations))
        assert (finding.anomaly, finding.key) in {(one.anomaly, one.key) for one in alone.findings}
