"""Clauses over yes-or-no variables: a search that learns from each conflict.

Conflict-driven clause learning (Marques-Silva & Sakallah, GRASP, 1996; Moskewicz et al., Chaff, DAC 2001): a decision
is propagated through clauses with one literal left, found by watching two literals of each. A conflict is resolved back
to its first unique implication point, which gives a clause that the search never violates again, and a level to
return to. Variables of recent conflicts are decided first, each the way it was last.

A literal is a variable's number from 1 on, negative for *no*.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Clauses"]

_BUMP = 1.05
_BUMP_MAX = 1e100


class Clauses:
    """A set of clauses that grows; `solve` finds values that satisfy all of them. `steps` counts watched clauses."""

    def __init__(self) -> None:
        self.steps = 0
        self.is_refuted = False
        self._value = [0]
        self._phase = [1]
        self._level = [0]
        self._reason: list[Sequence[int]] = [()]
        self._activity = [0.0]
        self._bump = 1.0
        self._watching: dict[int, list[list[int]]] = {}
        self._trail: list[int] = []
        self._begins: list[int] = []
        self._next = 0

    def variable(self) -> int:
        """Return a new variable, which is first tried with *yes*."""
        self._value.append(0)
        self._phase.append(1)
        self._level.append(0)
        self._reason.append(())
        self._activity.append(0.0)
        self._watching[len(self._value) - 1] = []
        self._watching[1 - len(self._value)] = []
        return len(self._value) - 1

    def add(self, literals: Sequence[int]) -> None:
        """Add a clause, at least one literal of which must hold. Decisions made so far are taken back."""
        self._return_to(0)
        clause = [literal for literal in dict.fromkeys(literals) if self._of(literal) >= 0]
        if any(self._of(literal) > 0 for literal in clause):
            return
        if not clause:
            self.is_refuted = True
        elif len(clause) == 1:
            self._assign(clause[0], ())
        else:
            self._watch(clause)

    def solve(self, steps_max: int) -> bool | None:
        """Return whether all clauses can hold together; None when `steps_max` further steps do not tell."""
        limit = self.steps + steps_max
        while not self.is_refuted:
            conflict = self._propagate()
            if conflict is None:
                free = [number for number in range(1, len(self._value)) if not self._value[number]]
                if not free:
                    return True
                chosen = max(free, key=self._activity.__getitem__)
                self._begins.append(len(self._trail))
                self._assign(chosen * self._phase[chosen], ())
            elif not self._begins:
                self.is_refuted = True
            else:
                self._learn(conflict)
            if self.steps > limit:
                return None
        return False

    def holding(self) -> list[int]:
        """Return the literals that hold now, in the order in which they came to hold."""
        return self._trail

    def _of(self, literal: int) -> int:
        return self._value[literal] if literal > 0 else -self._value[-literal]

    def _assign(self, literal: int, reason: Sequence[int]) -> None:
        number = abs(literal)
        self._value[number] = self._phase[number] = 1 if literal > 0 else -1
        self._level[number], self._reason[number] = len(self._begins), reason
        self._trail.append(literal)

    def _watch(self, clause: list[int]) -> None:
        self._watching[clause[0]].append(clause)
        self._watching[clause[1]].append(clause)

    def _return_to(self, level: int) -> None:
        if len(self._begins) > level:
            begin = self._begins[level]
            for literal in self._trail[begin:]:
                self._value[abs(literal)] = 0
            del self._trail[begin:], self._begins[level:]
            self._next = min(self._next, begin)

    def _propagate(self) -> list[int] | None:
        """Assign what follows; return a clause of which no literal can hold, if there is one."""
        while self._next < len(self._trail):
            gone = -self._trail[self._next]
            self._next += 1
            watching = self._watching[gone]
            kept: list[list[int]] = []
            self._watching[gone] = kept
            for place, clause in enumerate(watching):
                self.steps += 1
                # The literal that is gone stands second, so that the first is the one a unit clause implies.
                if clause[0] == gone:
                    clause[0], clause[1] = clause[1], gone
                if self._of(clause[0]) > 0:
                    kept.append(clause)
                    continue
                other = next((k for k in range(2, len(clause)) if self._of(clause[k]) >= 0), 0)
                if other:
                    clause[1], clause[other] = clause[other], gone
                    self._watching[clause[1]].append(clause)
                    continue
                kept.append(clause)
                if self._of(clause[0]) < 0:
                    kept += watching[place + 1 :]
                    return clause
                self._assign(clause[0], clause)
        return None

    def _learn(self, conflict: Sequence[int]) -> None:
        """Resolve `conflict` back to one literal of the current level, add the result, and return to where it acts."""
        level, learned, seen = len(self._begins), [], set()
        waiting, place, clause = 0, len(self._trail), conflict
        while True:
            for literal in clause:
                number = abs(literal)
                if number in seen or not self._level[number]:
                    continue
                seen.add(number)
                self._activity[number] += self._bump
                if self._level[number] == level:
                    waiting += 1
                else:
                    learned.append(literal)
            # The next literal of this level, from the end of the trail, is resolved away until a single one is left.
            place -= 1
            while abs(self._trail[place]) not in seen:
                place -= 1
            waiting -= 1
            if not waiting:
                break
            clause = self._reason[abs(self._trail[place])]
        asserting = -self._trail[place]
        self._bump *= _BUMP
        if self._bump > _BUMP_MAX:
            self._activity = [activity / _BUMP_MAX for activity in self._activity]
            self._bump = 1.0
        learned.sort(key=lambda literal: -self._level[abs(literal)])
        self._return_to(self._level[abs(learned[0])] if learned else 0)
        if learned:
            self._watch(added := [asserting, *learned])
            self._assign(asserting, added)
        else:
            self._assign(asserting, ())
