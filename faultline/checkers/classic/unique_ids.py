"""Identifiers that are handed out must be new (Jepsen's `unique-ids`).

Shape: `generate`, whose result is the identifier: any JSON value but null. Keys are ignored: an identifier is unique
everywhere. Indeterminate and failed operations do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.answers import IncrementalUniqueIds

__all__ = ["DUPLICATED_ID", "UniqueIdsChecker"]

DUPLICATED_ID = "duplicated-id"

_EXPECTED = "`generate` that answers an identifier."


class UniqueIdsChecker:
    """A checker that no identifier was handed out twice."""

    name = "unique-ids"

    def incremental(self) -> IncrementalUniqueIds:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.answers import IncrementalUniqueIds

        return IncrementalUniqueIds()

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on all identifiers of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("generate",), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        rows_by_id = self._rows_by_id(history)
        duplicated = [Case(what, tuple(rows)) for what, rows in rows_by_id.items() if len(rows) > 1]
        conclusion.counts.update(
            attempted=len(history), acknowledged=sum(map(len, rows_by_id.values())), distinct=len(rows_by_id)
        )
        conclusion.accuse(
            DUPLICATED_ID,
            duplicated,
            lambda case: (
                f"the identifier {told(case.what)} was handed out {len(case.rows)} times, to "
                f"{client(history, case.rows[0])} and to {client(history, case.rows[1])}"
            ),
            noun="duplicated identifier",
        )
        if not rows_by_id:
            conclusion.doubt(f"None of {counted(len(history), 'request')} for an identifier was answered.")
        return conclusion.result(f"All {counted(len(rows_by_id), 'identifier')} that were handed out are distinct.")

    def _rows_by_id(self, history: History) -> dict[Any, list[int]]:
        rows_by_id: dict[Any, list[int]] = {}
        for row, outcome in enumerate(history.outcome):
            if outcome == "ok":
                if history.result[row] is None:
                    raise wrong_shape(self.name, history, row, "was answered without an identifier", _EXPECTED)
                rows_by_id.setdefault(token(history.result[row]), []).append(row)
        return rows_by_id
