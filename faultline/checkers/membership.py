"""Membership: the nodes agree on the members of the cluster, and on its coordinator.

Shape: `view`, whose result is `{"version", "coordinator", "live"}`, or a definite error of a node that serves no
client. The workload asks all nodes twice after the heal, with a pause between.

| anomaly               | views                                                                            |
|-----------------------|----------------------------------------------------------------------------------|
| disjoint-groups       | two groups without a common member served clients at one time                      |
| rival-coordinators    | the second views after the heal name different coordinators or versions              |
| missing-member        | a second view after the heal lacks a node                                            |
| still-refused         | after the heal a node still refuses its clients                                      |

Sources: Patterns of Distributed Systems ch. 29.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import counted, listed, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

__all__ = ["MembershipChecker"]

_EXPECTED = '`view` that answers {"version", "coordinator", "live"}.'

_MERGED_US = 1_500_000
"""The time that groups may take to merge: a view that was asked for sooner after the heal is not judged."""


class MembershipChecker:
    """No two disjoint groups serve, and after the heal all nodes belong to one cluster under one coordinator."""

    name = "membership"

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return the verdict on `history`; of `run` the time of the heal and the names of the nodes are needed."""
        expect_functions(self.name, history, ("view",), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        views = [row for row in range(len(history)) if history.f[row] == "view"]
        served = [row for row in views if history.outcome[row] == "ok"]
        for row in served:
            _expect_view(history, row)
        conclusion.counts["views"] = len(served)
        _judge_disjoint(conclusion, served)
        _judge_end(conclusion, _second(history, views, run.healed_us), run.plan.nodes)
        return conclusion.result(
            f"{len(served)} views never came from two disjoint groups, and at the end all nodes are in one cluster."
        )


def _expect_view(history: History, row: int) -> None:
    """Raise `UsageError` unless the operation in `row` answered a view."""
    view = history.result[row]
    is_view = (
        isinstance(view, dict) and isinstance(view.get("live"), list | tuple) and {"coordinator", "version"} <= {*view}
    )
    if not is_view:
        raise wrong_shape(MembershipChecker.name, history, row, f"answered {told(view)}", _EXPECTED)


def _second(history: History, views: Sequence[int], heal_us: int) -> list[int]:
    """Return the last view of each worker that asked at least twice after the heal, if it asked some time after."""
    asked: dict[int, list[int]] = {}
    for row in views:
        if history.invoke_us[row] >= heal_us:
            asked.setdefault(history.worker[row], []).append(row)
    last = [rows[-1] for rows in asked.values() if len(rows) > 1]
    return [row for row in last if history.invoke_us[row] >= heal_us + _MERGED_US]


def _judge_disjoint(conclusion: Conclusion, served: Sequence[int]) -> None:
    history = conclusion.history
    rows_of: dict[frozenset[str], list[int]] = {}
    for row in served:
        rows_of.setdefault(frozenset(history.result[row]["live"]), []).append(row)
    groups = list(rows_of)
    cases = [
        Case(listed(sorted(other)), together)
        for number, one in enumerate(groups)
        for other in groups[number + 1 :]
        if not one & other and (together := _at_one_time(history, rows_of[one], rows_of[other]))
    ]

    def sentence(case: Case) -> str:
        one, other = (history.result[row]["live"] for row in case.rows[:2])
        return (
            f"{history.node[case.rows[1]]} served for the group of {listed(other)}, while before and after that "
            f"{history.node[case.rows[0]]} did for that of {listed(one)}"
        )

    conclusion.accuse("disjoint-groups", cases, sentence, noun="pair")


def _at_one_time(history: History, one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """Return rows that show two groups serving at one time, one before and after the other; empty if none do.

    A group that served once and later lost all its members to another is no rival of that.
    """
    if history.complete_index[one[0]] > history.invoke_index[other[0]]:
        one, other = other, one
    return (one[0], other[0], one[-1]) if history.invoke_index[one[-1]] > history.complete_index[other[0]] else ()


def _judge_end(conclusion: Conclusion, second: Sequence[int], nodes: Sequence[str]) -> None:
    history = conclusion.history
    answered = [row for row in second if history.outcome[row] == "ok"]
    if not answered and not conclusion.findings:
        conclusion.doubt(
            "No node was asked twice after the heal, so it is unknown whether the nodes agree.", Cause.ENDED_EARLY
        )
    silent = [row for row in second if history.outcome[row] == "info"]
    if silent:
        conclusion.doubt(
            f"{counted(len(silent), 'view')} after the heal had no answer, so it is unknown whether the nodes agree.",
            Cause.INDEFINITE,
        )
    refused = [Case(history.error[row], (row,)) for row in second if history.outcome[row] == "fail"]
    conclusion.accuse(
        "still-refused",
        refused,
        lambda case: f"long after the heal {history.node[case.rows[0]]} still refused its clients ({case.what})",
        noun="view",
    )
    missing = {row: sorted(set(nodes) - set(history.result[row]["live"])) for row in answered}
    conclusion.accuse(
        "missing-member",
        [Case(listed(missing[row]), (row,)) for row in answered if missing[row]],
        lambda case: f"long after the heal {history.node[case.rows[0]]} counted {case.what} no member",
        noun="view",
    )
    conclusion.accuse("rival-coordinators", _rivals(history, answered), _rivals_told(history), noun="view")


def _rivals(history: History, answered: Sequence[int]) -> list[Case]:
    def leadership(row: int) -> tuple[str, int]:
        return history.result[row]["coordinator"], history.result[row]["version"]

    return [
        Case(leadership(row)[0], (answered[0], row)) for row in answered if leadership(row) != leadership(answered[0])
    ]


def _rivals_told(history: History) -> Callable[[Case], str]:
    def sentence(case: Case) -> str:
        one, other = (history.result[row] for row in case.rows)
        return (
            f"long after the heal {history.node[case.rows[0]]} followed {one['coordinator']} in version "
            f"{one['version']} and {history.node[case.rows[1]]} {other['coordinator']} in version {other['version']}"
        )

    return sentence
