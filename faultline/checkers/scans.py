"""Scans: a read of a range of keys has everything that was there throughout, once, in order, and nothing else.

Shape: `write` of a key with a value that no other write of the key has; `delete` of a key; `scan`, whose value is
`[start, end]` (null for no end) and whose result is a list of `[key, value]`. A scan takes its time and is no snapshot:
what changes while it goes on it may show before or after, each key for itself.

| anomaly          | a scan                                                                                 |
|------------------|----------------------------------------------------------------------------------------|
| lost-write       | lacks a key that was written before it began and not deleted before it ended, or        |
|                  | has a value that was overwritten, and no later scan has that key as it was written     |
| missing-key      | lacks such a key, and a later scan has it                                               |
| duplicated-key   | has a key twice                                                                        |
| out-of-order     | has a key after a higher one                                                           |
| outside-range    | has a key that it did not ask for                                                      |
| resurrected-key  | has a value that was deleted, for good, before the scan began                          |
| stale-read       | has a value that was overwritten, for good, before the scan began                      |
| garbage-read, aborted-read, future-read | has a value that cannot have been there (`misreads`)            |

Each is judged by what must be so in *every* order of the operations that real time permits; an unknown outcome accuses
no scan. That makes it weaker than a search for one order of everything, and it needs no search. It does not see that
two scans contradict each other while each by itself is possible.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from faultline.checkers.classic.misreads import accuse_misreads, misread, writers
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, listed, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

__all__ = ["ScansChecker"]

_EXPECTED = "`write` and `delete` of a key, and `scan` of [start, end] that answers [[key, value], …]."
_NEVER = float("inf")


class ScansChecker:
    """Every scan that succeeded, compared with the writes and deletions around it."""

    name = "scans"

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on `history`; `run` is not needed."""
        expect_functions(self.name, history, ("write", "delete", "scan"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        scans = [row for row in range(len(history)) if history.f[row] == "scan" and history.outcome[row] == "ok"]
        for row in scans:
            _expect_scan(history, row)
        rows_by_key = {key: rows for key, rows in history.rows_by_key().items() if key is not None}
        keys = {key: _KeyHistory(history, rows) for key, rows in rows_by_key.items()}
        conclusion.counts["scans"] = len(scans)
        conclusion.counts["keys"] = sum(len(history.result[row]) for row in scans)
        _judge_order(conclusion, scans)
        _judge_keys(conclusion, scans, keys)
        _doubt_unread(conclusion, scans, rows_by_key)
        return conclusion.result(f"{len(scans)} scans had what was there, {conclusion.counts['keys']} keys in all.")


def _expect_scan(history: History, row: int) -> None:
    """Raise `UsageError` unless the operation in `row` asked for a range and answered pairs of key and value."""
    asked, found = history.value[row], history.result[row]
    is_range = isinstance(asked, list | tuple) and len(asked) == 2
    is_answer = isinstance(found, list | tuple) and all(isinstance(m, list | tuple) and len(m) == 2 for m in found)
    if not (is_range and is_answer):
        problem = f"asked for {told(asked)} and answered {told(found)}"
        raise wrong_shape(ScansChecker.name, history, row, problem, _EXPECTED)


def _doubt_unread(conclusion: Conclusion, scans: Sequence[int], rows_by_key: Mapping[str, Sequence[int]]) -> None:
    """Doubt the keys with an acknowledged change that no successful scan asked for."""
    history = conclusion.history
    if not scans:
        conclusion.doubt("No scan succeeded, so nothing is known about scans.")
        return
    ranges = {(start, end) for start, end in map(history.value.__getitem__, scans)}
    unread = [
        key
        for key, rows in rows_by_key.items()
        if any(history.outcome[row] == "ok" for row in rows)
        and not any(start <= key and (end is None or key < end) for start, end in ranges)
    ]
    if unread:
        told_of = f"{counted(len(unread), 'key')} ({listed(unread, len(unread))})"
        conclusion.doubt(f"Nothing is known about {told_of}: changed, and in no scan's range.", Cause.NOT_READ_OUT)


class _KeyHistory:
    """The writes of one key: when each is certainly there, and since when it is certainly over."""

    def __init__(self, history: History, rows: Sequence[int]) -> None:
        self._history = history
        done = [row for row in rows if history.outcome[row] != "fail"]
        writes = [row for row in rows if history.f[row] == "write"]
        self._writes = [row for row in writes if history.outcome[row] != "fail"]
        self._writers = writers(history, writes)
        written = Counter(token(history.value[row]) for row in writes)
        self._repeated = {value for value, times in written.items() if times > 1}
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
        """Return the end of the operation in `row`; one whose outcome is unknown may take effect at any time."""
        return self._history.complete_index[row] if self._history.outcome[row] == "ok" else _NEVER

    def _presence(self) -> tuple[list[float], list[tuple[float, int]]]:
        """Return the sorted ends of certain writes, and for each the latest end of presence so far, with its write."""
        spans = sorted((self._end(row), self._deleted_from(row), row) for row in self._writes)
        latest = accumulate(((until, row) for _, until, row in spans), max)
        return [since for since, _, _ in spans], list(latest)

    def _deleted_from(self, row: int) -> float:
        """Return the first moment at which a deletion had begun that can come after the write in `row`."""
        return self._first_deletion[bisect_right(self._deletion_ends, self._begin(row))]

    def write_that_must_show(self, scan: int) -> int | None:
        """Return a write that every order puts before the scan, with no deletion between; None if there is none."""
        since, latest = self._present
        number = bisect_left(since, self._begin(scan)) - 1
        if number < 0:
            return None
        until, row = latest[number]
        return row if until > self._end(scan) else None

    def write_of(self, value: Any) -> int | None:
        """Return the write of `value`, also one that failed; None if there is none."""
        return self._writers.get(token(value))

    def is_repeated(self, value: Any) -> bool:
        """Return whether several operations write `value`, so that a read does not tell which of them it shows."""
        return token(value) in self._repeated

    def change_that_hides(self, write: int, scan: int) -> int | None:
        """Return a change that every order puts after `write` and before `scan`; None if there is none."""
        first = bisect_right(self._change_begins, self._end(write))
        if self._first_change[first] >= self._begin(scan):
            return None
        return next(row for row in self._certain[first:] if self._end(row) < self._begin(scan))


def _minima_from(values: Sequence[float]) -> list[float]:
    """Return, for each position, the least of the values from there on; `_NEVER` beyond the end."""
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

    conclusion.accuse("duplicated-key", twice, sentence("got twice the key"), noun="key")
    conclusion.accuse("out-of-order", unordered, sentence("got after a higher one the key"), noun="key")
    conclusion.accuse("outside-range", outside, sentence("got the key"), noun="key")


def _judge_keys(conclusion: Conclusion, scans: Sequence[int], keys: dict[str, _KeyHistory]) -> None:
    """Accuse absences and values; which of them are losses is known when all scans are."""
    history = conclusion.history
    hidden: list[tuple[str, Case]] = []
    shown: list[tuple[int, Any, int | None]] = []
    seen_until: dict[str, int] = {}
    ambiguous: dict[str, Any] = {}
    for row in scans:
        for key, value in history.result[row]:
            write = keys[key].write_of(value) if key in keys else None
            shown.append((row, [key, value], write))
            if misread(history, row, write) is not None or write is None:
                continue
            if keys[key].is_repeated(value):
                ambiguous[key] = value
                continue
            hides = keys[key].change_that_hides(write, row)
            if hides is None:
                seen_until[key] = max(seen_until.get(key, -1), history.complete_index[row])
            else:
                hidden.append((key, Case([key, value], (write, hides, row))))
    for key, value in ambiguous.items():
        conclusion.doubt(f"{told(value)} was written to {key} twice; it tells nothing.", Cause.REPEATED_VALUES)
    _accuse_absences(conclusion, list(_absences(history, scans, keys)), seen_until)
    accuse_misreads(conclusion, shown, did="found", noun="value")
    _accuse_hidden(conclusion, hidden, seen_until)


def _absences(history: History, scans: Sequence[int], keys: dict[str, _KeyHistory]) -> Iterator[Case]:
    """Yield the keys that each scan lacks, each with the write that must show."""
    for row in scans:
        start, end = history.value[row]
        found = {key for key, _ in history.result[row]}
        for key, changes in keys.items():
            if key in found or key < start or (end is not None and key >= end):
                continue
            write = changes.write_that_must_show(row)
            if write is not None:
                yield Case(key, (write, row))


def _accuse_absences(conclusion: Conclusion, absences: Sequence[Case], seen_until: dict[str, int]) -> None:
    history = conclusion.history

    def sentence(case: Case) -> str:
        write, scan = case.rows
        return (
            f"{client(history, scan)} {_scanned(history, scan)} and did not find {case.what}, to which"
            f" {client(history, write)} had written {told(history.value[write])}"
        )

    cases: dict[str, list[Case]] = {"lost-write": [], "missing-key": []}
    for case in absences:
        cases["lost-write" if _is_for_good(history, case, case.what, seen_until) else "missing-key"].append(case)
    for anomaly, found in cases.items():
        conclusion.accuse(anomaly, found, sentence, noun="key")


def _accuse_hidden(conclusion: Conclusion, hidden: Sequence[tuple[str, Case]], seen_until: dict[str, int]) -> None:
    history = conclusion.history

    def sentence(case: Case) -> str:
        _, change, scan = case.rows
        did = "deleted" if history.f[change] == "delete" else f"overwritten with {told(history.value[change])}"
        return (
            f"{client(history, scan)} {_scanned(history, scan)} and found {told(case.what)}, which"
            f" {client(history, change)} had {did} before"
        )

    cases: dict[str, list[Case]] = {"lost-write": [], "resurrected-key": [], "stale-read": []}
    for key, case in hidden:
        is_lost = _is_for_good(history, case, key, seen_until)
        overwritten = "lost-write" if is_lost else "stale-read"
        cases["resurrected-key" if history.f[case.rows[1]] == "delete" else overwritten].append(case)
    for anomaly, found in cases.items():
        conclusion.accuse(anomaly, found, sentence, noun="value")


def _is_for_good(history: History, case: Case, key: str, seen_until: dict[str, int]) -> bool:
    """Return whether every scan that showed `key` as it should be had ended when the scan of `case` began."""
    return history.invoke_index[case.rows[-1]] > seen_until.get(key, -1)


def _scanned(history: History, row: int) -> str:
    start, end = history.value[row]
    return f"scanned from {told(start)} to {'the end' if end is None else told(end)}"
