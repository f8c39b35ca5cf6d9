"""Verifying certificates of transactions: one pass over the transactions, no search but of a few orders (`orders`).

This module is what a verdict rests on, so it is short and plain, and knows nothing of the checkers. An order is run on
an empty store: every transaction that is ok is in it once and reads what it says, none that failed is, and sessions and
real time are kept where the level has them. That shows serializability in the order of the level, and so the level,
which is no stronger.

An edge from `a` to `b` says that `a` precedes `b` whatever order explains the history:

- *wr*: `b` read what `a` wrote.
- *ww* of lists: a read shows an element of `a`, and one of `b` only behind it or not at all. *rw*: a read of `a` lacks
  an element of `b`. Elements are appended once, and only lists grow.
- *ww* of registers: `a` wrote one version and `b` a later one. *rw*: `a` read one and `b` wrote a later one. A version
  follows null. It follows one that its writer read before it wrote. And it follows a version that a transaction read or
  wrote before the transaction that read or wrote it began, where the level keeps sessions or real time.
- *process*: `a` returned before the same process called `b`. *realtime*: before any process did.

All transactions of edges are committed: ok, or unknown with a write that was read. Each level forbids some cycles
(`levels`) and has rules of its own (`rules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.checkers.transactions.certificates import Edge, ProvedTransaction, TransactionCertificate
from faultline.checkers.transactions.levels import LEVELS
from faultline.checkers.transactions.orders import fault_of_core
from faultline.checkers.transactions.proved import WRITES, Transactions
from faultline.checkers.transactions.rules import breaks

__all__ = ["fault_of", "holds"]


def fault_of(kind: str, level: str, proved: Sequence[ProvedTransaction], certificate: TransactionCertificate) -> str:
    """Return why `certificate` does not prove what `level` says of `proved`, in words; nothing when it does."""
    if kind not in WRITES or level not in LEVELS:
        return f"there is no level `{level}` of `{kind}`"
    transactions = Transactions(kind, level, proved)
    grounds = (certificate.order, certificate.cycle, certificate.contradiction, certificate.core)
    if transactions.fault or sum(each is not None for each in grounds) != 1:
        return transactions.fault or "it has no grounds, or several"
    if certificate.order is not None:
        return _fault_of_order(transactions, certificate.order)
    if certificate.cycle is not None:
        return _fault_of_cycle(transactions, certificate.cycle)
    if certificate.core is not None:
        return fault_of_core(transactions, certificate.core)
    assert certificate.contradiction is not None
    return "" if breaks(transactions, certificate.contradiction) else "its steps do not break the rule that it names"


def _fault_of_order(transactions: Transactions, order: Sequence[int]) -> str:
    """Return why `order` is none in which the transactions ran one by one, in words."""
    everything, level = transactions.all, transactions.level
    if len({*order}) < len(order) or not all(0 <= t < len(everything) for t in order):
        return "its order names a transaction twice, or one that there is not"
    missing = {t for t, each in enumerate(everything) if each.outcome == "ok"}.difference(order)
    if missing or any(everything[t].outcome == "fail" for t in order):
        return "its order lacks a transaction that is ok, or has one that failed"
    # Only what is ok must be explained: a transaction of unknown outcome may be left out, and its reads tell nothing.
    store: dict[Any, Any] = {}
    for t in order:
        for s, (f, _, value) in enumerate(everything[t].steps):
            key = transactions.key((t, s))
            if f != "r" and transactions.is_list:
                store.setdefault(key, []).append(value)
            elif f != "r":
                store[key] = value
            elif everything[t].outcome == "ok" and store.get(key) != (value or None if transactions.is_list else value):
                return f"row {everything[t].row} did not read what its order gives"
    return _fault_of_times(transactions, order) if level.order else ""


def _fault_of_times(transactions: Transactions, order: Sequence[int]) -> str:
    """Return why `order` does not keep the sessions or the real time of the level, in words."""
    # From the end, the earliest return of all that come later: one that returned before this one was called stands
    # behind it. In the order of sessions each process has an earliest return of its own.
    earliest: dict[int | None, int] = {}
    for t in reversed(order):
        each = transactions.all[t]
        session = each.process if transactions.level.order == "process" else None
        if earliest.get(session, each.call) < each.call:
            return f"its order has row {each.row} before one that had returned when it was called"
        if each.return_ is not None:
            earliest[session] = min(earliest.get(session, each.return_), each.return_)
    return ""


def _fault_of_cycle(transactions: Transactions, cycle: Sequence[Edge]) -> str:
    """Return why `cycle` is none that the level forbids, in words."""
    for edge, following in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        a, b = edge.source, following.source
        if not all(0 <= t < len(transactions.all) and transactions.committed[t] for t in (a, b)) or a == b:
            return "its cycle has a transaction that did not commit, or one after itself"
        if not all(map(transactions.is_place, edge.because)) or not holds(transactions, edge, b):
            return f"row {transactions.all[a].row} does not precede row {transactions.all[b].row} as its cycle says"
    if not cycle or not transactions.level.forbids([edge.kind for edge in cycle]):
        return "the level does not forbid its cycle"
    return ""


def holds(transactions: Transactions, edge: Edge, target: int) -> bool:
    """Return whether what `edge` names shows that its source precedes `target`."""
    if edge.kind in ("process", "realtime"):
        allowed = ("process", "realtime") if transactions.level.order == "realtime" else (transactions.level.order,)
        return not edge.because and edge.kind in allowed and transactions.precedes(edge.source, target, edge.kind)
    if len(edge.because) < 2 or len({transactions.key(place) for place in edge.because}) > 1:
        return False
    first, second, *why = edge.because
    if (first[0], second[0]) != (edge.source, target) or transactions.is_write(first) is (edge.kind == "rw"):
        return False
    if edge.kind == "wr":
        # Only the last element's transaction is seen itself, where a read need not see what that one saw.
        shown = transactions.seen(second)
        return not why and transactions.value(first) in (shown if transactions.level.sees_causes else shown[-1:])
    if not transactions.is_write(second) or (edge.kind == "rw" and not transactions.is_answer(first)):
        return False
    if not transactions.is_list:
        is_seen = edge.kind == "ww" or transactions.is_external(first)
        return is_seen and transactions.is_later(transactions.value(first), second, why)
    if edge.kind == "rw":
        return not why and transactions.value(second) not in transactions.seen(first)
    shown = transactions.seen(why[0]) if len(why) == 1 else []
    behind = shown[shown.index(transactions.value(first)) :] if transactions.value(first) in shown else []
    return bool(behind) and (transactions.value(second) in behind or transactions.value(second) not in shown)
