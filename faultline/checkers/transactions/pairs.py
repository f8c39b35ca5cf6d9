"""Anomalies between two transactions with names of their own, which Elle knows but does not search for.

A component is scanned for pairs of transactions each of which must precede the other:

- `wr` one way and `rw` back, on different objects: a *fractured read* (Bailis et al. 2014); if the reader missed the
  one after it saw the other, in the order of its own steps, also *G-monotonic* (Adya, PL-2L);
- `rw` both ways on different objects: *write skew* (Berenson et al. 1995, A5B);
- `ww` one way and `rw` back on one object: *G-cursor* (Adya, PL-CS).

And a cycle with an anti-dependency in which at most one transaction writes nothing is *G-update* (Adya, PL-3U).

Only pairs are examined, so longer cycles of these kinds appear only under the names of their shapes. Adya's G-MSR and
G-SIa are about snapshots and start times that no client sees; they are implied by other anomalies and never found on
their own.
"""

from __future__ import annotations

from faultline.checkers.transactions.columns import TransactionColumns
from faultline.checkers.transactions.component import Component
from faultline.checkers.transactions.cycles import Cycle
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.observations import Observations

__all__ = ["observe_pairs", "observe_updates"]

_WW, _WR, _RW = int(EdgeKind.WW), int(EdgeKind.WR), int(EdgeKind.RW)
_ORDERS = int(EdgeKind.PROCESS | EdgeKind.REALTIME)


def observe_pairs(component: Component, columns: TransactionColumns, found: Observations) -> None:
    """Report such pairs of `component`."""
    back: dict[tuple[int, int], list[int]] = {}
    for source in range(component.size):
        for target, kind, reason in component.out[source]:
            if kind == _RW:
                back.setdefault((source, target), []).append(reason)
    seen: set[tuple[str, int, int]] = set()
    for source in range(component.size):
        for target, kind, reason in component.out[source]:
            for missed in back.get((target, source), ()):
                for anomaly in _names(columns, kind, reason, missed):
                    pair = (min(source, target), max(source, target))
                    if (anomaly, *pair) not in seen:
                        seen.add((anomaly, *pair))
                        one, other = component.transactions[source], component.transactions[target]
                        _observe(columns, found, anomaly, one, other, reason, missed)


def observe_updates(cycle: Cycle, columns: TransactionColumns, found: Observations) -> None:
    """Report `cycle` as G-update if it is one; cycles that need process or real-time order are not."""
    kinds = [int(step.kind) for step in cycle.steps]
    if not any(kind & _RW for kind in kinds) or any(kind & _ORDERS for kind in kinds):
        return
    members = [step.source for step in cycle.steps]
    readers = [t for t in members if columns.is_read[columns.start[t] : columns.start[t + 1]].all()]
    if len(readers) <= 1:
        rows = ", ".join(str(columns.rows[t]) for t in sorted(members))
        found.add(
            "G-update",
            members,
            f"The transactions in rows {rows} cannot be put in any order, and {'all but one' if readers else 'all'} of "
            "them write, so that not even updates are serializable.",
        )


def _names(columns: TransactionColumns, kind: int, reason: int, missed: int) -> list[str]:
    """Return the names of the edge of `kind` from one to the other, given that the other's read `missed` the one."""
    same = columns.key[reason] == columns.key[missed]
    if kind == _WR and not same:
        return ["fractured-read", "G-monotonic"] if missed > reason else ["fractured-read"]
    if kind == _RW and not same:
        return ["write-skew"]
    if kind == _WW and same:
        return ["G-cursor"]
    return []


def _observe(
    columns: TransactionColumns, found: Observations, anomaly: str, one: int, other: int, reason: int, missed: int
) -> None:
    first, second = columns.keys[columns.key[reason]], columns.keys[columns.key[missed]]
    here, there = found.name(one), found.name(other)
    sentences = {
        "fractured-read": f"{there.capitalize()} saw what {here} wrote to {first}, but not what it wrote to {second}.",
        "G-monotonic": f"{there.capitalize()} saw what {here} wrote to {first}, and reading {second} after that it did "
        "not see what the same transaction had written there.",
        "write-skew": f"{here.capitalize()} read {first} before {there} overwrote it, and {there} read {second} before "
        f"{here} overwrote that: neither knew of the other.",
        "G-cursor": f"{there.capitalize()} read {first}, {here} then wrote to it, and {there} wrote on top of that "
        "without having seen it.",
    }
    found.add(anomaly, [one, other], sentences[anomaly], first if first == second else None)
