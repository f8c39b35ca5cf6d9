"""The mapping from reads to the writes that they saw, where values repeat.

The zones need to know which write each read saw: a *read mapping* (Gibbons & Korach, "Testing shared memories", 1997,
section 4; without one the question is NP-complete). Where values repeat, real time still says it of nearly all reads. A
read of v saw a write of v that

- was called before the read returned, and
- was not *overwritten*: no other write was called after it had returned and returned before the read was called. Such a
  write stands between the two in every order.

Of the writes that returned before the read was called, only the one called last matters: it overwrites every write that
returned before its call, and the others overwrite no more. The initial value is a write that returned before all calls.

A read that can have seen no write refutes the history. Otherwise each write gets a number of its own, as if it put a
value that is put once, and a read that can have seen one write only is a read of that number. The history is
linearizable exactly when its reads can be mapped to possible writes so that the zones accept what results. Reads with
several possible writes are *unsure*. At first they are relaxed: those that only observe are left out, a compare-and-set
becomes a write. Neither makes a legal history illegal, so what the zones refuse then is refuted. The rest is
`assignment`.

A refusal names the operations on which the zones fail, and their grounds: for each read of a repeated value among them,
all writes of that value and the one that overwrote others; for each pending operation, one that saw it. The operations
named are illegal by themselves, when every other write may happen at any time or never.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from faultline.checkers.linearizability.engine.problem import INITIAL, NEVER, Problem
from faultline.checkers.linearizability.engine.zones import Contradiction, seers_of
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE

__all__ = ["Mapping", "Naming"]

PAIRS_PER_OPERATION = 2
"""The possible writes, of all unsure reads together, up to which they are assigned; the kernel has the same number."""


class Mapping:
    """The possible writes of each read.

    `mapped` is the problem, and once reads are mapped that with a number of its own for what each write puts, in which
    unsure reads constrain nothing.
    `unsure` has for each of these, in order of call, the numbers of its possible writes, that called last first.
    `not_put` is the number that no write puts.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.writes: dict[int, list[int]] = {}
        for i in problem.by_call:
            if problem.kind[i] >= WRITE:
                self.writes.setdefault(problem.produce[i], []).append(i)
        self.has_repeated = any(map(self.is_repeated, self.writes))
        self._calls: dict[int, list[int]] = {}
        self._reach: dict[int, list[int]] = {}
        self.overwriter: list[int | None] = []
        self.mapped, self.not_put = problem, INITIAL
        self.unsure: dict[int, list[int]] = {}

    def _latest_returns(self, writes: list[int]) -> list[int]:
        """Return for each of `writes` the latest return of it and those before it."""
        reach: list[int] = []
        for i in writes:
            reach.append(max(self.problem.return_at[i], reach[-1] if reach else -1))
        return reach

    def map_reads(self) -> bool:
        """Map each read to the number of the write that it saw; return False when too many are unsure.

        Raises Contradiction when a read can have seen no write.
        """
        problem, pairs = self.problem, 0
        self._calls = {value: [problem.call_at[i] for i in writes] for value, writes in self.writes.items()}
        self._reach = {value: self._latest_returns(writes) for value, writes in self.writes.items()}
        self.overwriter = _overwriters(problem)
        produce = problem.produce[:]
        for number, i in enumerate((i for i in problem.by_call if problem.kind[i] >= WRITE), start=INITIAL + 1):
            produce[i] = number
        self.not_put = sum(map(len, self.writes.values())) + 1
        self.mapped = mapped = replace(problem, kind=problem.kind[:], demand=problem.demand[:], produce=produce)
        pairs_max = PAIRS_PER_OPERATION * len(problem.kind)
        for i in problem.by_call:
            kind = problem.kind[i]
            if kind not in (OBSERVE, SWAP):
                continue
            possible = self._possible_writes(i, pairs_max - pairs)
            if possible is None:
                return False
            if not possible and problem.return_at[i] != NEVER:
                naming = Naming(self)
                naming.add_read(i)
                raise Contradiction(*naming.named)
            mapped.demand[i] = possible[0] if possible else self.not_put
            if len(possible) > 1:
                mapped.kind[i] = AVOID if kind == OBSERVE else WRITE
                self.unsure[i] = possible
                pairs += len(possible)
        return True

    def is_repeated(self, value: int) -> bool:
        """Return whether `value` is put more than once, the initial value being put once before all."""
        return len(self.writes.get(value, ())) + (value == INITIAL) > 1

    def _possible_writes(self, i: int, count_max: int) -> list[int] | None:
        """Return the numbers of the writes that the read `i` may have seen; None if more than `count_max` come up.

        A value that is put once has one possible write, seen in time or not: the zones decide that.
        """
        problem, value = self.problem, self.problem.demand[i]
        writes = self.writes.get(value, [])
        if not self.is_repeated(value):
            return [self.mapped.produce[writes[0]] if writes else INITIAL if value == INITIAL else self.not_put]
        overwriter = self.overwriter[i]
        overwritten_at = -1 if overwriter is None else problem.call_at[overwriter]
        calls, reach = self._calls.get(value, []), self._reach.get(value, [])
        possible: list[int] = []
        looked_at, place = 0, bisect_left(calls, problem.return_at[i]) - 1
        while place >= 0 and reach[place] > overwritten_at:
            if looked_at == count_max:
                return None
            looked_at += 1
            if problem.return_at[writes[place]] > overwritten_at and writes[place] != i:
                possible.append(self.mapped.produce[writes[place]])
            place -= 1
        if value == INITIAL and overwriter is None:
            if looked_at == count_max:
                return None
            possible.append(INITIAL)
        return possible


