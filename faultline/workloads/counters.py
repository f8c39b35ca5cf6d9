"""The workloads on numbers: `counter` and `sessions` on counters, `unique-ids` on one that is only drawn from.

An increment is the plainest operation that must not happen twice. `counter` compares each read with the increments
around it, and the reads after the heal with all of them: acknowledged ones count exactly once, those without an answer
once or not at all.

`sessions` judges each client alone by the promises of its own session (Terry et al., 1994): read your writes,
monotonic reads, monotonic writes, writes follow reads. A counter that goes up by one numbers its own versions, so no
store needs an extension: the answer to an increment is the version it made, and a read answers the version it saw.

`unique-ids` draws identifiers from a counter, and no two clients may get the same one. An increment that is executed
twice only leaves a gap; one that is acknowledged and lost gives the same number to another client.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.access import Access
from faultline.harness.generator import Context, Draft, Generator, cycle, each_thread, emit, limit, stagger
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US, Objects

__all__ = ["Counters", "Sessions", "UniqueIds"]

_KIND_SALT = 0x9FB2_1C65_1E98_DF25
_AMOUNT_SALT = 0xEB44_ACCA_B455_D165
_INCREMENTS_OF_100 = 55
_AMOUNT_MAX = 5
_IDS = "ids"


class Counters:
    """Increments and reads of a counter or two at a time."""

    name = "counter"
    promise = "every acknowledged increment counts exactly once, and no value goes back"
    functions = ("read", "increment")
    access = Access(final_read="read")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return Objects.drawn("counter", workers, seed).generator(_some_increment, operations, interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last counters by every worker."""
        return Objects.drawn("counter", workers, seed).final_reads(operations)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the bounds of each read, then values that go back; then statistics, availability, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.adapted import adapted
        from faultline.checkers.classic.counter import CounterChecker
        from faultline.checkers.classic.monotonic import MonotonicChecker

        return (
            adapted(CounterChecker(), answers=_number),
            adapted(MonotonicChecker(scope="global"), answers=_number),
            StatsChecker(),
            AvailabilityChecker(),
            VacuityChecker(self.access),
        )


class Sessions:
    """Increments by one and reads, judged client by client."""

    name = "sessions"
    promise = "each client reads its own writes, and neither its reads nor its writes go back"
    functions = ("read", "increment")
    access = Access(final_read="read")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return Objects.drawn("session", workers, seed).generator(_next_version, operations, interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last counters by every worker."""
        return Objects.drawn("session", workers, seed).final_reads(operations)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the four session guarantees first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.adapted import adapted, renamed
        from faultline.checkers.classic.sessions import SessionsChecker

        guarantees = adapted(SessionsChecker(), requests=renamed({"increment": "write"}), answers=_version)
        return (guarantees, StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


class UniqueIds:
    """Identifiers drawn from one counter."""

    name = "unique-ids"
    promise = "no identifier is handed out twice"
    functions = ("generate",)
    access = Access(reads=("generate",), writes=())

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, cycle(emit("generate", _IDS))))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return two more draws by every worker: a store that went back hands out old identifiers again."""
        return each_thread(cycle(emit("generate", _IDS), 2))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of uniqueness first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.classic.unique_ids import UniqueIdsChecker

        return (UniqueIdsChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


def _some_increment(context: Context, name: str, number: int) -> tuple[Draft, int]:
    if context.below(100, _KIND_SALT) < _INCREMENTS_OF_100:
        return Draft("increment", name, 1 + context.below(_AMOUNT_MAX, _AMOUNT_SALT)), number
    return Draft("read", name), number


def _next_version(context: Context, name: str, number: int) -> tuple[Draft, int]:
    is_write = context.below(100, _KIND_SALT) < _INCREMENTS_OF_100
    return Draft("increment" if is_write else "read", name), number


def _number(answer: Any) -> Any:
    """Return the value of a counter, which is 0 before its first increment."""
    return 0 if answer is None else answer


def _version(answer: Any) -> Any:
    """Return the version that a read saw, in the checker's shape; nothing before the first increment."""
    return None if answer is None else [answer, None]
