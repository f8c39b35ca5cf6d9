"""Transfers between accounts, each of which must count exactly once.

The total of a bank (`bank`) shows that no amount is lost *between* accounts. It does not show that a transfer happened:
one that is executed twice, or acknowledged and lost, keeps the total. So each account is judged as a counter, in which
the acknowledged transfers certainly count, the refused ones never, and those in flight or indeterminate may.

Shape: `transfer` with `{"from": a, "to": b, "amount": n}`; `read`, whose result maps every account to its balance.
`opening` has the initial balances. A balance outside the bounds of the transfers around the read is a violation; the
module `counter` describes the bounds and their limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from faultline.checkers.classic.counter import bounds_of_reads
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, integer, wrong_shape
from faultline.checkers.common.words import client, counted, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.counters import IncrementalTransfers

__all__ = ["BALANCE_OUT_OF_BOUNDS", "TransfersChecker"]

BALANCE_OUT_OF_BOUNDS = "balance-out-of-bounds"

_EXPECTED = '`transfer` of {"from", "to", "amount"}, and `read` that answers {account: balance}.'


class TransfersChecker:
    """A checker that every balance lies within the bounds that the transfers around the read allow."""

    name = "transfers"

    def __init__(self, *, opening: Mapping[str, int] | None = None) -> None:
        self.opening = dict(opening or {})

    def incremental(self) -> IncrementalTransfers:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.counters import IncrementalTransfers

        return IncrementalTransfers(self.opening)

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every account of every key of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("read", "transfer"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            for account in self._accounts(history, rows):
                self._judge(conclusion, key, rows, account)
        conclusion.doubt_unread(("read",))
        return conclusion.result(f"All {counted(conclusion.counts['balances'], 'balance')} lie within their bounds.")

    def _accounts(self, history: History, rows: list[int]) -> list[str]:
        named = dict.fromkeys(self.opening)
        for row in rows:
            if history.f[row] == "transfer":
                named |= dict.fromkeys((_party(history, row, "from"), _party(history, row, "to")))
            elif history.outcome[row] == "ok":
                if not isinstance(history.result[row], dict):
                    answered = f"answered {told(history.result[row])} instead of balances"
                    raise wrong_shape(self.name, history, row, answered, _EXPECTED)
                named |= dict.fromkeys(history.result[row])
        return list(named)

    def _judge(self, conclusion: Conclusion, key: str | None, rows: list[int], account: str) -> None:
        history = conclusion.history
        bounds = bounds_of_reads(history, rows, self.opening.get(account, 0), partial(_change, account))
        balances = {row: _balance(history, row, account) for row in bounds}
        wrong = {row: span for row, span in bounds.items() if not span[0] <= balances[row] <= span[1]}
        conclusion.counts["balances"] += len(bounds)
        conclusion.accuse(
            BALANCE_OUT_OF_BOUNDS,
            [Case(balances[row], (row,)) for row in wrong],
            lambda case: (
                f"{client(history, case.rows[0])} read {told(case.what)} on account {account}, and the transfers before"
                f" and during the read allow {_told_span(*wrong[case.rows[0]])}"
            ),
            noun="wrong balance",
            key=key,
        )


def _party(history: History, row: int, role: str) -> str:
    value = history.value[row]
    if not isinstance(value, dict) or role not in value:
        raise wrong_shape(TransfersChecker.name, history, row, f"has the value {told(value)}", _EXPECTED)
    return str(value[role])


def _change(account: str, history: History, row: int) -> int:
    """Return the change of the balance of `account` by the operation in `row`; 0 for a read."""
    if history.f[row] == "read":
        return 0
    amount = integer(TransfersChecker.name, history, row, history.value[row].get("amount"), _EXPECTED)
    received = amount if _party(history, row, "to") == account else 0
    return received - (amount if _party(history, row, "from") == account else 0)


def _balance(history: History, row: int, account: str) -> int:
    return integer(TransfersChecker.name, history, row, history.result[row].get(account), _EXPECTED)


def _told_span(lower: int, upper: int) -> str:
    return f"only {lower}" if lower == upper else f"{lower} to {upper}"
