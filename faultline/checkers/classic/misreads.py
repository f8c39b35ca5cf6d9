"""Reads of impossible values: the one of three anomalies that happened, and the sentence for it.

Every checker that knows the writer of a value uses this module, so that an anomaly has the same name in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import ended
from faultline.checkers.common.words import client, token, told
from faultline.harness.history import History

__all__ = ["MISREADS", "accuse_misreads", "misread", "writers"]

MISREADS = {
    "garbage-read": "which was never written",
    "aborted-read": "whose write had definitely failed",
    "future-read": "whose write had not begun",
}
"""The clause about the value, for each anomaly."""


def misread(history: History, read: int, write: int | None) -> str | None:
    """Return the anomaly of a `read` that shows the value of `write`, or None; a `write` of None was never made."""
    if write is None:
        return "garbage-read"
    if history.outcome[write] == "fail":
        return "aborted-read"
    return "future-read" if history.invoke_index[write] > ended(history, read) else None


def writers(history: History, rows: Iterable[int]) -> dict[Any, int]:
    """Return, for the value of each operation in `rows`, the operation that explains a read of it best.

    That is the first one that may have taken effect, else the first of all. A client that retries writes a value more
    than once, and each attempt may be the one that a reader saw.
    """
    found: dict[Any, int] = {}
    for row in rows:
        known = found.setdefault(token(history.value[row]), row)
        if history.outcome[known] == "fail" and history.outcome[row] != "fail":
            found[token(history.value[row])] = row
    return found


def accuse_misreads(
    conclusion: Conclusion,
    seen: Iterable[tuple[int, Any, int | None]],
    *,
    key: str | None = None,
    did: str = "read",
    noun: str = "read",
) -> None:
    """Report those of `seen` – the row of a read, a value in it, the row that wrote it – that are impossible."""
    cases: dict[str, list[Case]] = {anomaly: [] for anomaly in MISREADS}
    for read, value, write in seen:
        anomaly = misread(conclusion.history, read, write)
        if anomaly is not None:
            cases[anomaly].append(Case(value, (read,) if write is None else (write, read)))
    for anomaly, found in cases.items():
        sentence = partial(_told, conclusion.history, did, MISREADS[anomaly])
        conclusion.accuse(anomaly, found, sentence, noun=noun, key=key)


def _told(history: History, did: str, why: str, case: Case) -> str:
    return f"{client(history, case.rows[-1])} {did} {told(case.what)}, {why}"
