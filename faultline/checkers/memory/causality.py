"""The causal models and PRAM, decided by patterns that must not occur, in polynomial time.

An access *happened before* another one when a chain of sessions' orders and of reads leads from the one to the other.
Bouajjani, Enea, Guerraoui, Hamza, "On Verifying Causal Consistency" (POPL 2017), show that a history in which each read
has one possible writer keeps a causal model exactly when none of a few patterns occurs (their table 1):

| model                | must not occur, besides a cycle of happened-before                                          |
|----------------------|---------------------------------------------------------------------------------------------|
| `weak-causal`        | a read of a write that happened before another write of the key, which the reader knew       |
| `causal-convergence` | a cycle when each write that a reader knew, and did not read, is put before the one it read  |
| `causal-memory`      | the same cycle for one session alone, whose reads are put into one order with all writes     |
| `PRAM`               | the cycle of causal memory, without happened-before: sessions' orders and own reads alone    |

PRAM (Lipton & Sandberg 1988) is not in that paper. Its argument for causal memory holds for it: the reads of the
session are in one order, so each forced order of two writes is forced in every order that explains them, and what stays
open can be chosen without a new cycle.

Causal memory and PRAM are decided session by session. The clocks of `isolation.causal` are made to grow: each forced
order joins the clock of one write into that of another, and what follows is propagated until nothing changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from faultline.checkers.isolation.causal import CELLS_MAX, forced_by_causality, happened_before
from faultline.checkers.isolation.committed import INITIAL, Committed
from faultline.checkers.isolation.order import Edge, Order
from faultline.checkers.isolation.search import SearchResult
from faultline.checkers.isolation.weak import order_of
from faultline.checkers.porcupine.budget import Budget

__all__ = ["CausalModel", "decide_causal"]

CausalModel = Literal["weak-causal", "causal-convergence", "causal-memory", "PRAM"]


def decide_causal(model: CausalModel, committed: Committed, budget: Budget) -> SearchResult:
    """Return whether the accesses keep `model`; those that show that they do not are the result's suspects."""
    if len(committed.transactions) * max(1, len(committed.sessions)) > CELLS_MAX:
        return SearchResult("exhausted", 0, 0, 0)
    if model == "PRAM":
        return _each_session(committed, _session_clocks(committed), False, budget)
    clocks = happened_before(committed)
    if clocks is None:
        cycle = order_of(committed, (), session_order=True).cycles(1)[0]
        return _impossible(edge.source for edge in cycle)
    if model == "causal-memory":
        return _each_session(committed, clocks.tolist(), True, budget)
    forced = list(forced_by_causality(committed, clocks))
    order = order_of(committed, forced if model == "causal-convergence" else (), session_order=True)
    if model == "causal-convergence":
        cycles = order.cycles(1)
        return _impossible(_members(order, cycles[0])) if cycles else _POSSIBLE
    for edge in forced:
        target = committed.transactions[edge.target]
        if edge.target == INITIAL:
            return _impossible(_members(order, [edge]))
        if clocks[edge.source, target.session] > target.place:
            before = order.chain(edge.target, edge.source)
            return _impossible([*_members(order, [edge]), *before])
    return _POSSIBLE


_POSSIBLE = SearchResult("possible", 0, 0, 0)


def _impossible(members: Iterable[int], steps: int = 0) -> SearchResult:
    suspects = tuple(sorted({number for number in members if number > INITIAL}))
    return SearchResult("impossible", steps, 0, 0, suspects=suspects)


def _members(order: Order, edges: Sequence[Edge]) -> Iterator[int]:
    """Yield the accesses behind `edges`: their ends, and those through which a reader knew of a write."""
    for edge in edges:
        yield from (edge.source, edge.target)
        if edge.kind == "forced":
            yield edge.reader
            yield from order.chain(edge.source, edge.reader)


def _session_clocks(committed: Committed) -> list[list[int]]:
    """Return the vector clocks of accesses that know only the earlier accesses of their own session."""
    clocks = [[0] * max(1, len(committed.sessions)) for _ in committed.transactions]
    for number in committed.numbers():
        transaction = committed.transactions[number]
        clocks[number][transaction.session] = transaction.place + 1
    return clocks


def _each_session(committed: Committed, clocks: list[list[int]], is_causal: bool, budget: Budget) -> SearchResult:
    steps = 0
    for session in range(len(committed.sessions)):
        view = _View(committed, session, clocks, is_causal, budget, steps)
        answer = view.answer()
        steps = view.steps
        if answer != "possible":
            return _impossible(view.suspects, steps) if answer == "impossible" else SearchResult(answer, steps, 0, 0)
    return SearchResult("possible", steps, 0, 0)


class _Step(NamedTuple):
    """An arc of a view: by a session's order or a read, or forced by the access `reader`."""

    target: int
    reader: int = -1


