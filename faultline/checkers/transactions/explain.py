"""Cycles in words: each edge has the reason why one transaction must precede the next, and the last one contradicts the
rest."""

from __future__ import annotations

from typing import Any

from faultline.checkers.transactions.anomalies import meaning
from faultline.checkers.transactions.columns import TransactionColumns
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.cycles import Cycle
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.inference import Inference, Reason

__all__ = ["cycle_detail", "cycle_sentence", "reasons_of", "turned"]

_NAMED_STEPS = 6

_KIND_NAMES = {
    EdgeKind.WW: "ww",
    EdgeKind.WR: "wr",
    EdgeKind.RW: "rw",
    EdgeKind.PREDICATE_RW: "predicate-rw",
    EdgeKind.PROCESS: "process",
    EdgeKind.REALTIME: "realtime",
}


def _kind_name(kind: EdgeKind) -> str:
    """Return the name of an edge's kind, without the order from which it may be known."""
    if kind & EdgeKind.RW and kind & EdgeKind.WR:
        return "rr"
    return next(name for flag, name in _KIND_NAMES.items() if kind & flag)


def turned(columns: TransactionColumns, cycle: Cycle) -> tuple[Step, ...]:
    """Return the steps of `cycle`, beginning with the transaction that was invoked first."""
    first = min(range(len(cycle.steps)), key=lambda place: int(columns.invoke[cycle.steps[place].source]))
    return cycle.steps[first:] + cycle.steps[:first]


def reasons_of(inference: Inference, steps: tuple[Step, ...]) -> list[Reason]:
    """Return the reason of each step; the transactions are called T1, T2 and so on, in order of the steps."""
    names = [f"T{number}" for number in range(1, len(steps) + 1)]
    pairs = zip(steps, names, [*names[1:], names[0]], strict=True)
    return [_reason(inference, step, source, target) for step, source, target in pairs]


def _reason(inference: Inference, step: Step, source: str, target: str) -> Reason:
    columns = inference.columns
    if step.kind == EdgeKind.PROCESS:
        return Reason(f"client {columns.process[step.source]} finished {source} before it began {target}")
    if step.kind == EdgeKind.REALTIME:
        return Reason(
            f"{source} had completed (event {columns.complete[step.source] + 1}) before {target} was invoked "
            f"(event {columns.invoke[step.target] + 1})"
        )
    return inference.words.reason(step, source, target)


def cycle_sentence(inference: Inference, name: str, steps: tuple[Step, ...], reasons: list[Reason]) -> str:
    """Return the whole contradiction in one sentence; of a long cycle, the first edges and the last."""
    columns = inference.columns
    who = ", ".join(
        f"T{n} is client {columns.process[step.source]}'s" for n, step in enumerate(steps[:_NAMED_STEPS], start=1)
    )
    clauses = [reason.clause for reason in reasons]
    shown = clauses[:-1] if len(clauses) <= _NAMED_STEPS else [*clauses[: _NAMED_STEPS - 1], f"and {_more(clauses)}"]
    return (
        f"{name}, {meaning(name)}: {'; '.join(shown)}; so T1 comes before T{len(steps)}; however, {clauses[-1]}: "
        f"a contradiction ({who}{', …' if len(steps) > _NAMED_STEPS else ''})."
    )


def _more(clauses: list[str]) -> str:
    return f"so on through {len(clauses) - _NAMED_STEPS} more transactions"


def cycle_detail(inference: Inference, cycle: Cycle, steps: tuple[Step, ...], reasons: list[Reason]) -> dict[str, Any]:
    """Return the data of a ring diagram: the transactions in the order of the cycle, and the edge from each to the
    next."""
    columns = inference.columns
    transactions = [
        {
            "name": f"T{number}",
            "row": int(columns.rows[step.source]),
            "process": int(columns.process[step.source]),
            "operations": columns.micro_operations(step.source),
        }
        for number, step in enumerate(steps, start=1)
    ]
    edges = [
        {
            "from": f"T{number}",
            "to": f"T{number % len(steps) + 1}",
            "kind": _kind_name(step.kind),
            "key": reason.key,
            "because": reason.clause,
        }
        for number, (step, reason) in enumerate(zip(steps, reasons, strict=True), start=1)
    ]
    return {"transactions": transactions, "edges": edges, "shortest": cycle.shortest}
