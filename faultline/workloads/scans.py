"""The workload `scans`: ranges of keys are read while keys come, change and go.

A few dozen keys live as long as the run. Writes bring values that no other write has; now and then a key is deleted; a
third of the operations are scans of a range, long or short, some of them without an end. After the heal every worker
scans all keys, and both halves.

The order of the keys is not the order in which they are first written: a store that splits ranges by its data must also
split in the middle.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import (
    Context,
    Draft,
    Generator,
    each_thread,
    emit,
    limit,
    sequence,
    stagger,
)
from faultline.harness.generator.chance import below
from faultline.harness.generator.core import EMPTY, PENDING, Offer
from faultline.harness.workload import Checker

__all__ = ["KeysOfScans", "Scans"]

_INTERVAL_US = 18_500
_KEYS = 24
_SCANS_PERCENT = 35
_DELETIONS_PERCENT = 10
_OPEN_ENDS_PERCENT = 30
_ACTION_SALT = 0x2545_F491_4F6C_DD1D
_KEY_SALT = 0x9E37_79B9_7F4A_7C15
_END_SALT = 0xD6E8_FEB8_6659_FD93


def _key(number: int) -> str:
    return f"k{number:02}"


class KeysOfScans(Generator, frozen=True, gc=False):
    """Writes, deletions and scans without end; the value of the next write is `next_value`."""

    next_value: int = 1

    def op(self, context: Context) -> Offer:
        """Return the drawn operation, by a free worker."""
        if not context.free:
            return PENDING, self
        worker = context.free_worker()
        drawn = below(context.chance, 100, _ACTION_SALT)
        key = _key(below(context.chance, _KEYS, _KEY_SALT))
        if drawn < _SCANS_PERCENT:
            return Draft("scan", None, [key, self._end(context, key)], worker, context.time_us), self
        if drawn < _SCANS_PERCENT + _DELETIONS_PERCENT:
            return Draft("delete", key, None, worker, context.time_us), self
        after = KeysOfScans(self.next_value + 1)
        return Draft("write", key, self.next_value, worker, context.time_us), after

    def _end(self, context: Context, start: str) -> str | None:
        """Return a key above `start`, or no end at all."""
        drawn = below(context.chance, 100, _END_SALT)
        first = int(start[1:]) + 1
        if drawn < _OPEN_ENDS_PERCENT or first >= _KEYS:
            return None
        return _key(first + drawn % (_KEYS - first))


class Scans:
    """Writes, deletions and scans of one set of keys."""

    name = "scans"
    functions = ("write", "delete", "scan")
    access = Access(reads=("scan",), whole=True)
    promise = "a scan has every key that existed throughout, once, in order, and no key that did not exist"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = _INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, KeysOfScans()))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return scans of all keys, and of both halves, by every worker."""
        if not operations:
            return EMPTY
        middle = _key(_KEYS // 2)
        ranges: tuple[list[str | None], ...] = (["", None], ["", middle], [middle, None])
        return each_thread(sequence(*(emit("scan", None, each) for each in ranges)))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of scans first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.scans import ScansChecker

        return (ScansChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))
