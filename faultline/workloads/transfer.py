"""The workload `transfer`: 183 widgets in four warehouses, moved about and never made or lost.

Boston holds 50, Philadelphia 38, London 20 and Pune 75, the example of "Patterns of Distributed Systems" ch. 2. Every
worker begins by opening the books, a compare-and-set that only the first one wins (and that is repeated now and then,
in case none of the first got through). Then some workers transfer and others read.

Two checkers are needed: `bank` checks the total and that no balance is below zero, `transfers` checks that each
acknowledged transfer is in the balances exactly once. A transfer that is executed twice keeps the total.

The books are one object, so that counting is one read on stores that read a key at a time.
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
    sequence,
    stagger,
)
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US

__all__ = ["OPENING", "Transfers"]

OPENING = {"boston": 50, "philadelphia": 38, "london": 20, "pune": 75}
"""The initial stock of the warehouses: 183 widgets."""

_BOOKS = "widgets"
_KIND_SALT = 0x9FB2_1C65_1E98_DF25
_SOURCE_SALT = 0xEB44_ACCA_B455_D165
_TARGET_SALT = 0xC2B2_AE3D_27D4_EB4F
_AMOUNT_SALT = 0x9E37_79B9_7F4A_7C15
_TRANSFERS_OF_100 = 55
_OPENINGS_OF_100 = 3
_AMOUNT_MAX = 10
_OPENED = {"from": "boston", "to": "boston", "amount": 0}


class Transfers:
    """Transfers between four accounts, and reads of all of them."""

    name = "transfer"
    promise = "the widgets always add up to 183, and every acknowledged transfer counts exactly once"
    functions = ("cas", "transfer", "read")
    access = Access(final_read="read")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        opening = each_thread(emit("cas", _BOOKS, [None, OPENING]))
        return limit(operations, stagger(interval_us, sequence(opening, function(_some_operation))))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return two counts by every worker."""
        return each_thread(cycle(emit("read", _BOOKS), 2))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the total and each transfer first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.adapted import adapted
        from faultline.checkers.classic.bank import BankChecker
        from faultline.checkers.classic.transfers import TransfersChecker

        bank = BankChecker(total=sum(OPENING.values()), accounts=OPENING)
        return (
            adapted(bank, requests=_as_transfer, answers=_balances),
            adapted(TransfersChecker(opening=OPENING), requests=_as_transfer, answers=_balances),
            adapted(StatsChecker(), requests=_as_transfer),
            AvailabilityChecker(),
            VacuityChecker(self.access),
        )


def _some_operation(context: Context) -> Draft:
    drawn = context.below(100, _KIND_SALT)
    if drawn >= 100 - _OPENINGS_OF_100:
        return Draft("cas", _BOOKS, [None, OPENING])
    if drawn >= _TRANSFERS_OF_100:
        return Draft("read", _BOOKS)
    places = list(OPENING)
    source = places[context.below(len(places), _SOURCE_SALT)]
    others = [place for place in places if place != source]
    target = others[context.below(len(others), _TARGET_SALT)]
    amount = 1 + context.below(_AMOUNT_MAX, _AMOUNT_SALT)
    return Draft("transfer", _BOOKS, {"from": source, "to": target, "amount": amount})


def _as_transfer(f: str, value: Any) -> tuple[str, Any]:
    """Return the operation as a transfer: for the checkers, opening the books moves no widgets."""
    return ("transfer", _OPENED) if f == "cas" else (f, value)


def _balances(answer: Any) -> Any:
    """Return the balances: books that are not open yet have their opening balances."""
    return OPENING if answer is None else answer
