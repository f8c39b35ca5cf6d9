"""What every kind of data hands to the judgement: transactions, edges, observations, and words for its edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from faultline.checkers.transactions.columns import TransactionColumns
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.edges import DependencyEdges
from faultline.checkers.transactions.observations import Observations

__all__ = ["Inference", "Reason", "Words"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an edge is there: a clause, and the key it is about if it is about one."""

    clause: str
    key: Any = None


class Words(Protocol):
    """Tells why one transaction precedes another."""

    def reason(self, step: Step, source: str, target: str) -> Reason:
        """The reason of a ww, wr or rw step, with the names by which its two transactions are called."""


@dataclass(frozen=True, slots=True)
class Inference:
    """The outcome of inference on one history."""

    columns: TransactionColumns
    edges: DependencyEdges
    observations: Observations
    words: Words
