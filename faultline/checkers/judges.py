"""The checkers of the models that `--model` names.

A model of Faultline's own is one of three kinds, looked up in this order and only when it is asked for, so that a
register is checked without importing anything about transactions:

- *classic*: the name of a checker that judges one workload by counting, as Jepsen has it (bank, set, counter, …);
- *linearizable*: an object that does one thing at a time (register, mutex, stack, …), also as `linearizable-NAME`,
  because `set`, `queue` and `counter` are classic checkers too;
- *transactional*: what a database promises (serializable, snapshot-isolation, …), for transactions on lists, registers,
  sets, counters or objects under a condition, told by their micro-operations. `list-append` and `rw-register` are
  strict serializability of such.

Last come the checkers of other packages (entry points, see `faultline.harness.plugins`), which judge a whole history.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, Protocol

from faultline.checkers.table import CHECKERS
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.plugins import CHECKERS_GROUP, load, plugged_in
from faultline.harness.verdict import CheckResult

__all__ = ["STEPS_MAX", "Budget", "HistoryChecker", "is_per_key", "judge", "models"]

STEPS_MAX = 5_000_000
"""The default budget of one key: a person who checks one file waits longer than a campaign of thousands of runs."""

_PREFIX = "linearizable-"
_CAUSAL = "causal"
_LIST_APPEND, _RW_REGISTER = "list-append", "rw-register"
_WORKLOADS = (_LIST_APPEND, _RW_REGISTER)
_TOLD_BY = {
    "append": _LIST_APPEND,
    "add": "txn-set",
    "inc": "txn-counter",
    "rp": "closed-predicate",
    "insert": "closed-predicate",
    "delete": "closed-predicate",
}
"""The kind of transactions in which a micro-operation occurs."""

_LOOKED_AT = 10_000
_OF_RUNS = frozenset(
    (
        *("invariants", "availability", "vacuity", "stats", "log-patterns", "clock"),
        *("siblings", "convergence", "membership", "follower-reads", "watches"),
    )
)
"""Checkers that judge a run of Faultline, whose plan they need, rather than a history."""

_NO_MODELS = _OF_RUNS | {"linearizability"}
"""Those, and what takes the model as an option."""

_SEARCHING = frozenset(
    (
        *("txn-set", "txn-counter", "closed-predicate", "rw-serializable", "rw-snapshot-isolation"),
        *("sequential", "causal-memory", "causal-convergence", "weak-causal", "pram"),
    )
)
"""Checkers by their own name that can run long and take a time limit; all others count, in nearly linear time."""

_TIMED = "staleness"
"""The checker by its own name that tells times."""

_PER_KEY = frozenset(("set", "set-full", "counter", "queue", "total-queue"))
"""Classic checkers that judge one object for each key."""


class Budget(NamedTuple):
    """The cost that a check may have: steps of search for each key, and seconds for the whole history if given."""

    steps_max: int = STEPS_MAX
    timeout_s: float | None = None


class HistoryChecker(Protocol):
    """A checker that needs nothing but the history."""

    name: str

    def check(self, history: History) -> CheckResult:
        """Return the verdict on `history`."""


def judge(
    model: str,
    history: History,
    budget: Budget | None = None,
    *,
    clock: str = "seconds",
    options: Mapping[str, Any] | None = None,
) -> HistoryChecker:
    """Return the checker of `model` for `history`. Raises UsageError for an unknown name or option."""
    options, budget = options or {}, budget or Budget()
    limit = {"timeout_s": budget.timeout_s}
    if model in _WORKLOADS:
        return _made(model, CHECKERS[model], {"model": "strict-serializable"} | limit | dict(options))
    if model in CHECKERS and model not in _NO_MODELS:
        given = limit if model in _SEARCHING else {"clock": clock} if model == _TIMED else {}
        return _made(model, CHECKERS[model], given | dict(options))
    name = model.removeprefix(_PREFIX)
    if name in _linearizable():
        common = {"model": name, "steps_max": budget.steps_max, "timeout_s": budget.timeout_s, "clock": clock}
        return _made(model, CHECKERS["linearizability"], common | dict(options))
    if model in _transactional():
        return _made(model, CHECKERS[_workload(history)], {"model": _canonical(model)} | limit | dict(options))
    plugged = plugged_in(CHECKERS_GROUP)
    if model in plugged:
        return _made(model, load("checker", model, plugged[model]), options)
    raise _unknown(model)


def is_per_key(model: str) -> bool:
    """Return whether the verdict on a history under `model` is that on each of its keys apart."""
    return model in _PER_KEY or model.removeprefix(_PREFIX) in _linearizable()


def models() -> dict[str, str]:
    """Return every model that can be named, with one line about it."""
    classic = {name: entry.summary for name, entry in CHECKERS.items() if name not in _NO_MODELS}
    linearizable = {(_PREFIX + name if name in classic else name): text for name, text in _linearizable().items()}
    plugged = {name: f"of a plug-in: {path}" for name, path in sorted(plugged_in(CHECKERS_GROUP).items())}
    return plugged | classic | linearizable | {name: f"transactions that are {name}" for name in _transactional()}


def _linearizable() -> dict[str, str]:
    from faultline.checkers.linearizability.descriptions import MODELS

    return {name: f"linearizable: {description.summary}" for name, description in MODELS.items()}


@cache
def _transactional() -> tuple[str, ...]:
    """Return the consistency models of which something can be checked; others forbid nothing that a history shows."""
    from faultline.checkers.transactions.models import ALIASES, STRONGER_THAN, forbidden_by

    weaker = sorted({source.name for sources in STRONGER_THAN.values() for source in sources} - set(STRONGER_THAN))
    return (*filter(forbidden_by, (*STRONGER_THAN, *weaker, *ALIASES)), _CAUSAL)


def _canonical(model: str) -> str:
    from faultline.checkers.transactions.models import canonical

    return canonical("causal-cerone" if model == _CAUSAL else model)


def _workload(history: History) -> str:
    """Return the kind of the transactions, by the first micro-operation that tells.

    Writes and reads of lists are a hint only: objects that are asked for by a condition are written too, and sets are
    read like lists. Reads of lists alone are of lists.
    """
    hint = None
    for row, (value, result) in enumerate(zip(history.value, history.result)):
        for part in [*_micro_operations(value), *_micro_operations(result)]:
            told = _TOLD_BY.get(part[0])
            if told is not None:
                return told
            if part[0] == "w" or (part[0] == "r" and part[-1].__class__ is list):
                hint = hint or (_RW_REGISTER if part[0] == "w" else _LIST_APPEND)
        if hint and row >= _LOOKED_AT:
            break
    return hint or _LIST_APPEND


def _micro_operations(value: Any) -> list[Any]:
    if value.__class__ is not list:
        return []
    return [part for part in value if part.__class__ is list and len(part) > 1 and part[0].__class__ is str]


def _made(model: str, make: Any, options: Mapping[str, Any]) -> HistoryChecker:
    try:
        checker: HistoryChecker = make(**options)
    except (TypeError, AssertionError) as error:
        raise UsageError(
            f"The checker of {model} cannot be set up with {', '.join(options) or 'no option'}: {error}.",
            "See docs/reference/generated/checkers.md for its options.",
        ) from error
    return checker


def _unknown(model: str) -> UsageError:
    import difflib

    if model in _OF_RUNS:
        return UsageError(
            f"The checker `{model}` judges runs of Faultline, whose plan it needs, and is no model of a history.",
            "Give the folder of a run without --model: the checkers of its workload judge it.",
        )
    known = models()
    near = difflib.get_close_matches(model, list(known), n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(f"There is no model called `{model}`.", f"{hint}Choose one of {', '.join(known)}.")
