"""The workload `booking`: a truck and a backhoe, on two servers, that guests need both or neither.

Several guests try to book each day, and others read its owner. A guest books only free things, in one transaction:
without isolation two guests see both free, and each gets one.

Source: Alice and Bob in "Patterns of Distributed Systems" ch. 21.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import Context, Draft, Generator, each_thread, emit, limit, sequence, stagger, unfold
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US

__all__ = ["Bookings"]

_OPERATIONS_PER_DAY = 6
_BOOKINGS_OF_100 = 65
_FINAL_DAYS = 4
_KIND_SALT = 0x9FB2_1C65_1E98_DF25


class Bookings:
    """Guests who book both things of a day, and guests who look."""

    name = "booking"
    promise = "truck and backhoe of a day are free, or belong to one guest who keeps them"
    functions = ("book", "bookings")
    access = Access(reads=("bookings",), final_read="bookings")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations in bursts, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, unfold(_some_operation, 0)))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return looks at the last days by every worker."""
        last = operations // _OPERATIONS_PER_DAY
        days = range(max(0, last - _FINAL_DAYS), last + 1)
        return each_thread(sequence(*(emit("bookings", _day(number)) for number in days)))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the bookings first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.bookings import BookingsChecker

        return (BookingsChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


def _some_operation(context: Context, number: int) -> tuple[Draft, int]:
    day = _day(number // _OPERATIONS_PER_DAY)
    if context.below(100, _KIND_SALT) < _BOOKINGS_OF_100:
        return Draft("book", day, f"guest-{number}"), number + 1
    return Draft("bookings", day), number + 1


def _day(number: int) -> str:
    return f"day-{number}"
