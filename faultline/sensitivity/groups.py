"""Anomalies of groups of nodes: `view` answers the members of the cluster and its coordinator.

- `split-brain`, drawn from faults: while it lasts one node serves alone, and all others without it;
- `rival-coordinators`, drawn from nodes: after the heal the node follows another coordinator;
- `missing-member`, drawn from nodes: after the heal the node does not count another one as a member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import drawn

__all__ = ["groups"]

Change = Callable[[dict[str, Any], str], dict[str, Any]]


def groups(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of clusters with one coordinator."""
    history, nodes = record.history, record.plan.nodes
    answered = [row for row in range(len(history)) if history.f[row] == "view" and history.outcome[row] == "ok"]
    late = [row for row in answered if history.invoke_us[row] >= record.healed_us]

    def told(views: dict[int, dict[str, Any]]) -> Insertion:
        """Return the insertion of `views`, without those that were answered anyway."""
        changes = {row: Answer("ok", view) for row, view in views.items() if view != history.result[row]}
        return Insertion(changes, range(len(history)))

    def after_the_heal(name: str, change: Change) -> Anomaly:
        def insert(node: str, chance: int) -> Insertion:
            other = drawn([each for each in nodes if each != node], chance)
            rows = [row for row in late if history.node[row] == node]
            return told({row: change(history.result[row], other) for row in rows})

        return Anomaly(name, nodes if len(nodes) > 1 else (), insert, "The cluster has one node.")

    def split(fault: tuple[int, int], chance: int) -> Insertion:
        alone = drawn(nodes, chance)
        rows = [row for row in answered if fault[0] <= history.invoke_us[row] <= fault[1]]
        return told({row: _split(history, row, alone) for row in rows})

    faults = [(fault.start_us, fault.stop_us) for fault in record.faults if fault.applied is None]
    return (
        Anomaly("split-brain", faults, split, "No fault took effect."),
        after_the_heal("rival-coordinators", lambda view, other: _following(view, other, nodes)),
        after_the_heal("missing-member", lambda view, other: {**view, "live": _without(view, other)}),
    )


def _without(view: dict[str, Any], node: str) -> list[str]:
    return [each for each in view["live"] if each != node]


def _following(view: dict[str, Any], other: str, nodes: Sequence[str]) -> dict[str, Any]:
    """Return the view with a different coordinator."""
    rival = other if other != view["coordinator"] else next(each for each in nodes if each != other)
    return {**view, "coordinator": rival, "version": view["version"] + 1}


def _split(history: History, row: int, alone: str) -> dict[str, Any]:
    view: dict[str, Any] = history.result[row]
    if history.node[row] == alone:
        return {**view, "coordinator": alone, "live": [alone]}
    return {**view, "live": _without(view, alone)}
