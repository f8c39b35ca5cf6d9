"""The parts of a run that are shown of an anomaly: its operations, the messages by cause, and the contributing faults.

Pages, figures, terminal and tickets all show this same selection. When there are too many operations, those nearest in
time to the moment the anomaly became visible are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from faultline.harness.history import OPEN, History, Row
from faultline.harness.judgement import visible_us
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Finding
from faultline.reports.fault_choice import FaultChoice, Needed, choose_faults
from faultline.reports.message_choice import MESSAGES_MAX, Anomaly, MessageChoice, choose_messages

__all__ = ["MOST_OPERATIONS", "Shown", "shown_of", "shown_rows"]

MOST_OPERATIONS = 40
_AROUND_A_BREACH = 4
_BEFORE_A_BREACH_US = 1_000_000
"""The time that is shown before a broken invariant when the run has no operation at all: elections need none."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The shown parts of an anomaly: `telling` is the row that revealed it, `moment_us` the time it became visible."""

    rows: tuple[Row, ...]
    telling: int | None
    moment_us: int
    start_us: int
    stop_us: int
    messages: MessageChoice
    faults: FaultChoice
    nodes: tuple[str, ...]


def shown_of(
    record: RunRecord,
    finding: Finding,
    *,
    operations_max: int = MOST_OPERATIONS,
    messages_max: int = MESSAGES_MAX,
    needed: Needed | None = None,
) -> Shown:
    """Return the shown parts of `finding`; `needed` are the faults that it is known to need.

    Without room for messages (`messages_max` is 0) none are searched.
    """
    rows = _rows_of(finding, record.history, operations_max)
    moment_us = visible_us(finding, record.history)
    telling = _telling_row(finding, record.history, rows)
    node = None if finding.operations else finding.node
    return shown_rows(
        record, rows, moment_us, telling=telling, node=node, key=finding.key, messages_max=messages_max, needed=needed
    )


def shown_rows(
    record: RunRecord,
    rows: Sequence[int],
    moment_us: int = 0,
    *,
    telling: int | None = None,
    node: str | None = None,
    key: str | None = None,
    messages_max: int = MESSAGES_MAX,
    needed: Needed | None = None,
) -> Shown:
    """Return the operations in `rows` with their context; `node` is the node that broke a promise at `moment_us`."""
    chosen = tuple(map(record.history.row, rows))
    start_us, stop_us = _window(chosen, moment_us)
    anomaly = Anomaly(chosen, start_us, stop_us, moment_us, node, key)
    messages = (
        choose_messages(record.messages, record.plan.nodes, anomaly, messages_max, exact=record.world == "simulated")
        if (chosen or node) and messages_max
        else MessageChoice()
    )
    faults = choose_faults(record, chosen, start_us, stop_us, needed)
    return Shown(chosen, telling, moment_us, start_us, stop_us, messages, faults, record.plan.nodes)


def _rows_of(finding: Finding, history: History, limit: int) -> list[int]:
    """Return the operations to be shown for `finding`, in order of invocation.

    They are its own operations when it names some, else (an invariant broke inside a node) those in flight then.
    """
    moment_us = visible_us(finding, history)
    named = sorted({row for row in finding.operations if 0 <= row < len(history)})
    if named:
        return named if len(named) <= limit else _nearest(named, history, moment_us, limit)
    candidates = [row for row in range(len(history)) if finding.key is None or history.key[row] == finding.key]
    return _nearest(candidates, history, moment_us, min(limit, _AROUND_A_BREACH))


def _nearest(rows: Sequence[int], history: History, moment_us: int, limit: int) -> list[int]:
    def distance(row: int) -> tuple[int, int, int]:
        start, stop = history.invoke_us[row], history.complete_us[row]
        still_open = history.complete_index[row] == OPEN
        after = 0 if still_open else max(0, moment_us - stop)
        return max(start - moment_us, after, 0), abs(start - moment_us), row

    return sorted(sorted(rows, key=distance)[:limit])


def _telling_row(finding: Finding, history: History, rows: Sequence[int]) -> int | None:
    """Return the operation that revealed the anomaly: the one that completed at its moment, else the last to complete.

    Return None for a cycle of transactions, as each of them alone could be right.
    """
    if not finding.operations or not rows or finding.detail.get("edges"):
        return None
    at_moment = [row for row in rows if history.complete_us[row] == finding.time_us and finding.time_us]
    return at_moment[-1] if at_moment else max(rows, key=lambda row: (history.complete_index[row], row))


def _window(rows: Sequence[Row], moment_us: int) -> tuple[int, int]:
    """Return the time that the operations span, including the moment of the anomaly when it is known; without
    operations, a while before it."""
    if not rows:
        return max(0, moment_us - _BEFORE_A_BREACH_US), moment_us
    starts = [row.invoke_us for row in rows]
    stops = [row.complete_us for row in rows if row.complete_index != OPEN]
    moments = [*starts, *stops, *([moment_us] if moment_us else [])]
    return min(moments), max(moments)
