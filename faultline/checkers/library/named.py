"""A history that was checked under a model by name: findings name its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from faultline.checkers.files import CheckedHistory
from faultline.checkers.judges import Budget
from faultline.checkers.library.operations import AnyOperation, operation_at
from faultline.harness.verdict import Finding

if TYPE_CHECKING:
    from faultline.checkers.linearizability.proof import Proof
    from faultline.checkers.transactions.proof import TransactionProof

__all__ = ["NamedChecked"]


@dataclass(frozen=True, slots=True)
class NamedChecked:
    """A history checked under a model by name, within `limits` of steps and seconds.

    `given` are the caller's operations, one for each row, if any.
    """

    history: CheckedHistory
    limits: Budget
    given: Sequence[AnyOperation] | None = None

    def certificate(self) -> Proof | TransactionProof:
        """Return the certificates of all keys, or that of the transactions, made within the limits of the check."""
        return self.history.proof(self.limits)

    def operations(self, finding: Finding) -> tuple[AnyOperation, ...]:
        """Return the caller's own operations, or those of the rows that were read."""
        rows = self.history.rows(finding)
        if self.given is not None:
            return tuple(self.given[row] for row in rows)
        return tuple(operation_at(self.history.imported.history, row) for row in rows)

    def explanation(self) -> Iterator[str]:
        """Yield what `faultline check` prints."""
        from faultline.checkers.drawing import explanation

        return explanation(self.history)

    def page(self) -> str:
        """Return the page with a figure for each finding."""
        from faultline.checkers.drawing import checked_page

        return checked_page(self.history)
