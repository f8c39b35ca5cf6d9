"""The kits of checkers and of faults: what is right passes, and every claim is broken by one mistake."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from faultline.checkers import LinearizabilityChecker
from faultline.harness.history import History
from faultline.harness.nemesis import Injection
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.verdict import CheckResult, Finding, Verdict
from faultline.nemesis import PACKAGES, Package, Recipe, StandardNemesis, struck
from faultline.testing import CheckerConformance, FaultConformance, check_checker, check_faults
from faultline.testing.checker_checks import CHECKER_CHECKS, CheckerSubject
from faultline.testing.fault_checks import FAULT_CHECKS, FaultSubject
from faultline.testing.kits import SYSTEM_CHECKS
from faultline.testing.workload_checks import WORKLOAD_CHECKS


def read_after_write(read: int) -> History:
    history = History()
    write = history.invoke(Operation(0, "write", "k0", 1), 0, 0, "athens")
    history.complete(write, ok(), 10)
    row = history.invoke(Operation(1, "read", "k0"), 20, 1, "athens")
    history.complete(row, ok(read), 30)
    return history


def register_checker() -> LinearizabilityChecker:
    return LinearizabilityChecker(model="cas-register")


class TestLinearizability(CheckerConformance):
    checker = register_checker
    accepts = (read_after_write(1),)
    refuses = (read_after_write(2),)


class Judge:
    """A checker that answers what it is told to."""

    name = "judge"

    def __init__(self, verdict: Verdict, *findings: Finding, name: str = "judge") -> None:
        self.result = CheckResult(checker=name, verdict=verdict, sentence="So it is.", findings=findings)

    def check(self, history: History, run: Any) -> CheckResult:
        return self.result


class Forgetful(Judge):
    def check(self, history: History, run: Any) -> CheckResult:
        history.result[:] = [None] * len(history)
        return self.result


def _no(rows: tuple[int, ...]) -> Judge:
    finding = Finding(checker="judge", anomaly="bad", sentence="Bad.", operations=rows)
    return Judge(Verdict.VIOLATION, finding)


CHECKER_MISTAKES = {
    "no examples": (lambda: Judge(Verdict.PASS), (), "has histories", "at least one, by hand"),
    "always no": (lambda: _no((0,)), "both", "accepts correct histories", "Report only what"),
    "always yes": (lambda: Judge(Verdict.PASS), "both", "refuses violations", "Find the violation"),
    "points nowhere": (lambda: _no((7,)), "both", "refuses violations", "points at the rows (7,)"),
    "no finding": (lambda: Judge(Verdict.VIOLATION), "both", "refuses violations", "a violation without a finding"),
    "changes it": (lambda: Forgetful(Verdict.PASS), "both", "changes nothing", "the history is changed"),
    "another name": (lambda: Judge(Verdict.PASS, name="x"), "both", "changes nothing", "the result is signed 'x'"),
    "nothing is wrong": (lambda: _no((0,)), "both", "bears a history without", "without operations is a violation"),
}


@pytest.mark.parametrize("mistake", CHECKER_MISTAKES)
def test_a_checker_with_a_mistake_breaks_its_claim(mistake: str) -> None:
    make, examples, claim, told = CHECKER_MISTAKES[mistake]
    histories = ([read_after_write(1)], [read_after_write(2)]) if examples else ([], [])
    (check,) = [check for check in CHECKER_CHECKS if claim in check.claim]
    problems = check.problems(CheckerSubject(make=make, accepts=histories[0], refuses=histories[1]))
    assert told in "\n".join(map(str, problems))


def test_the_checkers_problems_come_together() -> None:
    with pytest.raises(AssertionError, match="Report only"):
        check_checker(lambda: _no((0,)), [read_after_write(1)], [read_after_write(2)])


# -- faults -----------------------------------------------------------------------------------------------------------


class Doze(StandardNemesis[bool]):
    """Pauses like the shipped nemesis, under a kind of its own."""

    def __init__(self) -> None:
        super().__init__(
            kind="doze",
            capability="pause",
            summary="lets a process doze",
            mark="dozed",
            setting=struck,
            description="let {nodes} doze{remark}",
            complaint="awake: {missed}",
        )


class Harmless(Doze):
    def start(self, port: Any, fault: Any, seed: int) -> Injection:
        return Injection()

    def verify(self, port: Any, injection: Injection) -> str | None:
        return None


class Unproven(Doze):
    def verify(self, port: Any, injection: Injection) -> str | None:
        return "still awake"


class Needy(Doze):
    def __init__(self) -> None:
        super().__init__()
        self.needs |= {"hypnosis"}


class Late(Package):
    def plan(self, **about: Any) -> Any:
        return super().plan(**(about | {"end_us": about["end_us"] + 5_000_000}))


class Steadfast(Package):
    calls = 0

    def plan(self, **about: Any) -> Any:
        Steadfast.calls += 1
        return super().plan(**(about | {"seed": Steadfast.calls}))


RECIPES = (Recipe("doze", ("leader", "one")),)
DOZING = Package("dozing", "lets processes doze", RECIPES)


class TestDozing(FaultConformance):
    package = DOZING
    nemeses = (Doze,)


FAULT_MISTAKES = {
    "unknown need": (DOZING, (Needy,), "declare their names", "it needs hypnosis"),
    "no nemesis": (DOZING, (), "has a nemesis", "no nemesis carries out 'doze'"),
    "too late": (Late("late", "too late", RECIPES), (Doze,), "within their time", "outside the given time"),
    "counts": (Steadfast("counts", "by counting", RECIPES), (Doze,), "within their time", "the second time"),
    "not proved": (DOZING, (Unproven,), "take effect, prove it", "did not take effect: still awake"),
    "harmless": (DOZING, (Harmless,), "take effect, prove it", "doze never took effect"),
}


@pytest.mark.parametrize("mistake", FAULT_MISTAKES)
def test_faults_with_a_mistake_break_their_claim(mistake: str) -> None:
    package, nemeses, claim, told = FAULT_MISTAKES[mistake]
    (check,) = [check for check in FAULT_CHECKS if claim in check.claim]
    assert told in "\n".join(map(str, check.problems(FaultSubject(package=package, nemeses=nemeses))))


@pytest.mark.parametrize("name", ["leadership", "clocks", "retries"])
def test_a_fault_set_of_faultline_keeps_every_claim(name: str) -> None:
    check_faults(PACKAGES[name])


def test_the_reference_page_lists_every_claim_of_the_kits() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "plug-ins.md").read_text()
    claims = [
        check.claim for checks in (SYSTEM_CHECKS, WORKLOAD_CHECKS, CHECKER_CHECKS, FAULT_CHECKS) for check in checks
    ]
    assert re.findall(r"^- (.*)$", page, re.M) == claims
