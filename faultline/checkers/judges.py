"""Which checker judges a history under which model: what `--model` names.

A model is one of three kinds. *Linearizability* models are objects that do one thing at a time (a register, a queue).
*Consistency models* are promises about transactions (serializable, snapshot isolation). *Classic* ones are named after
the checker that judges one workload by counting (bank, set-full). What a name means is looked up where it is defined,
and only when it is asked for: a register is checked without importing anything about transactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import CheckResult

__all__ = ["STEPS_MAX", "HistoryChecker", "judge", "models"]

STEPS_MAX = 5_000_000
"""The default budget of one key: a person who checks one file waits longer than a campaign of thousands of runs."""

_NEED_A_RUN = frozenset(("linearizability", "invariants", "availability", "vacuity"))
"""Checkers that are no model: they judge a run of Faultline rather than a history, or take the model as an option."""


class HistoryChecker(Protocol):
    """A checker that needs nothing but the history."""

    name: str

    def check(self, history: History) -> CheckResult:
        """The verdict on `history`."""


def judge(
    model: str,
    *,
    steps_max: int = STEPS_MAX,
    timeout_s: float | None = None,
    clock: str = "seconds",
    options: Mapping[str, Any] | None = None,
) -> HistoryChecker:
    """The checker for the model called `model`. Raises UsageError for an unknown name and for options it has not."""
    from faultline.checkers.linearizability.models import MODELS

    if model in MODELS:
        from faultline.checkers.linearizability.checker import LinearizabilityChecker

        common = {"steps_max": steps_max, "timeout_s": timeout_s, "clock": clock}
        return _made(LinearizabilityChecker, model, {"model": model, **common}, options)
    raise _unknown(model)


def models() -> dict[str, str]:
    """Every model that can be named, with one line about it."""
    from faultline.checkers.linearizability.models import MODELS

    return {name: f"linearizable: {description.summary}" for name, description in MODELS.items()}


def _made(make: Any, model: str, common: Mapping[str, Any], options: Mapping[str, Any] | None) -> HistoryChecker:
    try:
        checker: HistoryChecker = make(**common, **(options or {}))
    except TypeError as error:
        raise UsageError(
            f"The checker of {model} cannot be set up with {', '.join(options or ())}: {error}.",
            "See docs/reference/checkers.md for its options.",
        ) from error
    return checker


def _unknown(model: str) -> UsageError:
    import difflib

    near = difflib.get_close_matches(model, list(models()), n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(f"There is no model called `{model}`.", f"{hint}Choose one of {', '.join(models())}.")
