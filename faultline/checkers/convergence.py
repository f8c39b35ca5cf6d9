"""Convergence: after the faults are over and some time has passed, all nodes know the same, and each all others.

A read half a second after the heal and the last write must show all of it.

Shape: `write` with a value that no other write of the key has; `read`, what the client's node knows; `view`, the list
of nodes that the client's node takes for up. What counts is the last read of each worker, which stays with its node.

| anomaly          | a read or view                                                                     |
|------------------|------------------------------------------------------------------------------------|
| not-converged    | the last read after the heal differs from another worker's last read                 |
| missing-member   | the last view after the heal lacks a node, and all nodes are up by then               |
| garbage-read, aborted-read, future-read | has a value that cannot have been there (`misreads`)           |

Values may be missing altogether: a node that restarts says only what it knows then. A write without an answer may come
at any time, also between the last reads: a read of its value may differ from reads that began before the news was due.

Sources: Patterns of Distributed Systems ch. 28; eventual consistency is Terry et al., "Managing Update Conflicts in
Bayou" (SOSP 1995).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from faultline.checkers.classic.misreads import accuse_misreads, writers
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import elements, expect_functions
from faultline.checkers.common.words import client, counted, listed, token, told
from faultline.harness.history import OPEN, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Verdict

__all__ = ["ConvergenceChecker"]

_EXPECTED = "`read` and `write` of a value, and `view` that answers the list of nodes that are up."

_NEWS_US = 500_000
"""The time for which news may be on their way: a read earlier after the heal or a write is not judged."""
_NEVER_US = 1 << 62


class ConvergenceChecker:
    """The last reads after the heal agree, and the last views have every node."""

    name = "convergence"

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return the verdict on `history`; of `run` the time of the heal and the names of the nodes are needed."""
        expect_functions(self.name, history, ("read", "write", "view"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        unread: list[str | None] = []
        for key, rows in history.rows_by_key().items():
            last = _last(history, rows, "read", run.healed_us)
            conclusion.counts["compared"] += len(last)
            if len(last) < 2 and any(history.f[row] == "write" and history.outcome[row] == "ok" for row in rows):
                unread.append(key)
            _judge_agreement(conclusion, key, rows, last)
            _judge_values(conclusion, key, rows)
        views = _last(history, range(len(history)), "view", run.healed_us)
        _judge_views(conclusion, views, run.plan.nodes)
        if len(history) and not conclusion.counts["compared"]:
            conclusion.doubt(
                "Nothing was read half a second after the heal and the last write, so it is unknown whether the nodes"
                " agree.",
                Cause.ENDED_EARLY,
            )
        elif unread:
            told_of = f"{counted(len(unread), 'key')} ({listed(unread, len(unread))})"
            conclusion.doubt(
                f"Nothing is known about {told_of}: written, and not read by two clients afterwards.",
                Cause.NOT_READ_OUT,
            )
        result = conclusion.result(
            f"{conclusion.counts['compared']} reads after the heal agree, and {len(views)} views have every node."
        )
        return _of_one_worker(result) if run.plan.workers == 1 else result


def _of_one_worker(result: CheckResult) -> CheckResult:
    """Return the result of a run with one worker: it may find a misread, but compares no two clients."""
    if result.verdict is Verdict.VIOLATION:
        return result
    sentence = "One worker reads through one node, so no two nodes were compared. Run with --workers 2 or more."
    return msgspec.structs.replace(result, verdict=Verdict.VACUOUS, sentence=sentence, reason=None)


def _last(history: History, rows: Sequence[int], f: str, heal_us: int) -> list[int]:
    """Return the last row of `f` of each worker among `rows`, which concern one key or none.

    It counts when it begins some time after the heal, and after the end of the last write among `rows`.
    """
    since_us = heal_us
    for row in rows:
        if f == "read" and history.f[row] == "write":
            since_us = max(since_us, history.complete_us[row] if history.complete_index[row] != OPEN else _NEVER_US)
    last = {history.worker[row]: row for row in rows if history.f[row] == f and history.outcome[row] == "ok"}
    return [row for row in last.values() if history.invoke_us[row] >= since_us + _NEWS_US]


def _judge_agreement(conclusion: Conclusion, key: str | None, rows: Sequence[int], last: Sequence[int]) -> None:
    history = conclusion.history
    late = {token(history.value[row]) for row in rows if history.f[row] == "write" and history.outcome[row] == "info"}
    different = next(
        filter(None, ([(one, row) for row in last if _differ(history, one, row, late)] for one in last)), []
    )
    cases = [Case(token(history.result[row]), (one, row)) for one, row in different]

    def sentence(case: Case) -> str:
        one, other = case.rows
        return (
            f"long after the heal {client(history, one)} read {told(history.result[one])} through {history.node[one]}, "
            f"and {client(history, other)} {told(history.result[other])} through {history.node[other]}"
        )

    conclusion.accuse("not-converged", cases, sentence, noun="read", key=key)


def _differ(history: History, one: int, other: int, late: Collection[Any]) -> bool:
    """Return whether two reads contradict each other, also if the writes of the values `late` came between them."""
    values = token(history.result[one]), token(history.result[other])
    if values[0] == values[1]:
        return False
    return not any(
        value in late and history.invoke_us[before] < history.complete_us[after] + _NEWS_US
        for value, after, before in ((values[0], one, other), (values[1], other, one))
    )


def _judge_values(conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
    history = conclusion.history
    written = writers(history, [row for row in rows if history.f[row] == "write"])
    reads = [row for row in rows if history.f[row] == "read" and history.outcome[row] == "ok"]
    values = [(row, token(history.result[row])) for row in reads if history.result[row] is not None]
    accuse_misreads(conclusion, [(row, value, written.get(value)) for row, value in values], key=key)


def _judge_views(conclusion: Conclusion, views: Sequence[int], nodes: Sequence[str]) -> None:
    history = conclusion.history
    conclusion.counts["views"] += len(views)
    missing = {row: sorted(set(nodes) - set(elements(conclusion.checker, history, row, _EXPECTED))) for row in views}

    def sentence(case: Case) -> str:
        (row,) = case.rows
        return f"long after the heal {history.node[row]} did not take {listed(missing[row])} for up"

    cases = [Case(listed(missing[row]), (row,)) for row in views if missing[row]]
    conclusion.accuse("missing-member", cases, sentence, noun="view")