def _overwriters(problem: Problem) -> list[int | None]:
    """Return for each operation, of the writes that returned before its call, the one called last."""
    overwriters: list[int | None] = [None] * len(problem.kind)
    latest: int | None = None
    returns = iter(problem.by_return)
    done = next(returns, None)
    for i in problem.by_call:
        while done is not None and problem.return_at[done] < problem.call_at[i]:
            if problem.kind[done] >= WRITE and (latest is None or problem.call_at[done] > problem.call_at[latest]):
                latest = done
            done = next(returns, None)
        overwriters[i] = latest
    return overwriters


class Naming:
    """The operations that a refusal names, in the order in which they came up."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.named: dict[int, None] = {}
        self._with_grounds: set[int] = set()
        self._in_chain: set[int] = set()
        kinds = mapping.problem.kind
        self._writer = {mapping.mapped.produce[i]: i for i, kind in enumerate(kinds) if kind >= WRITE}
        self._seer = seers_of(mapping.mapped, self._writer)

    def add_read(self, i: int) -> None:
        """Name `i` with its grounds: of a read of a repeated value, the writes of that value and the one that overwrote
        others."""
        mapping, problem = self.mapping, self.mapping.problem
        if i in self._with_grounds:
            return
        self._with_grounds.add(i)
        self.named[i] = None
        if self._saw_repeated(i):
            self.named.update(dict.fromkeys(mapping.writes.get(problem.demand[i], ())))
            overwriter = mapping.overwriter[i]
            if overwriter is not None:
                self.named[overwriter] = None

    def add_in_chain(self, i: int | None) -> None:
        """Name `i` with all that puts it into its chain.

        If it is pending, that is one that saw it, up to one that returned. Of the compare-and-sets before it in its
        chain those are named that saw a repeated value: whether they are in the chain depends on other writes.
        """
        problem, mapped = self.mapping.problem, self.mapping.mapped
        seer = i
        while seer is not None:
            self.add_read(seer)
            is_certain = problem.return_at[seer] != NEVER or problem.kind[seer] < WRITE
            seer = None if is_certain else self._seer.get(mapped.produce[seer])
        while i is not None and i not in self._in_chain:
            self._in_chain.add(i)
            if self._saw_repeated(i):
                self.add_read(i)
            if mapped.kind[i] not in (OBSERVE, SWAP):
                return
            writer = self._writer.get(mapped.demand[i])
            i = writer if writer is not None and mapped.kind[writer] == SWAP else None

    def _saw_repeated(self, i: int) -> bool:
        problem = self.mapping.problem
        return problem.kind[i] in (OBSERVE, SWAP) and self.mapping.is_repeated(problem.demand[i])
