"""Naming what went wrong on a register.

Linearizability is one promise, but it is broken in recognisable ways, and a person looks for the cause in a different
place for each. The names are stable; campaigns group violations by them:

| name              | what was seen                                                                                 |
|-------------------|-----------------------------------------------------------------------------------------------|
| `phantom-read`    | a value that nobody ever wrote                                                                |
| `dirty-read`      | a value that only operations which definitely failed would have written                       |
| `future-read`     | a value before anybody had begun to write it                                                  |
| `double-cas`      | two compare-and-sets that both replaced the same occurrence of a value                        |
| `lost-update`     | an acknowledged write that no later reader, on two nodes at least, ever sees                  |
| `lost-cas`        | the same for an acknowledged compare-and-set                                                  |
| `stale-read`      | an old value, although a newer one had been acknowledged or read                              |
| `stale-cas`       | a compare-and-set that succeeded against such an old value                                    |
| `refused-cas`     | a compare-and-set that was refused although its expected value was there                      |
| `non-linearizable`| anything else                                                                                 |

A lost write first shows as a stale read, so the stronger name is given only when the whole history supports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from faultline.checkers.linearizability.evidence import RegisterEvidence
from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
    Value,
    canonical,
)
from faultline.harness.history import History

__all__ = ["ANOMALIES", "Anomaly", "classify"]

ANOMALIES = (
    "phantom-read",
    "dirty-read",
    "future-read",
    "double-cas",
    "lost-update",
    "lost-cas",
    "stale-read",
    "stale-cas",
    "refused-cas",
    "non-linearizable",
)


class Anomaly(NamedTuple):
    """A name, the row of the operation that shows it, and the row it contradicts (None when there is none to name)."""

    name: str
    accused: int
    against: int | None = None


def classify(
    history: History,
    rows: Sequence[int],
    operations: Sequence[RegisterOperation],
    evidence: RegisterEvidence,
) -> Anomaly:
    """The name of the anomaly that `evidence` proves; `rows` and `operations` are all of its key."""
    refused = evidence.refused
    if refused.kind in (OBSERVE, SWAP):
        unwritten = _unwritten(history, rows, operations, refused)
        if unwritten is not None:
            return unwritten
    if refused.kind == SWAP:
        rival = _latest(other for other in evidence.core if _is_rival(other, refused))
        if rival is not None:
            return Anomaly("double-cas", refused.row, rival.row)
    newer = _latest(other for other in evidence.core if _contradicts(other, refused))
    if refused.kind == AVOID:
        return Anomaly("refused-cas", refused.row, newer.row if newer else None)
    if newer is None:
        return Anomaly("non-linearizable", refused.row)
    if newer.kind in (WRITE, SWAP) and _is_lost(history, operations, newer):
        return Anomaly("lost-cas" if newer.kind == SWAP else "lost-update", refused.row, newer.row)
    return Anomaly("stale-cas" if refused.kind == SWAP else "stale-read", refused.row, newer.row)


def _unwritten(
    history: History, rows: Sequence[int], operations: Sequence[RegisterOperation], reader: RegisterOperation
) -> Anomaly | None:
    """The anomaly of a value that nobody can have written before it was seen, if `reader` saw one."""
    if reader.demand is None:
        return None
    writers = [operation for operation in operations if operation.kind >= WRITE and operation.produce == reader.demand]
    if any(writer.call < reader.return_ for writer in writers):
        return None
    failed = next((row for row in rows if _failed_to_write(history, row, reader.demand)), None)
    if failed is not None:
        return Anomaly("dirty-read", reader.row, failed)
    if writers:
        return Anomaly("future-read", reader.row, writers[0].row)
    return Anomaly("phantom-read", reader.row)


def _failed_to_write(history: History, row: int, value: Value) -> bool:
    if history.outcome[row] != "fail" or history.f[row] not in ("write", "cas"):
        return False
    written = history.value[row]
    if history.f[row] == "cas":
        written = written[1] if isinstance(written, (list, tuple)) and len(written) == 2 else None
    return canonical(written) == value


def _is_rival(other: RegisterOperation, swap: RegisterOperation) -> bool:
    return other.kind == SWAP and other.row != swap.row and other.demand == swap.demand and other.return_ != INFINITY


def _contradicts(other: RegisterOperation, reader: RegisterOperation) -> bool:
    """Whether `other` ended before `reader` began and shows that the register held another value by then."""
    if other.row == reader.row or other.return_ >= reader.call or other.kind == AVOID:
        return False
    shown = other.demand if other.kind == OBSERVE else other.produce
    return shown == reader.demand if reader.kind == AVOID else shown != reader.demand


def _latest(operations: Iterable[RegisterOperation]) -> RegisterOperation | None:
    return max(operations, key=lambda operation: (operation.return_, operation.call), default=None)


def _is_lost(history: History, operations: Sequence[RegisterOperation], write: RegisterOperation) -> bool:
    """Whether nobody who looked after `write` was acknowledged ever saw it, and enough saw what was there before it.

    Enough are two processes at two nodes, before the next write: one node alone may just be behind. Who saw the value
    of a write that overlaps tells nothing, as that one may have come second.
    """
    after = [operation for operation in operations if operation.call > write.return_]
    observers = [operation for operation in after if operation.kind in (OBSERVE, SWAP)]
    if any(observer.demand == write.produce for observer in observers):
        return False
    next_write = min((operation.call for operation in after if operation.kind >= WRITE), default=INFINITY)
    invoked = history.invoke_index[write.row]
    may_follow = {each.produce for each in operations if each.kind >= WRITE and each.return_ >= invoked}
    early = [each.row for each in observers if each.call <= next_write and each.demand not in may_follow]
    nodes = {history.node[row] for row in early}
    processes = {history.process[row] for row in early}
    return len(nodes) > 1 and len(processes) > 1
