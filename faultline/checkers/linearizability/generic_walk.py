"""The generic search in plain Python, which the native kernel does the same way (`native/generic.c`).

As in `search`, which does the same for registers, a configuration does not grow with the history. It is the *rank* of
the next operation that must return, which of the operations open at that moment are linearized already (a bit for each
open *slot*), the number of the state, and which pending operations were used up. The facts that a register search
knows about its operations are here learnt from the model, or told by its author through hooks:

- of equal open operations only the one that returns first is tried, of equal pending ones the one called first;
- an operation that changes nothing is linearized as soon as it is legal. Every class is guessed to be such until it
  changes a state. A linearization found that way is as good as any. When none is found, the configurations that were
  visited show whether the guesses held wherever they mattered (`model_rules`). If not, the search begins again with
  those that held, and at last with none;
- a pending operation that would change nothing is not used; and a configuration is hopeless when the same one was
  visited with fewer pending operations used up;
- when an open operation is illegal and the hook `can_reach` says that nothing called before its return can help, turn
  back. This look-ahead is worth more than all the rest: a wrong turn shows where it is taken;
- states that the hook `dead` calls dead are one state.

(Wing & Gong 1993; Lowe 2017, just-in-time linearization; the configuration is that of Lee & Mathur's `fptlin`.)
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic, TypeVar

from faultline.checkers.linearizability.certificates import Configuration
from faultline.checkers.linearizability.decision import Decision, Legality
from faultline.checkers.linearizability.generic_part import CanReach, Part, Walked
from faultline.checkers.linearizability.generic_tables import ILLEGAL
from faultline.checkers.linearizability.model_rules import Refutation
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["walk_in_python"]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")

STATE_BITS = 40
"""Room for the number of a state in the key of a configuration: more states than memory holds."""

PASSES_MAX = 3
"""With all guesses, with those that held, with none."""


_Slot = tuple[int, int, int, int]
"""An open operation within a window: its bit, class and position, and the bits of equal ones that return earlier."""


@dataclass(slots=True)
class _PendingClass:
    """Equal pending operations in order of call; they own `len(positions)` bits of the used set from `offset` on."""

    class_: int
    offset: int
    positions: list[int] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)

    def count_used(self, used: int) -> int:
        """Return how many of them are in the set `used`."""
        return (used >> self.offset & ((1 << len(self.positions)) - 1)).bit_count()

    def next_unused(self, used: int, return_: float) -> int | None:
        """Return the one to be used next before `return_`; None when all that were called are used up."""
        count = self.count_used(used)
        return count if count < len(self.positions) and self.calls[count] <= return_ else None


class _Problem(Generic[State, Input, Output]):
    """A part, prepared: the operations open at the return of each completed one, and the pending ones by class."""

    def __init__(self, part: Part[State, Input, Output]) -> None:
        self.part = part
        self.operations = operations = part.operations
        self.class_of, self.machine = part.class_of, part.machine
        self._calls = [operation.call for operation in operations]
        returns = [operation.return_ for operation in operations]
        self.completed = [position for position, return_ in enumerate(returns) if return_ != PENDING]
        self.completed.sort(key=returns.__getitem__)
        self.returns = [returns[position] for position in self.completed]
        self.rank_of = {position: rank for rank, position in enumerate(self.completed)}
        self._by_call: list[Operation[Input, Output]] = []
        self._called: list[int] = []
        self.windows = self._windows()
        self.pending = self._pending()

    def _windows(self) -> list[tuple[_Slot, ...]]:
        """Return for each rank the open operations, in order of return; the first must be linearized."""
        called = [self._calls[position] for position in self.completed]
        calls = sorted(range(len(called)), key=called.__getitem__)
        self._by_call = [self.operations[self.completed[rank]] for rank in calls]
        windows: list[tuple[_Slot, ...]] = []
        free: list[int] = []
        open_: list[tuple[int, _Slot]] = []
        position = self.slots = 0
        for return_ in self.returns:
            while position < len(calls) and called[calls[position]] <= return_:
                if free:
                    slot = heappop(free)
                else:
                    slot, self.slots = self.slots, self.slots + 1
                operation = self.completed[calls[position]]
                insort(open_, (calls[position], (1 << slot, self.class_of[operation], operation, 0)))
                position += 1
            self._called.append(position)
            windows.append(_window([slot for _, slot in open_]))
            heappush(free, open_.pop(0)[1][0].bit_length() - 1)
        return windows

    def called_between(self, rank: int, position: int) -> list[Operation[Input, Output]]:
        """Return the completed operations called between the return of `rank` and that of the one at `position`."""
        return self._by_call[self._called[rank] : self._called[self.rank_of[position]]]

    def unused(self, used: int, position: int) -> list[Operation[Input, Output]]:
        """Return the pending operations not in `used` that were called before the operation at `position` returned."""
        return_ = self.operations[position].return_
        unused = [self.operations[each] for group in self.pending for each in group.positions[group.count_used(used) :]]
        return [operation for operation in unused if operation.call <= return_]

    def used_positions(self, used: int) -> tuple[int, ...]:
        """Return the positions of the pending operations in `used`."""
        return tuple(each for group in self.pending for each in group.positions[: group.count_used(used)])

    def _pending(self) -> list[_PendingClass]:
        by_class: dict[int, list[int]] = {}
        for position, operation in enumerate(self.operations):
            if operation.return_ == PENDING:
                by_class.setdefault(self.class_of[position], []).append(position)
        groups, offset = [], 0
        for class_, positions in by_class.items():
            positions.sort(key=lambda position: self.operations[position].call)
            calls: list[float] = [self.operations[position].call for position in positions]
            groups.append(_PendingClass(class_, offset, positions, calls))
            offset += len(positions)
        return groups


def _window(slots: list[_Slot]) -> tuple[_Slot, ...]:
    """Return the slots, in order of return, with their twins."""
    if len({slot[1] for slot in slots}) == len(slots):
        return tuple(slots)
    earlier: dict[int, int] = {}
    for number, (bit, class_, position, _) in enumerate(slots):
        if class_ in earlier:
            slots[number] = (bit, class_, position, earlier[class_])
        earlier[class_] = earlier.get(class_, 0) | bit
    return tuple(slots)


def walk_in_python(part: Part[State, Input, Output], budget: Budget) -> Walked:
    """Look for a linearization of `part`."""
    problem = _Problem(part)
    still, steps = set(range(len(part.told))), 0
    for number in range(PASSES_MAX):
        search = _Search(problem, still if number + 1 < PASSES_MAX else set())
        found = search.run(budget, steps)
        steps, still = found.steps, set(search.still)
        if not found.is_illegal:
            return Walked(found, found.is_legal, search.refutation)
        if problem.part.can_reach is not None:
            told = {class_ for class_, is_told in enumerate(problem.part.told) if is_told}
            still = still & told
        if search.is_tainted or search.is_cut_by_guess():
            continue
        refutation = search.refutation()
        broken = refutation.broken_guesses()
        if not broken:
            return Walked(found, not refutation.fault(), search.refutation)
        still -= broken
    raise AssertionError("a pass without guesses has none that are broken")


class _Best:
    """The path that came furthest. `unchanged`: so much of it is the beginning of the current path too."""

    def __init__(self) -> None:
        self.rank, self.unchanged = -1, 0
        self.path: list[int] = []

    def offer(self, rank: int, path: Sequence[int]) -> None:
        """Keep `path` if it came further; only what differs is copied, so that a long walk stays linear."""
        if rank > self.rank:
            self.path[self.unchanged :] = path[self.unchanged :]
            self.rank, self.unchanged = rank, len(path)


class _Search(Generic[State, Input, Output]):
    """One depth-first walk over the configurations of a problem."""

    def __init__(self, problem: _Problem[State, Input, Output], still: Collection[int]) -> None:
        """Take the classes that are guessed, or told, to change nothing."""
        self.problem, self.still = problem, set(still)
        self.is_tainted = False
        self._observed: set[int] = set()
        self._foreseen = 0
        self._rows, self._next_state = problem.machine.rows, problem.machine.next_state
        self._can_reach = problem.part.can_reach
        self._visited: dict[int, int | tuple[int, ...]] = {}
        self._hopeless: set[tuple[int, int]] = set()

    def run(self, budget: Budget, steps: int) -> Decision:
        """Walk until a linearization is found, all is visited, or the budget, of which `steps` are gone, ends."""
        windows, size, can_reach = self.problem.windows, len(self.problem.windows), self._can_reach
        rank, linearized, state, used = 0, 0, self.problem.machine.initial, 0
        path: list[int] = []
        best = _Best()
        frames: list[list[int]] = []
        while True:
            while rank < size and linearized & windows[rank][0][0]:
                linearized ^= windows[rank][0][0]
                rank += 1
            if rank == size:
                return Decision(Legality.LEGAL, "generic", tuple(path), size, steps)
            if budget.is_spent(steps):
                best.offer(rank, path)
                return Decision(Legality.UNKNOWN, "generic", tuple(best.path), best.rank, steps)
            steps += 1
            linearized = self._observe(windows[rank], linearized, state, path)
            # The next to return may just have been observed: then the frontier moves on before anything is chosen.
            if linearized & windows[rank][0][0]:
                continue
            best.offer(rank, path)
            if self._is_new(rank, linearized, state, used) and (
                can_reach is None or self._has_hope(can_reach, rank, linearized, state, used)
            ):
                frames.append([rank, linearized, state, used, len(path), 0])
            while True:
                if not frames:
                    # The look-ahead refuses for an operation that returns later than the one that was tried last.
                    refuted = max(best.rank, self._foreseen)
                    return Decision(Legality.ILLEGAL, "generic", tuple(best.path), best.rank, steps, refuted=refuted)
                rank, linearized, state, used, length, _ = frames[-1]
                del path[length:]
                best.unchanged = min(best.unchanged, length)
                choice = self._choice(frames[-1])
                if choice is not None:
                    break
                frames.pop()
            bit, state, position, use = choice
            linearized, used = linearized | bit, used | use
            path.append(position)

    def _observe(self, window: tuple[_Slot, ...], linearized: int, state: int, path: list[int]) -> int:
        """Linearize every open operation that changes nothing and is legal; return the new bits."""
        row, still = self._rows[state], self.still
        for bit, class_, position, _ in window:
            if class_ not in still or linearized & bit:
                continue
            reached = row.get(class_)
            if reached is None:
                reached = self._next_state(state, class_)
            if reached == state:
                linearized |= bit
                path.append(position)
                self._observed.add(class_)
            elif reached != ILLEGAL:
                # The guess was wrong. Orders in which the class was observed earlier stay: they are legal as they are,
                # but others were not tried.
                still.discard(class_)
                self.is_tainted = self.is_tainted or class_ in self._observed
        return linearized

    def _is_new(self, rank: int, linearized: int, state: int, used: int) -> bool:
        """Remember a configuration; return False when it was visited with no more pending operations used up."""
        key = self._key(rank, linearized, state)
        before = self._visited.get(key)
        if before is None:
            self._visited[key] = used
            return True
        # Most configurations are visited with one set only, which is kept without a tuple around it.
        explored = before if isinstance(before, tuple) else (before,)
        if any(sparing & used == sparing for sparing in explored):
            return False
        self._visited[key] = (*explored, used)
        return True

    def is_cut_by_guess(self) -> bool:
        """Return whether `can_reach` cut something off although classes were observed that are not told to be still.

        Behind such a cut nothing was looked at that could show the guess to be wrong.
        """
        told = self.problem.part.told
        return bool(self._hopeless) and not all(told[class_] for class_ in self._observed)

    def _key(self, rank: int, linearized: int, state: int) -> int:
        return (rank << self.problem.slots | linearized) << STATE_BITS | state

    def refutation(self) -> Refutation:
        """Return the configurations that were visited, as a proof."""
        problem, state_mask, slots_mask = self.problem, (1 << STATE_BITS) - 1, (1 << self.problem.slots) - 1
        found: list[Configuration] = []
        hopeless: set[int] = set()
        for key, explored in self._visited.items():
            state, linearized, rank = (
                key & state_mask,
                key >> STATE_BITS & slots_mask,
                key >> STATE_BITS + problem.slots,
            )
            ahead = tuple(position for bit, _, position, _ in problem.windows[rank] if linearized & bit)
            for used in explored if isinstance(explored, tuple) else (explored,):
                hopeless.update({len(found)} if (key, used) in self._hopeless else ())
                found.append(Configuration(rank, state, ahead, problem.used_positions(used)))
        return problem.part.refutation(self.still, found, hopeless)

    def _has_hope(
        self, can_reach: CanReach[State, Input, Output], rank: int, linearized: int, state: int, used: int
    ) -> bool:
        """Return whether, as far as the hook knows, the operations that are illegal now may become legal in time.

        The hook is asked about the next to return, and about open ones that change nothing, whose legality is known.
        """
        problem, row = self.problem, self._rows[state]
        window = problem.windows[rank]
        left: list[Operation[Input, Output]] | None = None
        for bit, class_, position, _ in window:
            if linearized & bit or not (problem.part.told[class_] or bit == window[0][0]):
                continue
            reached = row.get(class_)
            if (self._next_state(state, class_) if reached is None else reached) != ILLEGAL:
                continue
            if left is None:
                left = [problem.operations[other] for bit, _, other, _ in window if not linearized & bit]
            available = left + problem.called_between(rank, position) + problem.unused(used, position)
            if not can_reach(problem.machine.value(state), problem.operations[position], available):
                self._foreseen = max(self._foreseen, problem.rank_of[position])
                self._hopeless.add((self._key(rank, linearized, state), used))
                return False
        return True

    def _choice(self, frame: list[int]) -> tuple[int, int, int, int] | None:
        """Return the next operation to linearize in a configuration: its bit, next state, position, bit of `used`."""
        rank, linearized, state, _, _, index = frame
        window = self.problem.windows[rank]
        row = self._rows[state]
        while index < len(window):
            bit, class_, position, twins = window[index]
            index += 1
            # An equal operation that returns earlier, its twin, goes first: the two can be exchanged in any order.
            if linearized & bit or twins & ~linearized:
                continue
            reached = row.get(class_)
            if reached is None:
                reached = self._next_state(state, class_)
            if reached != ILLEGAL:
                frame[5] = index
                return bit, reached, position, 0
        return self._pending_choice(frame, index) if self.problem.pending else None

    def _pending_choice(self, frame: list[int], index: int) -> tuple[int, int, int, int] | None:
        rank, _, state, used, _, _ = frame
        pending, first = self.problem.pending, len(self.problem.windows[rank])
        for number in range(index - first, len(pending)):
            group = pending[number]
            unused = group.next_unused(used, self.problem.returns[rank])
            if unused is None:
                continue
            reached = self._rows[state].get(group.class_)
            if reached is None:
                reached = self._next_state(state, group.class_)
            if reached not in (ILLEGAL, state):
                frame[5] = first + number + 1
                return 0, reached, group.positions[unused], 1 << (group.offset + unused)
        frame[5] = first + len(pending)
        return None
