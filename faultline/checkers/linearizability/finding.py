"""From evidence to a finding: the rows that show it, each with its part in the argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.checkers.linearizability.data_type import AnyCall, Clock, Evidence
from faultline.checkers.linearizability.explain import explain
from faultline.checkers.linearizability.operations import INFINITY
from faultline.harness.history import History
from faultline.harness.verdict import Finding

__all__ = ["CHECKER", "anomaly_finding", "core_rows", "roles_of"]

CHECKER = "linearizability"
"""The name under which findings are reported."""


def anomaly_finding(history: History, key: str | None, evidence: Evidence[AnyCall], clock: Clock) -> Finding:
    """Return the finding on a register or a string: the anomaly in a sentence, and the way to the dead end."""
    shown = {operation.row for operation in evidence.core} | {evidence.accused}
    if evidence.against is not None:
        shown.add(evidence.against)
    rows, placed = sorted(shown), [operation.row for operation in evidence.order]
    roles = roles_of(evidence) | {evidence.refused.row: "refused"}
    return Finding(
        checker=CHECKER,
        anomaly=evidence.anomaly,
        sentence=explain(history, key, evidence, len(rows), clock),
        key=key,
        operations=tuple(rows),
        time_us=history.complete_us[evidence.accused],
        node=history.node[evidence.accused] or None,
        detail={
            "core": core_rows(history, rows, roles),
            "order": placed,
            "state": evidence.state,
            "refused": sorted(operation.row for operation in evidence.core if operation.row not in placed),
            "longest_prefix": evidence.longest_prefix,
            "minimal": evidence.is_minimal,
            **(
                {}
                if evidence.cut is None
                else {"cut": {"states": list(evidence.cut.states), "ended": evidence.cut.ended}}
            ),
        },
    )


def roles_of(evidence: Evidence[AnyCall]) -> dict[int, str]:
    """Return for each row of the core if its operation must be placed, or may have happened at any time or never."""
    return {operation.row: "optional" if operation.return_ == INFINITY else "bound" for operation in evidence.core}


def core_rows(history: History, rows: Sequence[int], roles: dict[int, str]) -> list[dict[str, Any]]:
    """Return the operations in `rows` as plain data, each with its role in the argument."""
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
