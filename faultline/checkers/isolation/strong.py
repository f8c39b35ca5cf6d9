"""Snapshot isolation and serializability of transactions on registers, by a search for an order of the writes.

Registers do not show the order of their writes, so both levels are NP-complete to check. Elle infers a part of it and
leaves the rest open; here the rest is searched, under a budget:

1. misreads, and cycles that read atomicity forces: linear time, and no order can repair them;
2. a guess at the order (`guess`): when it fits, the history passes in linear time, however long it is;
3. transactions that share no key, directly or through others, are judged apart (`components`);
4. each part is searched (`search`); an impossible one is cut down to the few transactions that show it (`core`).

When the budget ends, or a part has more than `transactions_max` transactions, the verdict is *unknown* with the facts
established so far: no anomaly of read atomicity, the number of possible parts, and of choices settled by necessity.

`session_order=True` asks for the strong session variants, in which a session's transactions come one after the other,
and `realtime=True` for strict serializability and strong snapshot isolation, in which a transaction comes after all
that had completed when it was invoked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from faultline.checkers.common.words import counted
from faultline.checkers.isolation.closure import Graph
from faultline.checkers.isolation.committed import (
    INITIAL,
    NONE_COMMITTED,
    Committed,
    Sessions,
    read_committed_transactions,
    restricted,
)
from faultline.checkers.isolation.contradiction import contradiction_of
from faultline.checkers.isolation.core import smallest_core
from faultline.checkers.isolation.guess import deadlines, guessed_order
from faultline.checkers.isolation.polygraph import Level, Precedence, polygraph_of
from faultline.checkers.isolation.read_atomic import forced_by_read_atomicity
from faultline.checkers.isolation.saturation import Saturation
from faultline.checkers.isolation.search import SearchResult, search
from faultline.checkers.isolation.weak import ReadAtomicChecker, findings_of_misreads, order_of
from faultline.checkers.porcupine.budget import UNLIMITED, Budget
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict

__all__ = ["STEPS_MAX", "TRANSACTIONS_MAX", "SerializabilityChecker", "SnapshotIsolationChecker"]

STEPS_MAX = 20_000_000
"""The default budget of a history in steps of search: about half a minute of one core."""

TRANSACTIONS_MAX = 25_000
"""The default size of a part that is searched: reachability is a square of it in bits."""

_STEPS_PER_S = 1_000_000
"""The steps of a second; a part of which one round alone would outlast the time limit is not begun."""

_SMALL = 100
"""The number of transactions up to which real time is no help."""

_EXCEPTIONS_MAX = 12
"""The number of contradictions with real time from which the search goes on."""

_NOTHING_FOUND = SearchResult("exhausted", 0, 0, 0)


class SerializabilityChecker:
    """A checker that the transactions behave as if they had run one by one, in some order."""

    name = "rw-serializable"
    level: Level = "serializability"

    def __init__(
        self,
        *,
        sessions: Sessions = "process",
        session_order: bool = False,
        realtime: bool = False,
        steps_max: int = STEPS_MAX,
        transactions_max: int = TRANSACTIONS_MAX,
        timeout_s: float | None = None,
    ) -> None:
        self.sessions: Sessions = sessions
        self.session_order = session_order
        self.precedence: Precedence = "realtime" if realtime else "session" if session_order else "none"
        self.steps_max = steps_max
        self.transactions_max = transactions_max
        self.timeout_s = timeout_s

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on the transactions of `history`; of `run` nothing is needed."""
        return self.judge(history, read_committed_transactions(self.name, history, self.sessions))

    def judge(self, history: History, committed: Committed) -> CheckResult:
        """Return the verdict on `committed`, the transactions of `history`."""
        budget = Budget.of(self.steps_max, self.timeout_s)
        findings = findings_of_misreads(self.name, history, committed) or self._forced_cycles(history, committed)
        if findings or len(committed.transactions) == 1:
            return self._result(history, committed, findings, "violated" if findings else "vacuous", {})
        if guessed_order(committed, self.level, self.precedence) is not None:
            return self._result(history, committed, [], "guess", {})
        return self._search(history, committed, budget)

    def order(self, committed: Committed) -> list[int] | None:
        """Return an order in which the transactions of `committed` run one by one; None when none is found."""
        budget = Budget.of(self.steps_max, self.timeout_s)
        guessed = guessed_order(committed, self.level, self.precedence)
        if guessed is not None:
            return guessed
        orders, steps = [], 0
        for members in _components(committed, self.precedence):
            result = self._search_part(
                restricted(committed, members), Budget(self.steps_max - steps, budget.deadline_s)
            )
            steps += result.steps
            if result.answer != "possible":
                return None
            orders.append([sorted(members)[number - 1] for number in result.order])
        return _joined(committed, orders, self.precedence)

    def _forced_cycles(self, history: History, committed: Committed) -> list[Finding]:
        """Return the cycles that read atomicity already forbids, under this checker's name."""
        forced = forced_by_read_atomicity(committed, session_order=self.session_order)
        order = order_of(committed, forced, self.session_order)
        teller = ReadAtomicChecker()
        teller.name, teller.level = self.name, self.level.replace("-", " ")
        return [teller.finding(history, committed, cycle, order) for cycle in order.cycles()]

    def _search(self, history: History, committed: Committed, budget: Budget) -> CheckResult:
        parts = [restricted(committed, members) for members in _components(committed, self.precedence)]
        steps, findings, results = 0, [], []
        for part in parts:
            result = self._search_part(part, Budget(self.steps_max - steps, budget.deadline_s))
            steps += result.steps
            results.append(result)
            if result.answer == "impossible":
                findings.append(self._finding(history, part, result, budget))
        answers = [result.answer for result in results]
        detail = {
            "parts": len(parts),
            "possible_parts": answers.count("possible"),
            "steps": steps,
            "choices": sum(result.choices for result in results),
            "settled_choices": sum(result.settled for result in results),
        }
        how = "violated" if findings else "exhausted" if "exhausted" in answers else "search"
        undecided = [part for part, result in zip(parts, results) if result.answer == "exhausted"]
        reason = self._reason(undecided, budget) if how == "exhausted" else None
        return self._result(history, committed, findings, how, detail, reason)

    def _reason(self, undecided: Sequence[Committed], budget: Budget) -> Reason:
        """Return the reason why the parts in `undecided` were not searched, or not to the end."""
        largest, rest_s = max(len(part.transactions) for part in undecided), budget.rest_s()
        if largest > self.transactions_max:
            return Reason(cause=Cause.SIZE, option="transactions_max", value=largest)
        if rest_s is not None and any(_steps_of_a_round(part) >= rest_s * _STEPS_PER_S for part in undecided):
            return Reason(cause=Cause.TIME)
        return Reason(cause=Cause.BUDGET, option="steps_max", value=self.steps_max)

    def _search_part(self, part: Committed, budget: Budget) -> SearchResult:
        steps, rest_s = _steps_of_a_round(part), budget.rest_s()
        is_too_large = len(part.transactions) > self.transactions_max or steps > (budget.steps_max or 0)
        if is_too_large or (rest_s is not None and steps >= rest_s * _STEPS_PER_S):
            return _NOTHING_FOUND
        if self.precedence == "realtime" or len(part.transactions) <= _SMALL:
            return search(polygraph_of(part, self.precedence), self.level, deadlines(part), budget)
        return self._search_punctual(part, budget)

    def _search_punctual(self, part: Committed, budget: Budget) -> SearchResult:
        """Search with real time, which settles nearly all pairs, and without it where that leads to a contradiction.

        An order in real time is an order. When there is none, the transactions behind the contradiction are judged
        alone; if these have an order without real time, it is taken from them, and the search goes on.
        """
        late: set[int] = set()
        expected, steps = deadlines(part), 0
        for _ in range(_EXCEPTIONS_MAX):
            punctual = [number for number in part.numbers() if number not in late]
            rest = Budget(max(0, (budget.steps_max or 0) - steps), budget.deadline_s)
            result = search(polygraph_of(part, self.precedence, punctual), self.level, expected, rest)
            steps += result.steps
            result.steps = steps
            if result.answer != "impossible" or late.issuperset(result.suspects):
                break
            few = restricted(part, result.suspects)
            alone = search(polygraph_of(few, self.precedence), self.level, deadlines(few), rest)
            steps += alone.steps
            if alone.answer == "impossible":
                return result
            late.update(result.suspects)
        if result.answer == "possible":
            return result
        rest = Budget(max(0, (budget.steps_max or 0) - steps), budget.deadline_s)
        result = search(polygraph_of(part, self.precedence), self.level, expected, rest)
        result.steps += steps
        return result

    def _finding(self, history: History, part: Committed, result: SearchResult, budget: Budget) -> Finding:
        """Return the finding of an impossible part: its smallest core, found with as many steps again, and the
        reason."""
        left = [self.steps_max]

        def is_impossible(members: Sequence[int]) -> bool:
            tried = self._search_part(restricted(part, members), Budget(left[0], budget.deadline_s))
            left[0] -= tried.steps
            return tried.answer == "impossible"

        members = list(part.numbers())
        if result.suspects and is_impossible(result.suspects):
            members = list(result.suspects)
        core = restricted(part, smallest_core(members, is_impossible))
        conflict = Saturation(polygraph_of(core, self.precedence), self.level, UNLIMITED, one_at_a_time=True).run()
        contradiction = contradiction_of(core, self.level, self.precedence, conflict)
        rows = tuple(sorted({row for number in core.numbers() for row in core.transactions[number].rows()}))
        return Finding(
            checker=self.name,
            anomaly=contradiction.anomaly,
            sentence=contradiction.sentence,
            operations=rows,
            time_us=max(max(history.complete_us[row], history.invoke_us[row]) for row in rows),
            detail={"level": self.level} | contradiction.detail,
        )

    def _result(
        self,
        history: History,
        committed: Committed,
        findings: Sequence[Finding],
        how: str,
        detail: dict[str, Any],
        reason: Reason | None = None,
    ) -> CheckResult:
        count = len(committed.transactions) - 1
        level = self.level.replace("-", " ")
        known = f"{detail.get('possible_parts', 0)} of {detail.get('parts', 0)} parts are possible"
        verdict, sentence = {
            "violated": (Verdict.VIOLATION, findings[0].sentence if findings else ""),
            "vacuous": (Verdict.VACUOUS, NONE_COMMITTED),
            "exhausted": (
                Verdict.UNKNOWN,
                f"The search for an order of {count} transactions that keeps {level} ran out of budget; read "
                f"atomicity is kept, and {known}.",
            ),
        }.get(how, (Verdict.PASS, f"All {counted(count, 'committed transaction')} keep {level}."))
        detail = {"transactions": count, "misreads": len(committed.misreads), "how": how} | detail
        return CheckResult(
            checker=self.name,
            verdict=verdict,
            sentence=sentence,
            findings=tuple(findings),
            detail=detail,
            reason=reason,
        )


