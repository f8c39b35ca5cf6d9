"""Transactions on registers, judged twice: by inference, as Elle does, and by search, where inference is silent.

Registers do not tell in which order they were written. Inference draws the edges that are certain and finds what they
contradict; what it cannot tell it lets pass. For the levels in SEARCHED_AS a second checker decides exactly, or under
a budget. A violation of either is a violation. When inference finds nothing and the search gives up, or refuses the
history, the verdict is that of inference, and the sentence says that it is no more than that.

Real time is not searched: a strictly serializable history is serializable with the order of each session, so that a
search for the latter may refute the former (IMPLIED), and says nothing else about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from faultline.checkers import CHECKERS
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["IMPLIED", "SEARCHED_AS", "SEARCHING", "InferenceThenSearch"]

_IN_ANY_ORDER = {"session_order": False}
_IN_SESSION_ORDER = {"session_order": True}

SEARCHED_AS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "read-committed": ("rw-read-committed", _IN_ANY_ORDER),
    "read-atomic": ("rw-read-atomic", _IN_ANY_ORDER),
    "causal-cerone": ("rw-causal", {}),
    "snapshot-isolation": ("rw-snapshot-isolation", _IN_ANY_ORDER),
    "strong-session-snapshot-isolation": ("rw-snapshot-isolation", _IN_SESSION_ORDER),
    "strong-snapshot-isolation": ("rw-snapshot-isolation", _IN_SESSION_ORDER),
    "serializable": ("rw-serializable", _IN_ANY_ORDER),
    "strong-session-serializable": ("rw-serializable", _IN_SESSION_ORDER),
    "strict-serializable": ("rw-serializable", _IN_SESSION_ORDER),
}
"""For each consistency model the checker that decides it, or a weaker one, with its options."""

SEARCHING = frozenset(("rw-snapshot-isolation", "rw-serializable"))
"""The checkers among them that can run long, and take a time limit; the others are nearly linear."""

IMPLIED = frozenset(("strong-snapshot-isolation", "strict-serializable"))
"""Models of which only something weaker is searched."""


class InferenceThenSearch:
    """Judges transactions on registers under `model`; `options` go to the checker that infers.

    `timeout_s`, for interactive use, bounds both together; what is left of it when inference is done is for the search.
    """

    name = "rw-register"

    def __init__(self, model: str, *, timeout_s: float | None = None, **options: Any) -> None:
        self.model = model
        self.timeout_s = timeout_s
        self._inference = CHECKERS[self.name](model=model, timeout_s=timeout_s, **options)

    def check(self, history: History) -> CheckResult:
        """Return the verdict on the transactions of `history`. Raises UsageError as inference does."""
        limit = Budget.of(timeout_s=self.timeout_s)
        inferred: CheckResult = self._inference.check(history)  # type: ignore[call-arg]  # the second has a default
        searched = self._searched(history, limit) if inferred.verdict is not Verdict.VIOLATION else None
        if searched is None:
            return inferred
        if searched.verdict is Verdict.VIOLATION:
            return msgspec.structs.replace(searched, checker=self.name)
        detail = inferred.detail | {"search": {"verdict": searched.verdict.value, "sentence": searched.sentence}}
        sentence = f"{inferred.sentence} {'' if self.model in IMPLIED else _said(searched)}".strip()
        return msgspec.structs.replace(inferred, sentence=sentence, detail=detail)

    def _searched(self, history: History, limit: Budget) -> CheckResult | None:
        """Return the result of the search; None when the model has none, or it does not take such a history."""
        if self.model not in SEARCHED_AS:
            return None
        name, options = SEARCHED_AS[self.model]
        checker: Any = CHECKERS[name](**options | ({"timeout_s": limit.rest_s()} if name in SEARCHING else {}))
        try:
            result: CheckResult = checker.check(history)
        except UsageError:
            return None
        return result


def _said(searched: CheckResult) -> str:
    if searched.verdict is Verdict.PASS:
        return f"A search confirms it: {searched.sentence}"
    return f"A search could not confirm it: {searched.sentence}" if searched.verdict is Verdict.UNKNOWN else ""
