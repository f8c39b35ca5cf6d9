"""Naming what went wrong on a register.

Linearizability is one promise, but it is broken in recognisable ways, and a person looks for the cause in a different
place for each. The names and their rules stand in `checkers.anomalies`. Registers have these, told the first that fits:

- the operation that no order explains shows a value that was never written (`garbage-read`), that only operations which
  definitely failed would have written (`aborted-read`), or that was written only later (`future-read`);
- it is a compare-and-set, and another one replaced the same occurrence of the value too (`lost-update`);
- an acknowledged write of the key was lost (`lost-write`; `losses` tells when that is so);
- it was a compare-and-set that was refused although its expected value was there (`refused-cas`);
- it was a read of an old value, or a compare-and-set that succeeded against one (`stale-read`);
- `non-linearizable`: anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from faultline.checkers.linearizability.data_type import Evidence
from faultline.checkers.linearizability.losses import find_loss
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

__all__ = ["classify"]


def classify(
    history: History,
    rows: Sequence[int],
    operations: Sequence[RegisterOperation],
    evidence: Evidence[RegisterOperation],
) -> Evidence[RegisterOperation]:
    """Return `evidence` with the name of its anomaly; `rows` and `operations` are all of its key."""
    refused = evidence.refused
    if refused.kind in (OBSERVE, SWAP):
        unwritten = _unwritten(history, rows, operations, refused)
        if unwritten is not None:
            return replace(evidence, anomaly=unwritten[0], against=unwritten[1])
    if refused.kind == SWAP:
        rival = _latest(other for other in evidence.core if _is_rival(other, refused))
        if rival is not None:
            return replace(evidence, anomaly="lost-update", against=rival.row)
    loss = find_loss(history, operations, refused)
    if loss is not None:
        return replace(evidence, anomaly="lost-write", accused=loss.missed_by.row, against=loss.write.row)
    newer = _latest(other for other in evidence.core if _contradicts(other, refused))
    against = newer.row if newer else None
    if refused.kind == AVOID:
        return replace(evidence, anomaly="refused-cas", against=against)
    return evidence if newer is None else replace(evidence, anomaly="stale-read", against=against)


def _unwritten(
    history: History, rows: Sequence[int], operations: Sequence[RegisterOperation], reader: RegisterOperation
) -> tuple[str, int | None] | None:
    """Return the anomaly of a value that cannot have been written before `reader` saw it, and the row it contradicts.

    None when the value may have been written in time.
    """
    if reader.demand is None:
        return None
    writers = [operation for operation in operations if operation.kind >= WRITE and operation.produce == reader.demand]
    if any(writer.call < reader.return_ for writer in writers):
        return None
    failed = next((row for row in rows if _failed_to_write(history, row, reader.demand)), None)
    if failed is not None:
        return "aborted-read", failed
    return ("future-read", writers[0].row) if writers else ("garbage-read", None)


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
    """Return whether `other` ended before `reader` began and shows that the register held another value by then."""
    if other.row == reader.row or other.return_ >= reader.call or other.kind == AVOID:
        return False
    shown = other.demand if other.kind == OBSERVE else other.produce
    return shown == reader.demand if reader.kind == AVOID else shown != reader.demand


def _latest(operations: Iterable[RegisterOperation]) -> RegisterOperation | None:
    return max(operations, key=lambda operation: (operation.return_, operation.call), default=None)
