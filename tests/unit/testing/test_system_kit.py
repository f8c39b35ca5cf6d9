"""Reference systems and the example store pass the kit; every claim is broken by a store with one mistake."""

from __future__ import annotations

from typing import Any

import bad_systems as bad
import pytest
from slate.system import Slate

from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.registry import load_system, systems
from faultline.testing import SystemConformance, check_system
from faultline.testing.kits import SYSTEM_CHECKS
from faultline.testing.system_subject import SystemSubject, workload_of

BEARS = {"consistent-core": ("leadership",), "paxos-kv": ("partition",)}
READS = ("read", "view", "read-pair")
SHIPPED = sorted(name for name, path in systems().items() if path.startswith("faultline."))


WORKLOADS = {"coordination-service": "register"}
"""Its `check` and `drain` ask the client itself, and end without an answer of a node."""


def about(name: str) -> dict[str, Any]:
    """Return the arguments of the kit for a reference system, from the first shipped campaign that has a cell of it."""
    plans = [load_plan(campaign) for campaign in ("default", *shipped_plans())]
    places = [(plan, cell) for plan in plans for cell in plan.cells() if cell.system == name and not cell.planted_bugs]
    plan, cell = next((plan, cell) for plan, cell in places if not cell.expected)
    kit = {"workload": WORKLOADS.get(name, cell.workload), "nodes": plan.nodes, "options": plan.options, "reads": READS}
    return kit | {"bears": BEARS.get(name, ()), "seeds": 2}


MISTAKES = {
    "no promise": (bad.NoPromise, "declares its name", "one sentence on its promise to clients"),
    "needs an unknown option": (bad.NeedsAnOptionThatIsNot, "need options", "no option called 'compare'"),
    "need of an unknown function": (
        bad.NamesAFunctionThatIsNot,
        "need options",
        "which is not in `functions`",
    ),
    "out of reach": (bad.hidden_class(), "imported by another process", "top level of an importable module"),
    "default that is no choice": (bad.BadDefault, "a default that can be used", "its default is refused"),
    "no summary": (bad.NoSummary, "a default that can be used", "it has no summary"),
    "option not validated": (bad.DividesByAnOption, "works or is refused", "shards=0 is neither usable nor refused"),
    "no campaign": (bad.BugWithoutCampaign, "planted bug has a name", "its campaign cannot be run"),
    "changeable messages": (bad.ChangeableMessages, "messages are frozen", "frozen=True"),
    "shared invariant": (bad.SharedInvariant, "invariants are fresh", "Make new ones at every call"),
    "no node leads": (bad.with_node(bad.NeverLeadingNode), "a node leads", "follower, follower, follower"),
    "cas unanswered": (bad.with_node(bad.IgnoresCasNode), "succeeds in calm runs", "cas never succeeded in"),
    "sends anything": (bad.with_client(bad.SendsAnythingClient), "unknown functions are refused", "no-such-function"),
    "ends twice": (bad.with_client(bad.EndsTwiceClient), "ends exactly once", "ends 2 times"),
    "never ends": (bad.with_client(bad.NeverEndsClient), "ends exactly once", "never ends"),
    "client raises": (bad.with_client(bad.CrashingClient), "ends exactly once", "raised KeyError"),
    "timeout is fail": (bad.with_client(bad.TimeoutIsFailureClient), "without an answer", "said fail (timeout)"),
    "timeout is ok": (bad.with_client(bad.TimeoutIsSuccessClient), "without an answer", "the client says ok"),
    "failure that happened": (bad.with_node(bad.RefusesLateNode), "a failure never takes", "Call 'not-primary' info"),
    "own random numbers": (bad.with_client(bad.DrawsItsOwnClient), "one seed is one run", "the second time"),
    "class variables": (bad.with_client(bad.CountsForEverClient), "one seed is one run", "the second time"),
    "hash of a text": (bad.HashesTexts, "one seed is one run", "another process (PYTHONHASHSEED="),
    "no recovery": (bad.with_node(bad.StartsOnlyOnceNode), "killed and restarted", "there is a log already"),
    "tuples in an Any": (bad.LooseMessages, "messages survive the wire", "Give its fields types"),
    "undeclared message": (bad.UndeclaredMessages, "messages survive the wire", "LooseAnswer is sent and not declared"),
    "lost writes": (bad.with_node(bad.ForgetsNode), "the promise holds", "violation:"),
}


class TestSlate(SystemConformance):
    system = Slate
    bears = ("kill", "pause", "partition")


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_a_reference_system_keeps_every_claim(name: str) -> None:
    check_system(type(load_system(name)), **about(name))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_breaks_its_claim_and_is_told_with_what_to_do(mistake: str) -> None:
    system, claim, told = MISTAKES[mistake]
    (check,) = [check for check in SYSTEM_CHECKS if claim in check.claim]
    problems = check.problems(SystemSubject(make=system, workload=workload_of("register"), bears=("kill",)))
    assert problems, f"{mistake}: no check complained"
    texts = "\n".join(map(str, problems))
    assert told in texts
    assert all(problem.what and problem.where and problem.next_step for problem in problems)


def test_every_claim_has_a_mistake_that_breaks_it() -> None:
    broken = [claim for _, claim, _ in MISTAKES.values()]
    assert [check.claim for check in SYSTEM_CHECKS if not any(part in check.claim for part in broken)] == []


def test_all_problems_come_together_outside_pytest() -> None:
    with pytest.raises(AssertionError, match="Not so: a system declares its name") as raised:
        check_system(bad.NoPromise)
    assert str(raised.value).count("Not so:") == 1


def test_what_a_plug_in_raises_is_a_problem_at_its_own_line() -> None:
    class Raises(Slate):
        def invariants(self) -> list[object]:
            raise RuntimeError("not today")

    (check,) = [check for check in SYSTEM_CHECKS if check.claim.startswith("invariants")]
    (problem,) = check.problems(SystemSubject(make=Raises, workload=workload_of("register")))
    assert "RuntimeError: not today" in problem.what
    assert "test_system_kit.py" in problem.where
