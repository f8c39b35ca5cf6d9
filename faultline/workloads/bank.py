"""The workload `bank`: transfers between accounts on different servers, and reads of all accounts at once.

Each account opens with 100. A transfer reads two balances and writes both, in one transaction. A reader that sees
half of it, or a transfer of which only half happens, shows in the total. A transfer that would overdraw its account is
refused. `transfer` does the same on one object; here each account is a key of its own.

Sources: Jepsen's `bank`; the widgets in Boston and London of "Patterns of Distributed Systems" ch. 2.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.access import Access
from faultline.harness.generator import (
    Context,
    Draft,
    Generator,
    cycle,
    each_thread,
    emit,
    function,
    limit,
    stagger,
)
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US

__all__ = ["ACCOUNTS", "OPENING_BALANCE", "Bank"]

ACCOUNTS = ("boston", "london", "paris", "oslo", "rome")
"""The accounts; the system decides which server holds which."""

OPENING_BALANCE = 100
"""The balance of an account before its first use."""

_AMOUNT_MAX = 40
_TRANSFERS_OF_100 = 65
_KIND_SALT = 0x9FB2_1C65_1E98_DF25
_SOURCE_SALT = 0xEB44_ACCA_B455_D165
_TARGET_SALT = 0xC2B2_AE3D_27D4_EB4F
_AMOUNT_SALT = 0x9E37_79B9_7F4A_7C15
_ALL = {"accounts": list(ACCOUNTS)}


class Bank:
    """Transfers between five accounts, and reads of all of them."""

    name = "bank"
    promise = "the accounts always add up to 500, and none is overdrawn"
    functions = ("transfer", "balances")
    access = Access(reads=("balances",), whole=True)

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, function(_some_operation)))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return two reads of all accounts by every worker."""
        return each_thread(cycle(emit("balances", None, _ALL), 2))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the total first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.adapted import adapted, renamed
        from faultline.checkers.classic.bank import BankChecker

        bank = BankChecker(total=OPENING_BALANCE * len(ACCOUNTS), accounts=ACCOUNTS)
        return (
            adapted(bank, requests=renamed({"balances": "read"}), answers=_with_openings),
            StatsChecker(),
            AvailabilityChecker(),
            VacuityChecker(self.access),
        )


def _some_operation(context: Context) -> Draft:
    if context.below(100, _KIND_SALT) >= _TRANSFERS_OF_100:
        return Draft("balances", None, _ALL)
    source = ACCOUNTS[context.below(len(ACCOUNTS), _SOURCE_SALT)]
    others = [account for account in ACCOUNTS if account != source]
    target = others[context.below(len(others), _TARGET_SALT)]
    amount = 1 + context.below(_AMOUNT_MAX, _AMOUNT_SALT)
    return Draft("transfer", None, {"from": source, "to": target, "amount": amount, "opening": OPENING_BALANCE})


def _with_openings(answer: Any) -> Any:
    """Return the balances, with the opening balance for an account before its first use."""
    if not isinstance(answer, dict):
        return answer
    return {account: OPENING_BALANCE if balance is None else balance for account, balance in answer.items()}
