"""The input of the judgement for every kind of data: transactions, edges, observations, and words for the edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from faultline.checkers.isolation.committed import Committed
from faultline.checkers.transactions.columns import TransactionColumns
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.edges import DependencyEdges
from faultline.checkers.transactions.observations import Observations

__all__ = ["Inference", "Reason", "Words"]


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason of an edge: a clause, and the key that it is about, if any."""

    clause: str
    key: Any = None


class Words(Protocol):
    """A maker of sentences that say why one transaction precedes another."""

    def reason(self, step: Step, source: str, target: str) -> Reason:
        """Return the reason of a ww, wr or rw step, with the given names of its two transactions."""


@dataclass(frozen=True, slots=True)
class Inference:
    """The outcome of inference on one history.

    `edges` may say less than the history about the models in `searched`; `committed` makes the transactions for a
    search that decides these.
    """

    columns: TransactionColumns
    edges: DependencyEdges
    observations: Observations
    words: Words
    committed: Callable[[], Committed] | None = None
    searched: frozenset[str] = frozenset()
