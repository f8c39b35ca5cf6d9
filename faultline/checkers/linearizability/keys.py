"""What is said about one key: its verdict, how far the search came, and what is behind that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from faultline.checkers.linearizability.operations import INFINITY
from faultline.harness.history import History
from faultline.harness.verdict import Finding, Verdict

__all__ = ["CHECKER", "KeyJudgement", "Undecided", "core_rows", "key_judgement"]

CHECKER = "linearizability"
"""The name under which findings are reported."""


class Undecided(msgspec.Struct, frozen=True, kw_only=True):
    """One key that was not decided; operations are rows of the history.

    `order` is the longest order found and `state` what it leads to; `stuck` the operation that returns next, None when
    there is none; `open` were under way when it returned and are not in `order`. Behind `beginning` the
    operations in `ruled_out` need not be tried.
    """

    key: str | None
    sentence: str
    completed: int
    placed: int
    steps: int
    order: tuple[int, ...]
    state: Any = None
    stuck: int | None = None
    open: tuple[int, ...] = ()
    beginning: tuple[int, ...] = ()
    ruled_out: tuple[int, ...] = ()


class KeyJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one key: `placed` of `completed` operations could be put in order, in `steps` steps of search."""

    key: str | None
    verdict: Verdict
    completed: int
    placed: int
    steps: int
    finding: Finding | None = None
    undecided: Undecided | None = None


def key_judgement(
    key: str | None, verdict: Verdict, returns: Iterable[int], placed: int, steps: int, finding: Finding | None = None
) -> KeyJudgement:
    """A judgement of the key whose operations return at `returns`."""
    completed = sum(return_ != INFINITY for return_ in returns)
    return KeyJudgement(key=key, verdict=verdict, completed=completed, placed=placed, steps=steps, finding=finding)


def core_rows(history: History, rows: Sequence[int], roles: dict[int, str]) -> list[dict[str, Any]]:
    """The operations of a core as plain data, in order of invocation, each with its role in the argument."""
    return [
        {
            "row": row,
            "role": roles.get(row, "context"),
            "process": history.process[row],
            "node": history.node[row],
            "f": history.f[row],
            "key": history.key[row],
            "value": history.value[row],
            "outcome": history.outcome[row],
            "result": history.result[row],
            "error": history.error[row],
            "invoke_us": history.invoke_us[row],
            "complete_us": history.complete_us[row],
        }
        for row in rows
    ]