class SnapshotIsolationChecker(SerializabilityChecker):
    """A checker that each transaction reads from one snapshot, and no two that overlap write the same key."""

    name = "rw-snapshot-isolation"
    level: Level = "snapshot-isolation"


def _joined(committed: Committed, orders: Sequence[Sequence[int]], precedence: Precedence) -> list[int]:
    """Return one order of all transactions that respects `orders`, those of groups that share nothing, and real time.

    There is one, since each group is an object of its own (`_components`).
    """
    polygraph = polygraph_of(committed, precedence)
    graph = Graph(polygraph.nodes)
    graph.add((known.source, known.target) for known in polygraph.known if known.kind == "rt")
    for order in orders:
        graph.add(pairwise(order))
    return polygraph.transactions_in(graph.order())


def _steps_of_a_round(committed: Committed) -> int:
    """Return the steps that one round of saturation takes at least."""
    return sum(1 + len(each.reads) + len(each.writes) for each in committed.transactions)


def _components(committed: Committed, precedence: Precedence) -> list[list[int]]:
    """Return groups of transactions that share keys, directly or through others, or sessions where those count.

    Real time joins no groups: a group is an object of its own, whose transactions can be put at moments between their
    invocation and completion, and objects that are linearizable each are so together (Herlihy & Wing, TOPLAS 1990).
    """
    parent = list(range(len(committed.transactions)))

    def find(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    first: dict[Any, int] = {}
    for number in committed.numbers():
        transaction = committed.transactions[number]
        shared = [("key", key) for key in (*transaction.writes, *(key for key, _ in transaction.reads))]
        shared += [("session", transaction.session)] if precedence == "session" else []
        for name in shared:
            parent[find(number)] = find(first.setdefault(name, number))
    components: dict[int, list[int]] = {}
    for number in committed.numbers():
        components.setdefault(find(number), []).append(number)
    assert find(INITIAL) == INITIAL
    return list(components.values())
