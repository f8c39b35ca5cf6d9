"""What a workload is: the operations clients perform, and the checkers that judge them."""

from __future__ import annotations

from typing import Any, Protocol

from faultline.harness.access import Access
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

__all__ = ["Checker", "Workload"]


class Checker(Protocol):
    """Judges one aspect of a finished run. Must answer within its own budget, with *unknown* if need be."""

    name: str

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """The verdict on `history`; `run` gives plan, marks and fault intervals to checkers that need them.

        A checker that looks at the test rather than at the promise (how many operations there were, whether faults met
        any) says so with an attribute `judges_the_test = True`: a run that only such checkers looked at is no pass.
        One that takes long to explain a violation may have a method `refutes` with the same parameters, which answers
        whether there is one: a probe of what a pass is worth asks many times (`faultline.harness.sensitivity`).
        """


class Workload(Protocol):
    """A named generator of client operations with what it promises and who judges it."""

    name: str
    promise: str
    functions: tuple[str, ...]
    """Every function that its operations name; a system that lacks one cannot serve it."""
    access: Access
    """What its functions do to objects; without it `read` and `get` read, and all others write."""

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Any:
        """The client operations before the heal, as a generator (see `faultline.harness.generator`).

        `operations` in all, on average `interval_us` apart over all workers together.
        """

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Any:
        """The operations after everything is healed, usually reads of every key.

        `operations` is what `generator` was asked for: it tells which keys were used last.
        """

    def checkers(self) -> tuple[Checker, ...]:
        """The checkers that judge a run of this workload, most important first.

        A workload of a plug-in may also have a method `anomalies`, which tells of a record what a pass is probed with
        (`faultline.harness.sensitivity`).
        """
