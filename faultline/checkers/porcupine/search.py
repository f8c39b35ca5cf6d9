"""The search for a linearization of one part of a history.

Wing & Gong's search ("Testing and verifying concurrent objects", 1993), with the memory of visited configurations that
Lowe ("Testing for linearizability", 2017) added and the linked list both use; Porcupine is the same in Go. A
configuration is the set of operations linearized so far with the state they led to. At one that was visited before the
search turns back, since all that follows depends on nothing else.

The set is kept as the bits of one Python integer. Budgets are counted in *steps*, calls of the model's step function,
so that a verdict never depends on the machine; a deadline in seconds is for interactive callers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from faultline.checkers.porcupine.budget import UNLIMITED, Budget, CheckResult, OutOfTime
from faultline.checkers.porcupine.entries import Entry, lift, link, unlift
from faultline.checkers.porcupine.model import PENDING, UNKNOWN, Model, Operation
from faultline.harness.errors import FaultlineError, UsageError

__all__ = ["UNLIMITED", "Budget", "PartResult", "check_single"]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result for one part: `linearizations` are the longest partial ones (a whole one when OK), as positions."""

    result: CheckResult
    linearizations: tuple[tuple[int, ...], ...]
    steps: int


class _Visited(Generic[State]):
    """The configurations seen so far. States are found by hash where they have one, and by `equal` within a hash."""

    def __init__(self, model: Model[State, Input, Output]) -> None:
        self._equal = model.equal
        self._hash = model.hash
        self._hashed: dict[int, set[State]] = {}
        self._listed: dict[tuple[int, Hashable], list[State]] = {}

    def add(self, linearized: int, state: State) -> bool:
        """Remember a configuration; return False when it was known already."""
        if self._equal is None:
            try:
                states = self._hashed.setdefault(linearized, set())
                size = len(states)
                states.add(state)
                return len(states) > size
            except TypeError:
                pass
        return self._add_to_list(linearized, state)

    def _add_to_list(self, linearized: int, state: State) -> bool:
        states = self._listed.setdefault((linearized, self._hash(state) if self._hash else None), [])
        if any(self._equal(state, other) if self._equal else state == other for other in states):
            return False
        states.append(state)
        return True


class _Longest:
    """For every operation the longest partial linearization that contains it, as Porcupine shows them."""

    def __init__(self, size: int) -> None:
        self._by_id: list[tuple[int, ...]] = [()] * size

    def offer(self, linearization: tuple[int, ...]) -> None:
        """Keep `linearization` for each of its operations that has no longer one."""
        for entry_id in linearization:
            if len(linearization) > len(self._by_id[entry_id]):
                self._by_id[entry_id] = linearization

    def distinct(self) -> tuple[tuple[int, ...], ...]:
        """Return the linearizations that were kept, longest first, each once."""
        kept = dict.fromkeys(linearization for linearization in self._by_id if linearization)
        return tuple(sorted(kept, key=lambda linearization: (-len(linearization), linearization)))


def check_single(
    model: Model[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    verbose: bool = False,
) -> PartResult:
    """Search a linearization of `operations`, all of one part. `verbose` also collects the longest partial ones."""
    head = link(operations)
    entry = head.next
    must_return = sum(operation.return_ != PENDING for operation in operations)
    step, state, linearized, steps = model.step_within(budget), model.init(), 0, 0
    visited: _Visited[State] = _Visited(model)
    longest = _Longest(len(operations))
    path: list[tuple[Entry[Input, Output], State]] = []
    while must_return:
        operation = entry.operation if entry is not None else None
        if entry is not None and operation is not None:
            if budget.is_spent(steps):
                longest.offer(_ids(path))
                return PartResult(CheckResult.UNKNOWN, longest.distinct(), steps)
            steps += 1
            try:
                legal, next_state = step(state, operation.input, operation.output)
            except OutOfTime:
                longest.offer(_ids(path))
                return PartResult(CheckResult.UNKNOWN, longest.distinct(), steps)
            except Exception as error:
                if operation.output is not UNKNOWN or isinstance(error, FaultlineError):
                    raise
                raise _unanswered(entry.id, operation, error) from error
            if legal and visited.add(linearized | 1 << entry.id, next_state):
                path.append((entry, state))
                state, linearized = next_state, linearized | 1 << entry.id
                must_return -= entry.match is not None
                lift(entry)
                entry = head.next
            else:
                entry = entry.next
            continue
        # A return whose call was not linearized, or the end: no further operation may come first here.
        if verbose:
            longest.offer(_ids(path))
        if not path:
            return PartResult(CheckResult.ILLEGAL, longest.distinct(), steps)
        entry, state = path.pop()
        linearized &= ~(1 << entry.id)
        must_return += entry.match is not None
        unlift(entry)
        entry = entry.next
    return PartResult(CheckResult.OK, (_ids(path),), steps)


def _unanswered(number: int, operation: Operation[Input, Output], error: Exception) -> UsageError:
    return UsageError(
        f"The model's step failed on operation {number} ({operation.input!r}), which never returned: "
        f"{type(error).__name__}: {error}.",
        "Its output is UNKNOWN, which equals everything and has no parts: let step say what such a call does.",
    )


def _ids(path: Sequence[tuple[Entry[Input, Output], State]]) -> tuple[int, ...]:
    return tuple(entry.id for entry, _ in path)
