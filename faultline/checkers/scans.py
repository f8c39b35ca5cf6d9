"""Scans: a read of a range of keys has everything that was there throughout, once, in order, and nothing else.

Shape: `write` of a key with a value that no other write of the key has; `delete` of a key; `scan`, whose value is
`[start, end]` (null for no end) and whose result is a list of `[key, value]`. A scan takes its time and is no snapshot:
what changes while it goes on it may show before or after, each key for itself.

| anomaly          | a scan                                                                                 |
|------------------|----------------------------------------------------------------------------------------|
| missing-key      | lacks a key that was written before it began, and that nobody deleted until it ended   |
| key-twice        | has a key twice                                                                        |
| out-of-order     | has a key after a higher one                                                           |
| outside-range    | has a key that it did not ask for                                                      |
| unexpected-value | has a value that nobody had begun to write, or whose write failed                      |
| resurrected-key  | has a value that was deleted, for good, before the scan began                          |
| stale-value      | has a value that was overwritten, for good, before the scan began                      |

Each is judged by what must be so in *every* order of the operations that real time permits; what is unknown accuses
nobody. That makes it weaker than a search for one order of everything, and it needs no search. It does not see that two
scans contradict each other while each by itself is possible.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from faultline.checkers.classic.conclusion import Case, Conclusion
from faultline.checkers.classic.words import client, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

__all__ = ["ScansChecker"]

_NEVER = float("inf")


class ScansChecker:
    """Every scan that succeeded, compared with the writes and deletions around it."""

    name = "scans"

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """The verdict on `history`; `run` is not needed."""
        conclusion = Conclusion(self.name, history)
        scans = [row for row in range(len(history)) if history.f[row] == "scan" and history.outcome[row] == "ok"]
        keys = {key: _KeyHistory(history, rows) for key, rows in history.rows_by_key().items() if key is not None}
        conclusion.counts["scans"] = len(scans)
        conclusion.counts["keys"] = sum(len(history.result[row]) for row in scans)
        _judge_order(conclusion, scans)
        _judge_missing(conclusion, scans, keys)
        _judge_values(conclusion, scans, keys)
        if len(history) and not scans:
            conclusion.doubt("No scan succeeded, so nothing is known about scans.")
        return conclusion.result(f"{len(scans)} scans had what was there, {conclusion.counts['keys']} keys in all.")


class _KeyHistory:
    """What was done to one key: when each write is certainly there, and since when it is certainly over."""

    def __init__(self, history: History, rows: Sequence[int]) -> None:
        self._history = history
        done = [row for row in rows if history.outcome[row] != "fail"]
        self._writes = {token(history.value[row]): row for row in done if history.f[row] == "write"}
        deletions = sorted((row for row in done if history.f[row] == "delete"), key=self._end)
        certain = sorted((row for row in self._changes(done) if history.outcome[row] == "ok"), key=self._begin)
        self._deletion_ends = [self._end(row) for row in deletions]
        self._first_deletion = _minima_from([self._begin(row) for row in deletions])
        self._change_begins = [self._begin(row) for row in certain]
        self._certain = certain
        self._first_change = _minima_from([self._end(row) for row in certain])
        self._present = self._presence()

    def _changes(self, rows: Sequence[int]) -> Iterator[int]:
        return (row for row in rows if self._history.f[row] in ("write", "delete"))

    def _begin(self, row: int) -> float:
        return self._history.invoke_index[row]

    def _end(self, row: int) -> float:
        """When it was over; an operation whose outcome is unknown may take effect at any time."""
        return self._history.complete_index[row] if self._history.outcome[row] == "ok" else _NEVER

    def _presence(self) -> tuple[list[float], list[tuple[float, int]]]:
        """Certain writes by when they were over; and beside each the latest end of presence so far, with its write."""
        spans = sorted((self._end(row), self._deleted_from(row), row) for row in self._writes.values())
        latest = accumulate(((until, row) for _, until, row in spans), max)
        return [since for since, _, _ in spans], list(latest)

    def _deleted_from(self, row: int) -> float:
        """The first moment at which a deletion had begun that can come after the write in `row`."""
        return self._first_deletion[bisect_right(self._deletion_ends, self._begin(row))]

    def write_that_must_show(self, scan: int) -> int | None:
        """A write of the key that every order puts before the scan, with no deletion between; None if there is none."""
        since, latest = self._present
        number = bisect_left(since, self._begin(scan)) - 1
        if number < 0:
            return None
        until, row = latest[number]
        return row if until > self._end(scan) else None

    def write_of(self, value: Any) -> int | None:
        """The write that brought `value`; None if there is none that did not fail."""
        return self._writes.get(token(value))

    def change_that_hides(self, write: int, scan: int) -> int | None:
        """A change that every order puts after `write` and before `scan`; None if there is none."""
        first = bisect_right(self._change_begins, self._end(write))
        if self._first_change[first] >= self._begin(scan):
            return None
        return next(row for row in self._certain[first:] if self._end(row) < self._begin(scan))


def _minima_from(values: Sequence[float]) -> list[float]:
    """At each position the least of the values from there on; beyond the end: never."""
    return [*accumulate(reversed(values), min, initial=_NEVER)][::-1]


def _judge_order(conclusion: Conclusion, scans: Sequence[int]) -> None:
    history = conclusion.history
    twice: list[Case] = []
    unordered: list[Case] = []
    outside: list[Case] = []
    for row in scans:
        keys = [key for key, _ in history.result[row]]
        start, end = history.value[row]
        twice += [Case(key, (row,)) for key in dict.fromkeys(keys) if keys.count(key) > 1]
        unordered += [Case(other, (row,)) for one, other in pairwise(keys) if other < one]
        outside += [Case(key, (row,)) for key in keys if key < start or (end is not None and key >= end)]

    def sentence(what: str) -> Callable[[Case], str]:
        return lambda case: f"{client(history, case.rows[0])} {_scanned(history, case.rows[0])} and {what} {case.what}"

    conclusion.accuse("key-twice", twice, sentence("got twice the key"), noun="key")
    conclusion.accuse("out-of-order", unordered, sentence("got after a higher one the key"), noun="key")
    conclusion.accuse("outside-range", outside, sentence("got the key"), noun="key")


def _judge_missing(conclusion: Conclusion, scans: Sequence[int], keys: dict[str, _KeyHistory]) -> None:
    history = conclusion.history
    cases: list[Case] = []
    for row in scans:
        start, end = history.value[row]
        found = {key for key, _ in history.result[row]}
        for key, changes in keys.items():
            if key in found or key < start or (end is not None and key >= end):
                continue
            write = changes.write_that_must_show(row)
            if write is not None:
                cases.append(Case(key, (write, row)))

    def sentence(case: Case) -> str:
        write, scan = case.rows
        return (
            f"{client(history, scan)} {_scanned(history, scan)} and did not find {case.what}, to which"
            f" {client(history, write)} had written {told(history.value[write])}"
        )

    conclusion.accuse("missing-key", cases, sentence, noun="key")


def _judge_values(conclusion: Conclusion, scans: Sequence[int], keys: dict[str, _KeyHistory]) -> None:
    history = conclusion.history
    cases: dict[str, list[Case]] = {"unexpected-value": [], "resurrected-key": [], "stale-value": []}
    for row in scans:
        for key, value in history.result[row]:
            judged = _value_case(history, keys.get(key), key, value, row)
            if judged is not None:
                cases[judged[0]].append(judged[1])
    _accuse_values(conclusion, cases)


def _value_case(
    history: History, changes: _KeyHistory | None, key: str, value: Any, scan: int
) -> tuple[str, Case] | None:
    write = changes.write_of(value) if changes is not None else None
    if changes is None or write is None or history.invoke_index[write] > history.complete_index[scan]:
        return "unexpected-value", Case([key, value], (scan,))
    hides = changes.change_that_hides(write, scan)
    if hides is None:
        return None
    anomaly = "resurrected-key" if history.f[hides] == "delete" else "stale-value"
    return anomaly, Case([key, value], (write, hides, scan))


def _accuse_values(conclusion: Conclusion, cases: dict[str, list[Case]]) -> None:
    history = conclusion.history

    def unexpected(case: Case) -> str:
        (scan,) = case.rows
        return (
            f"{client(history, scan)} {_scanned(history, scan)} and found {told(case.what)}, which nobody had written"
        )

    def hidden(case: Case) -> str:
        _, change, scan = case.rows
        did = "deleted" if history.f[change] == "delete" else f"overwritten with {told(history.value[change])}"
        return (
            f"{client(history, scan)} {_scanned(history, scan)} and found {told(case.what)}, which"
            f" {client(history, change)} had {did} before"
        )

    for anomaly, sentence in (("unexpected-value", unexpected), ("resurrected-key", hidden), ("stale-value", hidden)):
        conclusion.accuse(anomaly, cases[anomaly], sentence, noun="value")


def _scanned(history: History, row: int) -> str:
    start, end = history.value[row]
    return f"scanned from {told(start)} to {'the end' if end is None else told(end)}"
