"""What of a run is shown beside an anomaly: always what lies around it, never the first n.

A figure that draws the first thousand operations of a run shows a calm beginning and hides the anomaly at the end.
Here everything that has to be capped is ordered by its distance in time from the moment the anomaly became visible.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from faultline.harness.history import OPEN, History, Row
from faultline.harness.run_record import FaultInterval, MessageRecord, RunRecord
from faultline.harness.verdict import Finding

__all__ = [
    "MOST_FAULTS",
    "MOST_MESSAGES",
    "MOST_OPERATIONS",
    "anomaly_us",
    "faults_during",
    "messages_during",
    "rows_of",
    "settled_faults",
    "telling_row",
    "window",
]

MOST_OPERATIONS = 40
MOST_MESSAGES = 120
MOST_FAULTS = 12
_AROUND_A_BREACH = 8


def anomaly_us(finding: Finding, history: History) -> int:
    """When the anomaly became visible: as the finding says, else when the last of its operations completed."""
    if finding.time_us or not finding.operations:
        return finding.time_us
    ends = [max(history.complete_us[row], history.invoke_us[row]) for row in finding.operations if row < len(history)]
    return max(ends, default=0)


def rows_of(finding: Finding, history: History, limit: int = MOST_OPERATIONS) -> list[int]:
    """The operations to be shown for `finding`, in order of invocation.

    Its own operations when it names some; else (an invariant broke inside a node) those in flight around the breach.
    """
    moment_us = anomaly_us(finding, history)
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


def telling_row(finding: Finding, history: History, rows: Sequence[int]) -> int | None:
    """The operation that gave the anomaly away: the one that completed at its moment, else the last to complete.

    None of a cycle of transactions did: each alone could be right.
    """
    if not finding.operations or not rows or finding.detail.get("edges"):
        return None
    at_moment = [row for row in rows if history.complete_us[row] == finding.time_us and finding.time_us]
    return at_moment[-1] if at_moment else max(rows, key=lambda row: (history.complete_index[row], row))


def window(rows: Sequence[Row], moment_us: int) -> tuple[int, int]:
    """The time the given operations span, the moment of the anomaly included when it is known."""
    starts = [row.invoke_us for row in rows]
    stops = [row.complete_us for row in rows if row.complete_index != OPEN]
    moments = [*starts, *stops, *([moment_us] if moment_us else [])]
    return (min(moments), max(moments)) if moments else (0, 0)


def faults_during(
    faults: Sequence[FaultInterval], start_us: int, stop_us: int, moment_us: int, limit: int = MOST_FAULTS
) -> list[FaultInterval]:
    """The faults in force at some time between `start_us` and `stop_us`, by start; the nearest when there are many."""
    during = [fault for fault in faults if fault.start_us <= stop_us and fault.stop_us >= start_us]
    nearest = sorted(during, key=lambda fault: _fault_distance(fault, moment_us))[:limit]
    return sorted(nearest, key=lambda fault: (fault.start_us, fault.stop_us, fault.kind, fault.nodes))


def _fault_distance(fault: FaultInterval, moment_us: int) -> tuple[int, int, str]:
    outside = max(fault.start_us - moment_us, moment_us - fault.stop_us, 0)
    return outside, abs(fault.start_us - moment_us), fault.kind


def messages_during(
    messages: Sequence[MessageRecord],
    ends: Collection[str],
    start_us: int,
    stop_us: int,
    moment_us: int,
    limit: int = MOST_MESSAGES,
) -> list[MessageRecord]:
    """The messages between two of `ends` sent from `start_us` to `stop_us`; those nearest the moment when many."""
    during = [
        message
        for message in messages
        if start_us <= message.send_us <= stop_us and message.source in ends and message.target in ends
    ]
    nearest = sorted(enumerate(during), key=lambda pair: (abs(pair[1].send_us - moment_us), pair[0]))[:limit]
    return [message for _, message in sorted(nearest, key=lambda pair: pair[0])]


def settled_faults(record: RunRecord) -> list[FaultInterval]:
    """The faults of the run; one that never ended (the run was interrupted) is taken to last until its end."""
    end_us = record.history.end_us()
    return [fault if fault.stop_us >= fault.start_us else _lasting_until(fault, end_us) for fault in record.faults]


def _lasting_until(fault: FaultInterval, end_us: int) -> FaultInterval:
    return msgspec.structs.replace(fault, stop_us=max(end_us, fault.start_us))
