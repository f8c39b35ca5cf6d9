"""The levels that are decided exactly, where inference is silent.

Inference draws the dependencies that are certain and finds what they contradict. That is all where lists were read,
but registers do not tell in which order they were written, nor do lists of what was never read. There silence is no
proof: for the models in `models.DECIDED` a checker of `isolation` decides whether an order exists. What its budget does
not decide is *unknown*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faultline.checkers.isolation.committed import Committed
from faultline.checkers.isolation.strong import SerializabilityChecker, SnapshotIsolationChecker
from faultline.checkers.isolation.weak import CausalConsistencyChecker, ReadAtomicChecker, ReadCommittedChecker
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.transactions.models import orders_for
from faultline.harness.history import History
from faultline.harness.verdict import CheckResult

__all__ = ["decided", "order_of"]

_ANY_ORDER = {"session_order": False}
_SESSIONS = {"session_order": True}
_REAL_TIME = {"realtime": True}

_DECIDED_BY: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "read-committed": (ReadCommittedChecker, _ANY_ORDER),
    "read-atomic": (ReadAtomicChecker, _ANY_ORDER),
    "causal-cerone": (CausalConsistencyChecker, {}),
    "snapshot-isolation": (SnapshotIsolationChecker, _ANY_ORDER),
    "strong-session-snapshot-isolation": (SnapshotIsolationChecker, _SESSIONS),
    "strong-snapshot-isolation": (SnapshotIsolationChecker, _REAL_TIME),
    "serializable": (SerializabilityChecker, _ANY_ORDER),
    "strong-session-serializable": (SerializabilityChecker, _SESSIONS),
    "strict-serializable": (SerializabilityChecker, _REAL_TIME),
}
"""The checker that decides each model, weakest first, with its options."""

_ORDER_OF_WRITES = (SnapshotIsolationChecker, SerializabilityChecker)
"""The checkers among them that search, under a budget; the others are nearly linear."""


def decided(
    model: str, history: History, committed: Committed, limit: Budget, options: Mapping[str, int] | None = None
) -> CheckResult:
    """Return the exact verdict on whether `committed`, the transactions of `history`, keep `model`, one of `DECIDED`.

    `options` are those of the search, such as `steps_max`; `limit` bounds its time.
    """
    make, precedence = _DECIDED_BY[model]
    searching = {**(options or {}), "timeout_s": limit.rest_s()} if make in _ORDER_OF_WRITES else {}
    result: CheckResult = make(**precedence, **searching).judge(history, committed)
    return result


def order_of(model: str, committed: Committed, limit: Budget) -> list[int] | None:
    """Return the rows of `committed` in an order in which they run one by one; None when none is found.

    It keeps the sessions or the real time that `model` has, and one that is weaker than serializable may do without it.
    """
    sessions, realtime = orders_for(model)
    checker = SerializabilityChecker(session_order=sessions, realtime=realtime, timeout_s=limit.rest_s())
    order = checker.order(committed)
    return None if order is None else [committed.transactions[number].row for number in order]
