"""Anti-dependency cycles through predicates: Adya's G2, seen by pairs of inserts (Jepsen's `adya`).

Shape: `insert` with `[id-a, id-b]`, of which one is null, for a key (or `[key, [id-a, id-b]]` without one). Each
transaction first reads by predicate whether either table has a row for the key, and inserts into its own table only if
both have none; otherwise it fails. At most two transactions try each key, one for each table.

Each of them reads the state that the other's insert would change. In a serializable order one comes first, and the
second sees its row and fails. When both inserts are acknowledged, each anti-depends on the other (Adya 1999,
definition of G2; Jepsen's `tests.adya`). An indeterminate insert may not have happened, so it proves nothing. When
for no key two inserts have a known outcome and one of them succeeded, the verdict is *unknown*.
"""

from __future__ import annotations

from typing import Any

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

__all__ = ["G2", "AdyaG2Checker"]

G2 = "G2"

_EXPECTED = "`insert` of [id, null] or [null, id] for a key, where a second insert for the key must fail."


class AdyaG2Checker:
    """A checker that at most one of two inserts that exclude each other is acknowledged."""

    name = "adya-g2"

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every key of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("insert",), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        inserted: dict[Any, list[int]] = {}
        tried: dict[Any, list[str]] = {}
        for row, outcome in enumerate(history.outcome):
            key = self._key(history, row)
            tried.setdefault(key, []).append(outcome)
            if outcome == "ok":
                inserted.setdefault(key, []).append(row)
        decided = {
            key for key, outcomes in tried.items() if "ok" in outcomes and "info" not in outcomes and len(outcomes) > 1
        }
        conclusion.counts.update(keys=len(tried), inserted=len(inserted), decided=len(decided))
        conclusion.accuse(
            G2,
            [Case(key, tuple(rows)) for key, rows in inserted.items() if len(rows) > 1],
            lambda case: (
                f"{client(history, case.rows[0])} and {client(history, case.rows[1])} both inserted for key "
                f"{told(case.what)}, although each had to find no other one"
            ),
            noun="such pair",
        )
        if not inserted:
            conclusion.doubt(f"None of {counted(len(history), 'insert')} was acknowledged, so nothing is known.")
        elif not decided:
            is_open = any("info" in outcomes for outcomes in tried.values())
            conclusion.doubt(
                "For no key two inserts had a known outcome, so nothing is known about their predicates.",
                Cause.INDEFINITE if is_open else Cause.NOTHING_SEEN,
            )
        return conclusion.result(f"For each of {counted(len(tried), 'key')} at most one insert was acknowledged.")

    def _key(self, history: History, row: int) -> Any:
        value = history.value[row]
        if history.key[row] is not None:
            key, pair = history.key[row], value
        elif isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[1], list | tuple):
            key, pair = value
        else:
            raise wrong_shape(self.name, history, row, f"has the value {told(value)}", _EXPECTED)
        if not isinstance(pair, list | tuple) or len(pair) != 2 or (pair[0] is None) == (pair[1] is None):
            raise wrong_shape(self.name, history, row, f"has {told(pair)} where a pair belongs", _EXPECTED)
        return token(key)
