"""Later writes that are visible without earlier ones (Jepsen's `causal-reverse`).

Shape: `write` of a value, blindly, each value once; `read`, whose result is the list of all values of the key's group.

Strict serializability, and any store that makes writes visible in the order in which they were acknowledged, promises:
if write A was acknowledged before write B began, then a reader that sees B sees A. A store that is only serializable
may break it, hence the name: to its readers, causes come after their effects (CockroachDB's documentation calls this
"causal reverse").

For each read: of the writes it sees, take the one that began last; every write that was acknowledged before that must
be seen as well. With the writes in order of acknowledgement this is a count over a prefix, so that a read costs its own
length and a binary search.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from faultline.checkers.classic.misreads import accuse_misreads
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import elements, expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, token, tokens, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.causes import IncrementalCausalReverse

__all__ = ["CAUSAL_REVERSE", "CausalReverseChecker"]

CAUSAL_REVERSE = "causal-reverse"

_EXPECTED = "`write` of values that are unique for their key, and `read` that answers the list of all values."


class CausalReverseChecker:
    """A checker that a reader of a write sees all writes that were acknowledged before it began."""

    name = "causal-reverse"

    def incremental(self) -> IncrementalCausalReverse:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.causes import IncrementalCausalReverse

        return IncrementalCausalReverse()

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every key of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("read", "write"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            self._judge(conclusion, key, rows)
        if not conclusion.counts["telling"]:
            conclusion.doubt(f"No read saw a write among {counted(len(history), 'operation')}, so nothing is known.")
        return conclusion.result(
            f"All {counted(conclusion.counts['reads'], 'read')} see the writes in the order of their acknowledgement."
        )

    def _judge(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        history = conclusion.history
        writes = _Writes(self.name, history, rows)
        reads = [row for row in rows if history.f[row] == "read" and history.outcome[row] == "ok"]
        reverse: list[Case] = []
        shown: list[tuple[int, Any, int | None]] = []
        for row in reads:
            seen = dict.fromkeys(tokens(elements(self.name, history, row, _EXPECTED)))
            shown += [(row, value, writes.row_of.get(value)) for value in seen]
            reverse += writes.missing(seen, row)
            conclusion.counts["telling"] += bool(seen)
        conclusion.counts.update(reads=len(reads), writes=len(writes.row_of))
        conclusion.accuse(
            CAUSAL_REVERSE,
            reverse,
            lambda case: (
                f"{client(history, case.rows[-1])} saw {told(history.value[case.rows[1]])} without {told(case.what)}, "
                f"whose write had been acknowledged before that of {told(history.value[case.rows[1]])} began"
            ),
            noun="such read",
            key=key,
        )
        accuse_misreads(conclusion, shown, key=key)


class _Writes:
    """The writes of one key, and the acknowledged ones in order of acknowledgement."""

    def __init__(self, checker: str, history: History, rows: Sequence[int]) -> None:
        self.history = history
        self.row_of: dict[Any, int] = {}
        for row in rows:
            if history.f[row] == "write" and self.row_of.setdefault(token(history.value[row]), row) != row:
                raise wrong_shape(checker, history, row, f"writes {told(history.value[row])} again", _EXPECTED)
        acknowledged = [row for row in self.row_of.values() if history.outcome[row] == "ok"]
        self.acknowledged = sorted(acknowledged, key=history.complete_index.__getitem__)
        self.ends = [history.complete_index[row] for row in self.acknowledged]

    def missing(self, seen: dict[Any, None], read: int) -> list[Case]:
        """Return the first write that a read should have seen, given its values; at most one case for each read."""
        history = self.history
        known = [self.row_of[value] for value in seen if value in self.row_of]
        if not known:
            return []
        latest = max(known, key=history.invoke_index.__getitem__)
        due = bisect_left(self.ends, history.invoke_index[latest])
        there = sum(
            history.outcome[row] == "ok" and history.complete_index[row] < history.invoke_index[latest] for row in known
        )
        if there == due:
            return []
        row = next(row for row in self.acknowledged if token(history.value[row]) not in seen)
        return [Case(token(history.value[row]), (row, latest, read))]
