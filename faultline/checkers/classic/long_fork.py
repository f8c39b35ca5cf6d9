"""Long forks: two reads that see two writes in opposite orders (Jepsen's `long-fork`).

Shape: `write` with one micro-operation `[["w", k, v]]`, each key written at most once; `read` with a list of them,
`[["r", k, null], …]`, whose result has the values. Either may be called `txn`. Reads come in *groups*: each key
belongs to one group, and a read reads all of its group.

Under snapshot isolation and everything stronger, two reads of a group must be comparable: one of them sees all writes
that the other does. A read that sees the write of x and not that of y, and another that sees y and not x, is a *long
fork*, which parallel snapshot isolation allows (Sovran et al., SOSP 2011).

The reads of a group are all comparable if and only if, put in order of how many writes they see, neighbours are. So
n reads take O(n log n) comparisons, where comparing all pairs takes n².
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, micro_operations, wrong_shape
from faultline.checkers.common.words import client, counted, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.forks import IncrementalLongForks

__all__ = ["LONG_FORK", "LongForkChecker"]

LONG_FORK = "long-fork"

_EXPECTED = "`write` of [[w, k, v]], each key once, and `read` of [[r, k, null], …], whole groups of keys."

_Seen = dict[Any, Any]


class LongForkChecker:
    """A checker that all reads of a group of keys see the writes in one order."""

    name = "long-fork"

    def incremental(self) -> IncrementalLongForks:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.forks import IncrementalLongForks

        return IncrementalLongForks()

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every group of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("read", "write", "txn"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        writes: dict[Any, int] = {}
        values: dict[Any, Any] = {}
        reads: dict[int, _Seen] = {}
        for row in range(len(history)):
            self._take(history, row, writes, values, reads)
        self._judge_values(conclusion, reads, writes, values)
        groups = self._groups(history, reads)
        conclusion.counts.update(reads=len(reads), writes=len(writes), groups=len(groups))
        forks = [fork for members in groups.values() for fork in _forks(members, reads)]
        conclusion.accuse(LONG_FORK, forks, lambda case: _told_fork(history, case, reads), noun="fork")
        if not reads:
            conclusion.doubt(f"No read succeeded among {counted(len(history), 'operation')}, so nothing is known.")
        elif not any(len(members) > 1 for members in groups.values()):
            conclusion.doubt("No group of keys was read twice, so there were no two reads to compare.")
        return conclusion.result(
            f"All {counted(len(reads), 'read')} of {counted(len(groups), 'group')} of keys agree on one order."
        )

    def _take(
        self, history: History, row: int, writes: dict[Any, int], values: dict[Any, Any], reads: dict[int, _Seen]
    ) -> None:
        is_ok = history.outcome[row] == "ok"
        answered = is_ok and history.result[row] is not None
        told_by = history.result[row] if answered else history.value[row]
        micro = micro_operations(self.name, history, row, told_by, _EXPECTED)
        if micro and all(f == "r" for f, _, _ in micro):
            if is_ok:
                reads[row] = {token(key): token(value) for _, key, value in micro}
        elif len(micro) == 1 and micro[0][0] == "w":
            _, key, value = micro[0]
            if token(key) in writes:
                raise wrong_shape(self.name, history, row, f"writes key {told(key)} a second time", _EXPECTED)
            writes[token(key)], values[token(key)] = row, token(value)
        else:
            raise wrong_shape(self.name, history, row, "neither writes one key nor reads only", _EXPECTED)

    def _judge_values(
        self, conclusion: Conclusion, reads: dict[int, _Seen], writes: dict[Any, int], values: dict[Any, Any]
    ) -> None:
        """Report values that were not written, or that differ between reads of keys without a write in the history."""
        history = conclusion.history
        wrong = []
        for row, seen in reads.items():
            for key, value in seen.items():
                if value is not None and values.setdefault(key, value) != value:
                    if key not in writes:
                        problem = f"read {told(value)} from key {told(key)}, where another read saw another value"
                        raise wrong_shape(self.name, history, row, problem, _EXPECTED)
                    wrong.append(Case(value, (writes[key], row)))
        conclusion.accuse(
            "garbage-read",
            wrong,
            lambda case: (
                f"{client(history, case.rows[-1])} read {told(case.what)}, which was never written to that key"
            ),
            noun="garbage read",
        )

    def _groups(self, history: History, reads: dict[int, _Seen]) -> dict[frozenset[Any], list[int]]:
        groups: dict[frozenset[Any], list[int]] = {}
        group_of: dict[Any, frozenset[Any]] = {}
        for row, seen in reads.items():
            group = frozenset(seen)
            if any(group_of.setdefault(key, group) != group for key in seen):
                raise wrong_shape(self.name, history, row, "reads only part of a group of keys", _EXPECTED)
            groups.setdefault(group, []).append(row)
        return groups


def _forks(rows: Sequence[int], reads: dict[int, _Seen]) -> list[Case]:
    """Report neighbours that are not comparable, among the reads of a group in order of the number of writes they
    see."""
    sights = {row: frozenset(key for key, value in reads[row].items() if value is not None) for row in rows}
    ordered = sorted(rows, key=lambda row: len(sights[row]))
    return [
        Case(min(sights[first] - sights[second], key=str), (first, second))
        for first, second in pairwise(ordered)
        if not sights[first] <= sights[second]
    ]


def _told_fork(history: History, case: Case, reads: dict[int, _Seen]) -> str:
    first, second = case.rows
    other = next(key for key, value in reads[second].items() if value is not None and reads[first][key] is None)
    return (
        f"{client(history, first)} saw the write of {told(case.what)} but not that of {told(other)}, and "
        f"{client(history, second)} saw {told(other)} but not {told(case.what)}: no one order of the writes allows both"
    )