class _View:
    """The order of all writes and of one session's reads, as far as these reads force it."""

    def __init__(
        self, committed: Committed, session: int, clocks: list[list[int]], is_causal: bool, budget: Budget, steps: int
    ) -> None:
        self.committed, self.transactions = committed, committed.transactions
        self.session, self.budget, self.steps = session, budget, steps
        self.clocks = list(map(list.copy, clocks))
        self.after: list[list[_Step]] = [[] for _ in self.transactions]
        self.suspects: set[int] = set()
        self.own = set(committed.sessions[session])
        self.waiting = deque(number for number in committed.sessions[session] if self.transactions[number].reads)
        self.reads_to_add: list[tuple[int, int]] = []
        for number, (_, writer) in committed.reads_from():
            if is_causal and writer != INITIAL:
                self.after[writer].append(_Step(number))
            elif writer != INITIAL and number in self.own:
                self.reads_to_add.append((writer, number))
        self.writes = _writes_by_key(committed)

    def answer(self) -> Literal["possible", "impossible", "exhausted"]:
        """Force what follows from each read, until nothing new does, an order has a cycle, or the budget is spent."""
        for writer, reader in self.reads_to_add:
            if not self._put_before(writer, _Step(reader)):
                return "impossible"
        while self.waiting:
            number = self.waiting.popleft()
            for key, writer in self.transactions[number].reads:
                if not self._examine(number, key, writer):
                    return "impossible"
            if self.steps > (self.budget.steps_max or self.steps) or self.budget.is_over():
                return "exhausted"
        return "possible"

    def _examine(self, reader: int, key: Any, writer: int) -> bool:
        """Put each other write of `key` that the reader knows before the one that it saw.

        Of a session's writes the last that is known suffices: its session puts the others before that.
        """
        clock, known = self.clocks[reader], self.transactions[writer]
        for session, (places, numbers) in self.writes.get(key, {}).items():
            self.steps += 1
            # The reader's own write of the key, when it is a compare-and-set, comes after its read.
            end = self.transactions[reader].place if session == self.session else clock[session]
            at = bisect_left(places, end) - 1
            if at < 0 or numbers[at] == writer:
                continue
            if writer == INITIAL:
                self._suspect(numbers[at], reader)
                return False
            if session == known.session and places[at] < known.place:
                continue
            if not self._put_before(numbers[at], _Step(writer, reader)):
                return False
        return True

    def _put_before(self, source: int, step: _Step) -> bool:
        """Add an arc from `source`, and what follows; return False when it closes a cycle."""
        before, after = self.transactions[source], self.transactions[step.target]
        if self.clocks[step.target][before.session] > before.place:
            return True
        if self.clocks[source][after.session] > after.place:
            self._suspect(step.target, source)
            if step.reader >= 0:
                self._suspect(source, step.reader)
            return False
        self.after[source].append(step)
        changed = deque(((source, step.target),))
        while changed:
            earlier, later = changed.popleft()
            self.steps += 1
            clock, joined = self.clocks[later], self.clocks[earlier]
            if all(map(int.__ge__, clock, joined)):
                continue
            self.clocks[later] = list(map(max, clock, joined))
            if later in self.own and self.transactions[later].reads:
                self.waiting.append(later)
            changed.extend((later, arc.target) for arc in self._arcs(later))
        return True

    def _arcs(self, number: int) -> Iterator[_Step]:
        members = self.committed.sessions[self.transactions[number].session]
        place = self.transactions[number].place + 1
        if place < len(members):
            yield _Step(members[place])
        yield from self.after[number]

    def _suspect(self, source: int, target: int) -> None:
        """Add the accesses on a way from `source` to `target`, and on the ways that forced its arcs, to the suspects.

        Accesses in the middle of a session's order are left out: the order holds without them.
        """
        looking, seen = [(source, target)], set()
        while looking:
            ends = looking.pop()
            if ends in seen:
                continue
            seen.add(ends)
            self.suspects.update(ends)
            for earlier, arc in self._way(*ends):
                if arc.target not in self.committed.sessions[self.transactions[earlier].session]:
                    self.suspects.update((earlier, arc.target))
                if arc.reader >= 0:
                    looking.append((earlier, arc.reader))

    def _way(self, source: int, target: int) -> list[tuple[int, _Step]]:
        arrived: dict[int, tuple[int, _Step]] = {}
        queue = deque((source,))
        while queue and target not in arrived and source != target:
            number = queue.popleft()
            for arc in self._arcs(number):
                if arc.target not in arrived and arc.target != source:
                    arrived[arc.target] = (number, arc)
                    queue.append(arc.target)
        way, number = [], target
        while number in arrived:
            way.append(arrived[number])
            number = arrived[number][0]
        return way


def _writes_by_key(committed: Committed) -> dict[Any, dict[int, tuple[list[int], list[int]]]]:
    """Return, by key and session, the places and numbers of the writes, in the session's order."""
    writes: dict[Any, dict[int, tuple[list[int], list[int]]]] = {}
    for number in committed.numbers():
        transaction = committed.transactions[number]
        for key in transaction.writes:
            places, numbers = writes.setdefault(key, {}).setdefault(transaction.session, ([], []))
            places.append(transaction.place)
            numbers.append(number)
    return writes
