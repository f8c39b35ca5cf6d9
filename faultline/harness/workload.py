"""The protocols of workloads and checkers: the operations that clients perform, and the judges of their answers."""

from __future__ import annotations

from typing import Any, Protocol

from faultline.harness.access import Access
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

__all__ = ["Checker", "Workload"]


class Checker(Protocol):
    """A judge of one aspect of a finished run. It must answer within its own budget, with *unknown* if need be."""

    name: str

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return the verdict on `history`; `run` gives plan, marks and fault intervals to checkers that need them.

        A checker that judges the test rather than the promise (the number of operations, the faults that met any) sets
        the attribute `judges_the_test = True`: a run that only such checkers judged is no pass. A checker that takes
        long to explain a violation may have a method `refutes` with the same parameters, which returns whether there
        is one: the sensitivity probe asks it many times (`faultline.harness.sensitivity`).
        """


class Workload(Protocol):
    """A named generator of client operations, with its promise and its checkers."""

    name: str
    promise: str
    functions: tuple[str, ...]
    """All functions of its operations; a system that lacks one of them cannot serve the workload."""
    access: Access
    """The effect of its functions on objects; without it `read` and `get` read, and all others write.

    A workload may also have an attribute `included_in`, the name of a workload whose promise includes its own: the
    strong campaign of a system that promises that one leaves this one out.
    """

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Any:
        """Return the client operations before the heal, as a generator (see `faultline.harness.generator`).

        `operations` in all, on average `interval_us` apart over all workers together.
        """

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Any:
        """Return the operations after everything is healed, usually reads of every key.

        `operations` is the number that `generator` was given: it tells which keys were used last.
        """

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checkers that judge a run of this workload, most important first.

        A workload of a plug-in may also have a method `anomalies`, which returns the anomalies of a record for the
        sensitivity probe (`faultline.harness.sensitivity`).
        """
