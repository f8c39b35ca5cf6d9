"""Causal pairs: a client that sees an effect must see its cause.

Shape: `write-pair` with a number, which one worker per key counts up: the left half is written first, and only then
the right half. `read-pair`, whose result is `[left, right]`, the left half read as of the stamp of the right half. The
right half follows from the left: a reader that sees `right = 7` must see the left half of that write or a later one.

| anomaly                                 | a read                                                    |
|-----------------------------------------|-----------------------------------------------------------|
| causal-reverse                          | has a right half, and a left half that is older than that |
| garbage-read, future-read, aborted-read | has a half that no write had been called to put           |

A pair that failed may have written its left half, and a client may write its number again: each attempt explains a half
from its call on. An attempt that was not acknowledged may put its left half at any time, also over that of a later
pair: such an older left half accuses of nothing.

Sources: Patterns of Distributed Systems ch. 22 and 23; Lamport (CACM 1978) on what happened before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from faultline.checkers.classic.misreads import accuse_misreads, writers
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, is_number, wrong_shape
from faultline.checkers.common.words import client, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.causes import IncrementalCausalPairs

__all__ = ["CausalPairsChecker"]

_EXPECTED = "`write-pair` of a number, and `read-pair` that answers [left, right]."


class CausalPairsChecker:
    """No read shows the right half of a pair without the left half that was written before it."""

    name = "causal-pairs"

    def incremental(self) -> IncrementalCausalPairs:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.causes import IncrementalCausalPairs

        return IncrementalCausalPairs()

    def check(self, history: History, _run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every pair of `history`."""
        expect_functions(self.name, history, ("read-pair", "write-pair"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            _judge(conclusion, key, rows)
        reads, telling = conclusion.counts["reads"], conclusion.counts["telling"]
        if not telling:
            conclusion.doubt("No read saw the right half of a pair, so nothing is known about causes.")
        return conclusion.result(f"{telling} of {reads} reads saw an effect, and each of them its cause.")


def _judge(conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
    history = conclusion.history
    attempts = [row for row in rows if history.f[row] == "write-pair"]
    writes = writers(history, attempts)
    called: dict[Any, int] = {}
    by_number: dict[Any, list[int]] = {}
    for row in attempts:
        called.setdefault(token(history.value[row]), history.invoke_index[row])
        by_number.setdefault(token(history.value[row]), []).append(row)
    reads = [row for row in rows if history.f[row] == "read-pair" and history.outcome[row] == "ok"]
    for row in reads:
        _expect_halves(history, row)
    conclusion.counts["reads"] += len(reads)
    conclusion.counts["telling"] += sum(history.result[row][1] is not None for row in reads)

    def without_cause(case: Case) -> str:
        left, right = history.result[case.rows[-1]]
        reader = client(history, case.rows[-1])
        return (
            f"{reader} saw {told(right)} on the right and {told(left)} on the left, which had been {told(right)} before"
        )

    conclusion.accuse(
        "causal-reverse", list(_without_cause(history, reads, writes, by_number)), without_cause, noun="read", key=key
    )
    halves = [(row, value) for row in reads for value in history.result[row] if value is not None]
    # A pair that failed may have written its left half, so that a number counts once its first write was called.
    early = [
        (row, value, writes.get(value))
        for row, value in halves
        if value not in called or called[value] > history.complete_index[row]
    ]
    accuse_misreads(conclusion, early, key=key)


def _expect_halves(history: History, row: int) -> None:
    """Raise `UsageError` unless the operation in `row` answered two numbers, or null where nothing was written."""
    halves = history.result[row]
    is_pair = isinstance(halves, list | tuple) and len(halves) == 2
    if not is_pair or not all(half is None or is_number(half) for half in halves):
        raise wrong_shape(CausalPairsChecker.name, history, row, f"answered {told(halves)}", _EXPECTED)


def _without_cause(
    history: History, reads: Sequence[int], writes: dict[int, int], attempts: Mapping[Any, Sequence[int]]
) -> Iterator[Case]:
    for row in reads:
        left, right = history.result[row]
        if right is None or right not in writes:
            continue
        if left is None or (left < right and not _may_come_late(history, attempts.get(left, ()), row)):
            yield Case(right, (writes[right], row))


def _may_come_late(history: History, attempts: Sequence[int], read: int) -> bool:
    """Return whether one of the `attempts` called before the end of `read` was not acknowledged by then."""
    end = history.complete_index[read]
    return any(
        history.invoke_index[row] < end and (history.outcome[row] != "ok" or history.complete_index[row] > end)
        for row in attempts
    )
