"""A register under causal consistency, used by one session after the other (Jepsen's `causal`).

Shape: for each key, `read-init`, `write` of 1, `read`, `write` of 2, `read` …: every operation causally follows the one
before it, because it begins after that has ended, in the same session, or in another one that knew of it. So under
causal consistency each read must see all writes that ended before it began; with none it sees null or 0.

A read that *overlaps* a write may see it or not; an indeterminate write may be seen from its beginning on, by any read.
Values must be unique within a key, so that a read names its write.

The checker does not decide whether a missed write is lost: a causal store may hold it back for any time.

Limit: that operations of different sessions on one key follow one another causally is the workload's promise, which
this history cannot show. With `sessions_only` a read is compared only with operations of its own process, as for keys
that several sessions use at a time. The isolation checker `causal` judges arbitrary transactions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from faultline.checkers.classic.misreads import MISREADS, misread
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import ended, expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

__all__ = ["STALE_READ", "CausalChecker"]

STALE_READ = "stale-read"

_EXPECTED = "`read-init`, `read`, and `write` of values that are unique for their key."
_INITIAL = (None, 0)


class CausalChecker:
    """A checker that each read of a key sees the last of the writes that causally precede it, or a later one."""

    name = "causal-register"

    def __init__(self, *, sessions_only: bool = False) -> None:
        self.sessions_only = sessions_only

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every key of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("read-init", "read", "write"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            self._judge(conclusion, key, rows)
        if not conclusion.counts["reads"]:
            conclusion.doubt(f"No read succeeded among {counted(len(history), 'operation')}, so nothing is known.")
        return conclusion.result(
            f"All {counted(conclusion.counts['reads'], 'read')} see the writes that causally precede them."
        )

    def _judge(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        history = conclusion.history
        writes = self._writes(history, rows)
        cases: dict[str, list[Case]] = {anomaly: [] for anomaly in (STALE_READ, *MISREADS)}
        reads = [row for row in rows if history.f[row] != "write" and history.outcome[row] == "ok"]
        newest = _NewestWrites(history, [row for row in rows if history.f[row] == "write"], self.sessions_only)
        for row in reads:
            anomaly, because = _wrong(history, row, writes, newest.before(row))
            if anomaly:
                cases[anomaly].append(Case(history.result[row], (*because, row)))
        conclusion.counts.update(reads=len(reads), writes=len(writes))
        for anomaly, found in cases.items():
            conclusion.accuse(
                anomaly,
                found,
                partial(_told, history, anomaly=anomaly),
                noun="such read",
                key=key,
            )

    def _writes(self, history: History, rows: Sequence[int]) -> dict[Any, int]:
        writes: dict[Any, int] = {}
        for row in rows:
            if history.f[row] == "write" and writes.setdefault(token(history.value[row]), row) != row:
                problem = f"writes {told(history.value[row])}, which was written to this key before"
                raise wrong_shape(self.name, history, row, problem, _EXPECTED)
        return writes


class _NewestWrites:
    """For each read, the acknowledged write before it that began last: its value must not precede that write."""

    def __init__(self, history: History, writes: Sequence[int], sessions_only: bool) -> None:
        self._history, self._sessions_only = history, sessions_only
        done = [row for row in writes if history.outcome[row] == "ok"]
        self._done = sorted(done, key=history.complete_index.__getitem__)
        self._next = 0
        self._newest: dict[int | None, int] = {}

    def before(self, read: int) -> int | None:
        """Return that write for the read in `row`; the caller asks in order of invocation."""
        history = self._history
        while self._next < len(self._done):
            write = self._done[self._next]
            if history.complete_index[write] > history.invoke_index[read]:
                break
            session = history.process[write] if self._sessions_only else None
            newest = self._newest.get(session, write)
            self._newest[session] = max(newest, write, key=history.invoke_index.__getitem__)
            self._next += 1
        return self._newest.get(history.process[read] if self._sessions_only else None)


def _wrong(
    history: History, read: int, writes: dict[Any, int], newest: int | None
) -> tuple[str | None, tuple[int, ...]]:
    """Return the anomaly of one read, and the rows besides it that show it."""
    seen = token(history.result[read])
    write = writes.get(seen)
    if write is None:
        if seen not in _INITIAL:
            return misread(history, read, None), ()
        return (None, ()) if newest is None else (STALE_READ, (newest,))
    if anomaly := misread(history, read, write):
        return anomaly, (write,)
    precedes = newest is not None and ended(history, write) < history.invoke_index[newest]
    return (STALE_READ, (write, newest)) if precedes and newest is not None else (None, ())


def _told(history: History, case: Case, anomaly: str) -> str:
    reader = f"{client(history, case.rows[-1])} read {told(case.what)}"
    if anomaly == STALE_READ:
        newest = case.rows[-2]
        return f"{reader} although {told(history.value[newest])} had been written by then, causally before the read"
    return f"{reader}, {MISREADS[anomaly]}"
