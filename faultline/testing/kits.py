"""The conformance kits: classes to subclass under pytest, one test per claim, and functions that check all at once.

    class TestSlate(SystemConformance):
        system = Slate
        workload = "register"
        bears = ("kill", "pause")

The inputs of a kit are class attributes; all have defaults except the plug-in itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import pytest

from faultline.harness.history import History
from faultline.harness.nemesis import Nemesis
from faultline.harness.system import NodeSystem
from faultline.harness.workload import Checker, Workload
from faultline.nemesis import Package
from faultline.testing.checker_checks import CHECKER_CHECKS, CheckerSubject
from faultline.testing.fault_checks import FAULT_CHECKS, FaultSubject
from faultline.testing.problem import Check, Problem, examine
from faultline.testing.system_behaviour import SYSTEM_BEHAVIOUR
from faultline.testing.system_shape import SYSTEM_SHAPE
from faultline.testing.system_subject import SystemSubject, workload_of
from faultline.testing.workload_checks import WORKLOAD_CHECKS, WorkloadSubject, invented_answers

__all__ = [
    "SYSTEM_CHECKS",
    "CheckerConformance",
    "FaultConformance",
    "SystemConformance",
    "WorkloadConformance",
    "check_checker",
    "check_faults",
    "check_system",
    "check_workload",
]

AnyTest = TypeVar("AnyTest", bound=Callable[..., Any])

SYSTEM_CHECKS: tuple[Check[SystemSubject], ...] = SYSTEM_SHAPE + SYSTEM_BEHAVIOUR
"""All claims about a system."""


def _claims(checks: Sequence[Check[Any]]) -> Callable[[AnyTest], AnyTest]:
    """Return one test parameter for each claim."""
    mark: Callable[[AnyTest], AnyTest] = pytest.mark.parametrize("check", checks, ids=[check.claim for check in checks])
    return mark


def _require_none(problems: Sequence[Problem]) -> None:
    if problems:
        pytest.fail("\n\n".join(map(str, problems)), pytrace=False)


def _assert_none(problems: Sequence[Problem]) -> None:
    if problems:
        raise AssertionError("\n\n".join(map(str, problems)))


class SystemConformance:
    """Tests of a `NodeSystem`: subclass it, name the class `Test…`, and set `system`.

    `workload` (a name, a class or an instance) has the operations of clients; `bears` are the fault sets under which
    the system keeps its promise; `reads` the functions that change nothing; `seeds` the number of runs for each claim.
    """

    system: ClassVar[Callable[[], NodeSystem]]
    workload: ClassVar[str | Workload | type] = "register"
    bears: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, str]] = {}
    reads: ClassVar[tuple[str, ...]] = ("read",)
    nodes: ClassVar[int] = 3
    seeds: ClassVar[int] = 3

    @_claims(SYSTEM_CHECKS)
    def test_conformance(self, check: Check[SystemSubject]) -> None:
        """Check that the claim in brackets holds."""
        kit = type(self)
        subject = SystemSubject(
            make=kit.system,
            workload=workload_of(kit.workload),
            bears=kit.bears,
            options=kit.options,
            reads=kit.reads,
            nodes=kit.nodes,
            seeds=kit.seeds,
        )
        _require_none(check.problems(subject))


class WorkloadConformance:
    """Tests of a `Workload`: set `workload`, and `system` to a correct system that serves it.

    Override `lie` where the workload's checkers are for another lie than made-up values.
    """

    workload: ClassVar[Callable[[], Workload]]
    system: ClassVar[Callable[[], NodeSystem]]
    nodes: ClassVar[int] = 3

    def lie(self, history: History) -> History:
        """Return `history` with the answers of a store that breaks the promise."""
        return invented_answers(history)

    @_claims(WORKLOAD_CHECKS)
    def test_conformance(self, check: Check[WorkloadSubject]) -> None:
        """Check that the claim in brackets holds."""
        kit = type(self)
        subject = WorkloadSubject(make=kit.workload, system=kit.system, lie=self.lie, nodes=kit.nodes)
        _require_none(check.problems(subject))


class CheckerConformance:
    """Tests of a `Checker`: set `checker`, and histories that it `accepts` and `refuses`."""

    checker: ClassVar[Callable[[], Checker]]
    accepts: ClassVar[Sequence[History]] = ()
    refuses: ClassVar[Sequence[History]] = ()

    @_claims(CHECKER_CHECKS)
    def test_conformance(self, check: Check[CheckerSubject]) -> None:
        """Check that the claim in brackets holds."""
        kit = type(self)
        _require_none(check.problems(CheckerSubject(make=kit.checker, accepts=kit.accepts, refuses=kit.refuses)))


class FaultConformance:
    """Tests of a fault set (`package`) and of the nemeses of your own that carry it out (`nemeses`)."""

    package: ClassVar[Package]
    nemeses: ClassVar[tuple[Callable[[], Nemesis], ...]] = ()

    @_claims(FAULT_CHECKS)
    def test_conformance(self, check: Check[FaultSubject]) -> None:
        """Check that the claim in brackets holds."""
        kit = type(self)
        _require_none(check.problems(FaultSubject(package=kit.package, nemeses=kit.nemeses)))


def check_system(system: Callable[[], NodeSystem], workload: str | Workload | type = "register", **about: Any) -> None:
    """Raise AssertionError with every problem of `system`; `about` as the attributes of SystemConformance."""
    _assert_none(examine(SYSTEM_CHECKS, SystemSubject(make=system, workload=workload_of(workload), **about)))


def check_workload(
    workload: Callable[[], Workload],
    system: Callable[[], NodeSystem],
    lie: Callable[[History], History] = invented_answers,
    nodes: int = 3,
) -> None:
    """Raise AssertionError with every problem of `workload`, tried on the correct `system`."""
    _assert_none(examine(WORKLOAD_CHECKS, WorkloadSubject(make=workload, system=system, lie=lie, nodes=nodes)))


def check_checker(
    checker: Callable[[], Checker], accepts: Sequence[History] = (), refuses: Sequence[History] = ()
) -> None:
    """Raise AssertionError with every problem of `checker`."""
    _assert_none(examine(CHECKER_CHECKS, CheckerSubject(make=checker, accepts=accepts, refuses=refuses)))


def check_faults(package: Package, nemeses: tuple[Callable[[], Nemesis], ...] = ()) -> None:
    """Raise AssertionError with every problem of a fault set and of the nemeses that carry it out."""
    _assert_none(examine(FAULT_CHECKS, FaultSubject(package=package, nemeses=nemeses)))
