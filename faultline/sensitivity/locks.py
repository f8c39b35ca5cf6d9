"""Anomalies of leases and guarded resources: `acquire`, which answers a token, and writes under that token.

- `double-grant`, drawn from requests that were refused since another client had the lease: the request is granted,
  with the next token;
- `reused-token`, drawn from acquisitions after another of the same lease: it has the token of the one before;
- `stale-write`, drawn from writes that were refused for their token: the write is accepted behind all others.

The later operations of the second holder stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion

__all__ = ["leases"]

_TAKEN, _STALE = "duplicate-lease", "stale-token"
_WRITES = ("guarded-write", "late-write")


def leases(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of leases that have one owner at a time."""
    history = record.history
    by_key = history.rows_by_key()
    acquired = [row for row in range(len(history)) if history.f[row] == "acquire" and history.outcome[row] == "ok"]
    tokens = {history.result[row]["token"] for row in acquired}

    def changed(row: int, answer: Answer) -> Insertion:
        return Insertion({row: answer}, by_key[history.key[row]])

    def granted(row: int, _chance: int) -> Insertion | None:
        token = _newest(history, _before(history, acquired, row)) + 1
        return None if token == 1 or token in tokens else changed(row, Answer("ok", {"token": token}))

    def reused(row: int, _chance: int) -> Insertion | None:
        token = _newest(history, _before(history, _of_key(history, acquired, row), row))
        return changed(row, Answer("ok", {"token": token})) if token else None

    def accepted(row: int, _chance: int) -> Insertion | None:
        token = _newest(history, _own(history, acquired, row))
        indices = [history.result[other]["index"] for other in by_key[history.key[row]] if _is_accepted(history, other)]
        answer = Answer("ok", {"token": token, "index": max(indices, default=0) + 1})
        return changed(row, answer) if token else None

    refused = [row for row in range(len(history)) if history.error[row] == _TAKEN]
    stale = [row for row in range(len(history)) if history.f[row] in _WRITES and history.error[row] == _STALE]
    return (
        Anomaly("double-grant", refused, granted, "No client asked for a lease that another client had."),
        Anomaly("reused-token", acquired, reused, "No lease was acquired twice."),
        Anomaly("stale-write", stale, accepted, "No write was refused for its token."),
    )


def _before(history: History, rows: Sequence[int], row: int) -> list[int]:
    return [other for other in rows if history.complete_index[other] < history.invoke_index[row]]


def _of_key(history: History, rows: Sequence[int], row: int) -> list[int]:
    return [other for other in rows if history.key[other] == history.key[row]]


def _own(history: History, acquired: Sequence[int], row: int) -> list[int]:
    """Return the acquisitions of the client that writes."""
    own = _before(history, _of_key(history, acquired, row), row)
    return [other for other in own if history.process[other] == history.process[row]]


def _newest(history: History, rows: Sequence[int]) -> int:
    """Return the greatest token of these acquisitions, 0 where there are none."""
    token: int = max((history.result[row]["token"] for row in rows), default=0)
    return token


def _is_accepted(history: History, row: int) -> bool:
    return history.f[row] in _WRITES and history.outcome[row] == "ok" and isinstance(history.result[row], dict)
