"""The answer if a history of registers keeps a memory model: possible, impossible, or exhausted.

`MEMORY_MODELS` are the models, and how they imply one another stands in `transactions.models`. What is linearizable is
sequentially consistent, so the engine for single keys is asked before the search over all of them: it is faster, and
values that repeat do not trouble it.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Literal

from faultline.checkers.isolation.search import SearchResult
from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.checkers.memory.accesses import Accesses
from faultline.checkers.memory.causality import decide_causal
from faultline.checkers.memory.sequential import decide_sequential
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import History
from faultline.harness.verdict import Verdict

__all__ = ["MEMORY_MODELS", "MemoryModel", "decide", "decide_orders"]

MemoryModel = Literal["linearizable", "sequential", "causal-memory", "causal-convergence", "weak-causal", "PRAM"]

MEMORY_MODELS: tuple[MemoryModel, ...] = (
    "linearizable",
    "sequential",
    "causal-memory",
    "causal-convergence",
    "weak-causal",
    "PRAM",
)
"""The models that can be decided, none before one that is stronger."""

_CHOICES_MAX = 64
"""The number of ways to choose writers for the reads of repeated values that are tried."""


def decide(model: MemoryModel, history: History, accesses: Accesses, budget: Budget) -> SearchResult:
    """Return whether `history`, whose `accesses` these are, keeps `model`.

    The suspects of an impossible history break the model by themselves; linearizability names none.
    """
    if model == "linearizable":
        return _linearizable(history, budget)
    if model == "sequential" and _linearizable(history, budget).answer == "possible":
        return SearchResult("possible", 0, 0, 0)
    found = decide_orders(model, history, accesses, budget)
    if found.answer == "exhausted" and accesses.choices and model != "sequential":
        # What one order of all operations explains keeps every model here, whichever write a read saw.
        one_order = decide("sequential", history, accesses, budget)
        return one_order if one_order.answer == "possible" else found
    return found


def decide_orders(model: MemoryModel, history: History, accesses: Accesses, budget: Budget) -> SearchResult:
    """Return whether `accesses`, all of `history` or a part, keep a `model` that knows no real time."""
    if model == "sequential" or model == "linearizable":
        return decide_sequential(history, accesses, budget)
    found = decide_causal(model, accesses.committed, budget)
    if not accesses.choices or found.answer != "possible":
        return found
    # Without the reads that leave a choice nothing is wrong. One way to choose that goes well is enough; that all go
    # wrong is no proof, since the definitions let the orders of two clients choose differently.
    if prod(len(choice.writers) for choice in accesses.choices) <= _CHOICES_MAX:
        for writers in product(*(choice.writers for choice in accesses.choices)):
            if decide_causal(model, accesses.chosen(writers), budget).answer == "possible":
                return found
    return SearchResult("exhausted", found.steps, 0, 0)


def _linearizable(history: History, budget: Budget) -> SearchResult:
    model = "cas-register" if {"read", "write", "cas"}.issuperset(history.f) else "kv"
    checker = LinearizabilityChecker(
        model, failed_cas="ignore", steps_max=budget.steps_max or 0, timeout_s=budget.rest_s()
    )
    # Asked for a refutation first, the checker explains none.
    if checker.refutes(history):
        return SearchResult("impossible", 0, 0, 0)
    is_decided = checker.check(history).verdict in (Verdict.PASS, Verdict.VACUOUS)
    return SearchResult("possible" if is_decided else "exhausted", 0, 0, 0)
