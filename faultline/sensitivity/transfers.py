"""Anomalies of accounts: `transfer` of an amount from one to another, and reads of all balances (`bank`, `transfer`).

- `lost-write`, drawn from acknowledged transfers × moments after that: later reads lack both of its halves;
- `half-transaction`, drawn from the same: later reads lack the amount that arrives;
- `duplicate-write`, drawn from the same: later reads have it twice;
- `fractured-read`, drawn from reads that began after a transfer had been acknowledged: the read lacks the
  amount that the last such transfer brings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import Moments, drawn

__all__ = ["accounts"]

_READS = ("read", "balances")
_NO_MOMENT = "No transfer had been acknowledged when a fault began or ended."


class _Transfer(NamedTuple):
    """An acknowledged transfer, and the moments after its acknowledgement."""

    row: int
    moments: Sequence[int]


def accounts(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of accounts whose balances are read at once."""
    history, moments = record.history, Moments(record.history)
    done = [row for row in range(len(history)) if history.f[row] == "transfer" and history.outcome[row] == "ok"]
    reads = [row for row in range(len(history)) if _is_read(history, row)]
    places = [_Transfer(row, due) for row in done if (due := moments.between(history.complete_index[row]))]

    def from_a_moment(change: Callable[[Mapping[str, Any]], dict[str, int]]) -> Callable[[_Transfer, int], Insertion]:
        def insert(place: _Transfer, chance: int) -> Insertion:
            moment, by = drawn(place.moments, chance), change(history.value[place.row])
            changes = {row: _moved(history, row, by) for row in reads if history.invoke_index[row] > moment}
            return Insertion(changes, range(len(history)))

        return insert

    def fractured(row: int, _chance: int) -> Insertion | None:
        last = max(_before(history, done, row), key=history.complete_index.__getitem__, default=None)
        if last is None:
            return None
        return Insertion({row: _moved(history, row, _half(history.value[last]))}, range(len(history)))

    return (
        Anomaly("lost-write", places, from_a_moment(_undone), _NO_MOMENT),
        Anomaly("half-transaction", places, from_a_moment(_half), _NO_MOMENT),
        Anomaly("duplicate-write", places, from_a_moment(_twice), _NO_MOMENT),
        Anomaly("fractured-read", reads, fractured, "No read began after a transfer had been acknowledged."),
    )


def _is_read(history: History, row: int) -> bool:
    return history.f[row] in _READS and history.outcome[row] == "ok" and isinstance(history.result[row], dict)


def _before(history: History, done: Sequence[int], read: int) -> list[int]:
    """Return the transfers that had been acknowledged before the read began, and whose target it has."""
    return [
        row
        for row in done
        if history.complete_index[row] < history.invoke_index[read]
        and history.result[read].get(history.value[row]["to"]) is not None
    ]


def _half(transfer: Mapping[str, Any]) -> dict[str, int]:
    return {transfer["to"]: -transfer["amount"]}


def _undone(transfer: Mapping[str, Any]) -> dict[str, int]:
    return {transfer["from"]: transfer["amount"], transfer["to"]: -transfer["amount"]}


def _twice(transfer: Mapping[str, Any]) -> dict[str, int]:
    return {transfer["from"]: -transfer["amount"], transfer["to"]: transfer["amount"]}


def _moved(history: History, row: int, by: Mapping[str, int]) -> Answer:
    """Return the balances in `row` with `by` added; an unused account stays unused."""
    balances = {
        account: balance if balance is None else balance + by.get(account, 0)
        for account, balance in history.result[row].items()
    }
    return Answer("ok", balances)
