"""Faultline's own workloads pass the kit; every claim is broken by a workload with one mistake."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from slate.system import Slate

from faultline.harness.generator import Draft, map_operations
from faultline.registry import load_workload
from faultline.testing import WorkloadConformance, check_workload
from faultline.testing.workload_checks import WORKLOAD_CHECKS, WorkloadSubject, invented_answers
from faultline.workloads.read_write import ReadWrite
from faultline.workloads.register import Register


class TestRegister(WorkloadConformance):
    workload = Register
    system = Slate


class NoPromise(Register):
    promise = ""


class NamesTooFew(Register):
    functions = ("read", "write")


class NamesTooMany(ReadWrite):
    functions = ("read", "write", "cas")


class TooMany(Register):
    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Any:
        return super().generator(workers=workers, operations=operations + 1, seed=seed, interval_us=interval_us)


def _with_tuples(draft: Draft) -> Draft:
    return Draft(draft.f, draft.key, (1, 2) if draft.f == "cas" else draft.value, draft.worker, draft.at_us)


class PlansTuples(Register):
    def generator(self, **about: Any) -> Any:
        return map_operations(_with_tuples, super().generator(**about))


class PlansByCounting(Register):
    calls = itertools.count()

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Any:
        return super().generator(
            workers=workers, operations=operations, seed=seed + next(self.calls), interval_us=interval_us
        )


class PlansByHash(Register):
    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Any:
        hashed = seed + hash("seed") % 1_000_000
        return super().generator(workers=workers, operations=operations, seed=hashed, interval_us=interval_us)


class _Judge:
    name = "judge"

    def __init__(self, verdict: str) -> None:
        self.verdict = verdict

    def check(self, history: Any, run: Any) -> Any:
        from faultline.harness.verdict import CheckResult, Verdict

        return CheckResult(checker=self.name, verdict=Verdict(self.verdict), sentence=f"after {history.f[0]}")


class AlwaysYes(Register):
    def checkers(self) -> Any:
        return (_Judge("pass"),)


class AlwaysNo(Register):
    def checkers(self) -> Any:
        return (_Judge("violation"),)


MISTAKES = {
    "no promise": (NoPromise, "declares its promise", "`promise` is ''"),
    "too few functions": (NamesTooFew, "uses its functions", "it plans 'cas'"),
    "too many functions": (NamesTooMany, "uses its functions", "'cas' was planned in none"),
    "too many operations": (TooMany, "keeps to the number", "it plans 41"),
    "tuples": (PlansTuples, "operations are plain data", "lists rather than tuples"),
    "counts calls": (PlansByCounting, "depends on the seed alone", "the second time"),
    "hash of a text": (PlansByHash, "depends on the seed alone", "in another process"),
    "always no": (AlwaysNo, "accept a correct store", "refuses a correct history"),
    "always yes": (AlwaysYes, "refuse a store that makes", "breaks no promise"),
    "no bounds": (AlwaysYes, "without operations", "IndexError"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_breaks_its_claim_and_is_told_with_what_to_do(mistake: str) -> None:
    workload, claim, told = MISTAKES[mistake]
    (check,) = [check for check in WORKLOAD_CHECKS if claim in check.claim]
    problems = check.problems(WorkloadSubject(make=workload, system=Slate, lie=invented_answers))
    assert told in "\n".join(map(str, problems))
    assert all(problem.what and problem.where and problem.next_step for problem in problems)


def test_every_claim_has_a_mistake_that_breaks_it() -> None:
    broken = [claim for _, claim, _ in MISTAKES.values()]
    assert [check.claim for check in WORKLOAD_CHECKS if not any(part in check.claim for part in broken)] == []


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("read-write", "quorum-register"),
        ("transfer", "consistent-core"),
        ("set", "consistent-core"),
        ("counter", "consistent-core"),
        ("append", "consistent-core"),
    ],
)
def test_a_workload_of_faultline_keeps_every_claim(name: str, system: str) -> None:
    from faultline.registry import load_system

    check_workload(type(load_workload(name)), type(load_system(system)))
