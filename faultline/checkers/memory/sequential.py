"""Sequential consistency: one order of all operations that keeps the order of each client (Lamport 1979).

It is not local: each key may have an order, and all keys together none. So the whole history is searched. When each
read has one possible writer it is serializability of sessions, for which `isolation` has a search that settles most
pairs of writes by necessity. Otherwise the order is walked in memory: states are how far each session is and what each
key holds. Deciding sequential consistency is NP-complete (Gibbons & Korach 1997), so a budget of steps bounds both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from faultline.checkers.isolation.search import Answer, SearchResult
from faultline.checkers.isolation.strong import SerializabilityChecker
from faultline.checkers.memory.accesses import Accesses
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import OPEN, History
from faultline.harness.verdict import Verdict

__all__ = ["decide_sequential"]

_ANSWERS: Mapping[Verdict, Answer] = {
    Verdict.PASS: "possible",
    Verdict.VACUOUS: "possible",
    Verdict.VIOLATION: "impossible",
}


def decide_sequential(history: History, accesses: Accesses, budget: Budget) -> SearchResult:
    """Return whether one order explains all accesses; some that have none are the result's suspects."""
    if accesses.choices:
        return _Walk(accesses, list(accesses.committed.numbers()), budget).result()
    checker = SerializabilityChecker(session_order=True, steps_max=budget.steps_max or 0, timeout_s=budget.rest_s())
    found = checker.judge(history, accesses.committed)
    rows = {row for finding in found.findings[:1] for row in finding.operations}
    by_number = enumerate(accesses.committed.transactions)
    suspects = tuple(number for number, transaction in by_number if transaction.row in rows)
    answer = _ANSWERS.get(found.verdict, "exhausted")
    return SearchResult(answer, found.detail.get("steps", 0), 0, 0, suspects)


class _Walk:
    """A walk over the states that orders of the accesses in `members` lead to, none of them twice.

    A read that the state explains is taken at once: it changes nothing, and no later moment suits it better.
    """

    def __init__(self, accesses: Accesses, members: Sequence[int], budget: Budget) -> None:
        self.accesses, self.budget = accesses, budget
        transactions = accesses.committed.transactions
        inside = set(members)
        self.sessions = [[n for n in session if n in inside] for session in accesses.committed.sessions]
        self.needed = [sum(transactions[n].completed != OPEN for n in session) for session in self.sessions]
        keys = {accesses.by_number[n].key: None for n in members}
        self.place = {key: place for place, key in enumerate(keys)}
        self.steps = 0

    def result(self) -> SearchResult:
        """Return whether the walk finds an order, within the budget."""
        start = self._after_reads((0,) * len(self.sessions), (None,) * len(self.place))
        seen, stack = {start}, [start]
        while stack:
            places, values = stack.pop()
            if all(place >= needed for place, needed in zip(places, self.needed)):
                return SearchResult("possible", self.steps, 0, 0)
            for state in self._next(places, values):
                if state not in seen:
                    seen.add(state)
                    stack.append(state)
            if self.budget.is_spent(self.steps):
                return SearchResult("exhausted", self.steps, 0, 0)
        return SearchResult("impossible", self.steps, 0, 0, tuple(n for session in self.sessions for n in session))

    def _next(self, places: tuple[int, ...], values: tuple[Any, ...]) -> Iterator[_State]:
        for session, at in enumerate(places):
            self.steps += 1
            after = self._taken(places, values, session, at)
            if after is not None:
                yield self._after_reads(*after)

    def _taken(self, places: tuple[int, ...], values: tuple[Any, ...], session: int, at: int) -> _State | None:
        """Return the state after the next access of `session`; None when it has none, or that cannot come next."""
        if at == len(self.sessions[session]):
            return None
        access = self.accesses.by_number[self.sessions[session][at]]
        place = self.place[access.key]
        if access.reads and values[place] != access.demand:
            return None
        if access.writes:
            values = (*values[:place], access.produce, *values[place + 1 :])
        return (*places[:session], at + 1, *places[session + 1 :]), values

    def _after_reads(self, places: tuple[int, ...], values: tuple[Any, ...]) -> _State:
        for session, members in enumerate(self.sessions):
            while places[session] < len(members) and not self.accesses.by_number[members[places[session]]].writes:
                taken = self._taken(places, values, session, places[session])
                if taken is None:
                    break
                places = taken[0]
        return places, values


_State = tuple[tuple[int, ...], tuple[Any, ...]]
