"""A bank, whose accounts always add up to the same (Jepsen's `bank`).

Shape: `transfer` with `{"from": a, "to": b, "amount": n}`, which is ignored; `read`, whose result maps every account
to its balance. The first ok read gives the accounts and their total, unless `accounts` and `total` do.

An ok read is wrong when the total differs, when an account is missing, unknown or without a balance, or when a balance
is below zero, unless `negative_balances` are allowed. Snapshot isolation forbids a read that sees half of a transfer; a
total that stays wrong is a lost or doubled transfer, so the *first* and the *worst* wrong total are reported."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, is_number, wrong_shape
from faultline.checkers.common.words import client, counted, listed, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.answers import IncrementalBank

__all__ = ["MISSING_ACCOUNT", "NEGATIVE_BALANCE", "UNEXPECTED_ACCOUNT", "WRONG_TOTAL", "BankChecker"]

WRONG_TOTAL = "wrong-total"
NEGATIVE_BALANCE = "negative-balance"
MISSING_ACCOUNT = "missing-account"
UNEXPECTED_ACCOUNT = "unexpected-account"

_EXPECTED = '`transfer` of {"from", "to", "amount"}, and `read` that answers {account: balance}.'


class BankChecker:
    """A checker that every read sees all accounts, none overdrawn, and the one total."""

    name = "bank"

    def __init__(
        self,
        *,
        total: int | None = None,
        accounts: Collection[Any] | None = None,
        negative_balances: bool = False,
    ) -> None:
        self.total = total
        self.accounts = None if accounts is None else frozenset(map(str, accounts))
        self.negative_balances = negative_balances

    def incremental(self) -> IncrementalBank:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.answers import IncrementalBank

        return IncrementalBank(self.total, self.accounts, negative_balances=self.negative_balances)

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every ok read of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("read", "transfer"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        reads = {
            row: self._balances(history, row)
            for row in sorted(range(len(history)), key=history.complete_index.__getitem__)
            if history.f[row] == "read" and history.outcome[row] == "ok"
        }
        conclusion.counts.update(reads=len(reads), transfers=history.f.count("transfer"))
        if not reads:
            conclusion.doubt(f"No read succeeded among {counted(len(history), 'operation')}, so nothing is known.")
            return conclusion.result("")
        first = next(iter(reads))
        accounts = frozenset(reads[first]) if self.accounts is None else self.accounts
        total = _total(reads[first]) if self.total is None else self.total
        if not accounts:
            conclusion.doubt("No read answered any account, so nothing is known.")
        elif self.total is None and len(reads) < 2:
            conclusion.doubt(
                "The only read that succeeded gives the total itself, so there is nothing to compare it with."
            )
        self._judge_accounts(conclusion, reads, accounts, first)
        self._judge_totals(conclusion, reads, total)
        if not self.negative_balances:
            self._judge_balances(conclusion, reads)
        return conclusion.result(f"All {counted(len(reads), 'read')} of {len(accounts)} accounts add up to {total}.")

    def _balances(self, history: History, row: int) -> dict[str, Any]:
        result = history.result[row]
        if not isinstance(result, dict):
            raise wrong_shape(self.name, history, row, f"answered {told(result)} instead of balances", _EXPECTED)
        odd = [balance for balance in result.values() if balance is not None and not is_number(balance)]
        if odd:
            raise wrong_shape(self.name, history, row, f"has {told(odd[0])} as a balance", _EXPECTED)
        return {str(account).removeprefix(":"): balance for account, balance in result.items()}

    def _judge_accounts(
        self, conclusion: Conclusion, reads: dict[int, dict[str, Any]], accounts: frozenset[str], first: int
    ) -> None:
        history = conclusion.history
        absent = {
            row: sorted(account for account in accounts if balances.get(account) is None)
            for row, balances in reads.items()
        }
        extra = {row: sorted(set(balances) - accounts) for row, balances in reads.items()}
        conclusion.accuse(
            MISSING_ACCOUNT,
            [Case(names[0], (first, row)) for row, names in absent.items() if names],
            lambda case: (
                f"{client(history, _last(case))} read the bank without a balance of {listed(absent[_last(case)])}"
            ),
            noun="incomplete read",
        )
        conclusion.accuse(
            UNEXPECTED_ACCOUNT,
            [Case(names[0], (first, row)) for row, names in extra.items() if names],
            lambda case: (
                f"{client(history, _last(case))} read accounts that do not exist: {listed(extra[_last(case)])}"
            ),
            noun="read of unknown accounts",
        )

    def _judge_totals(self, conclusion: Conclusion, reads: dict[int, dict[str, Any]], total: int) -> None:
        history = conclusion.history
        totals = {row: _total(balances) for row, balances in reads.items()}
        wrong = [row for row in reads if totals[row] != total]
        conclusion.accuse(
            WRONG_TOTAL,
            [Case(totals[row], (row,)) for row in wrong],
            lambda case: f"{client(history, case.rows[0])} read balances that add up to {case.what} instead of {total}",
            noun="wrong total",
        )
        if wrong:
            worst = max(wrong, key=lambda row: abs(totals[row] - total))
            conclusion.detail |= {
                "total": total,
                "first": _example(wrong[0], totals),
                "worst": _example(worst, totals),
                "last": _example(wrong[-1], totals),
                "lowest": min(totals.values()),
                "highest": max(totals.values()),
            }

    def _judge_balances(self, conclusion: Conclusion, reads: dict[int, dict[str, Any]]) -> None:
        history = conclusion.history
        negative = {
            row: {account: balance for account, balance in balances.items() if balance is not None and balance < 0}
            for row, balances in reads.items()
        }
        conclusion.accuse(
            NEGATIVE_BALANCE,
            [Case(min(found.values()), (row,)) for row, found in negative.items() if found],
            lambda case: f"{client(history, case.rows[0])} read a balance below zero: {_told(negative[case.rows[0]])}",
            noun="overdrawn read",
        )


def _total(balances: dict[str, Any]) -> Any:
    return sum(balance for balance in balances.values() if balance is not None)


def _last(case: Case) -> int:
    return case.rows[-1]


def _example(row: int, totals: dict[int, Any]) -> dict[str, Any]:
    return {"operation": row, "total": totals[row]}


def _told(balances: dict[str, Any]) -> str:
    some: Sequence[tuple[str, Any]] = list(balances.items())[:4]
    return ", ".join(f"account {account} has {balance}" for account, balance in some)
