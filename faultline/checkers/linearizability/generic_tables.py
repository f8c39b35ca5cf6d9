"""A user's model turned into small integers: the tables the generic search works on.

A model's states are Python objects and its step function is Python code, both slow to compare and to call. So each
state gets a number the first time it is seen, each distinct pair of input and output becomes an *operation class*, and
the model is asked for the effect of a class on a state only once. After that the search moves between numbers.

For a nondeterministic model a state of the machine is the *set* of states it may be in; the model is asked once for
each member and class, whatever sets the member occurs in.

Pairs of input and output are one class when they are equal, and built-in scalars only when their types agree too
(`True` is not `1` here). Inputs that cannot be hashed are a class of their own each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableSequence, Sequence
from typing import Any, Generic, TypeVar

from faultline.checkers.porcupine.model import Model, NondeterministicModel, Operation

__all__ = ["COMPARED_MAX", "ILLEGAL", "Interner", "Machine", "OperationClasses", "TooManyComparisons"]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")

ILLEGAL = -1
"""The next state of a class that is not legal in a state."""

COMPARED_MAX = 2_000
"""The most states that are kept where they can only be compared one by one; beyond it the port is no slower."""

_SCALARS = (bool, int, float)


class TooManyComparisons(Exception):
    """The states of a model have no hash, and there are too many to compare each with each."""


class Interner(Generic[State]):
    """Numbers for states, in order of first sight. Equality is `equal` where given, else `==`.

    `numbers` holds those that are told apart by their own hash and `==`.
    """

    def __init__(
        self,
        equal: Callable[[State, State], bool] | None = None,
        hash_: Callable[[State], Hashable] | None = None,
        dead: Callable[[State], bool] | None = None,
    ) -> None:
        self.values: list[State] = []
        self._equal, self._hash, self._dead = equal, hash_, dead
        self._dead_number: int | None = None
        self.numbers: dict[Any, int] = {}
        self._buckets: dict[Hashable, list[int]] = {}

    def number(self, value: State) -> int:
        """Return the number of `value`; all states that are dead share one."""
        if self._dead is not None and self._dead(value):
            if self._dead_number is None:
                self._dead_number = self._append(value)
            return self._dead_number
        if self._equal is None and self._hash is None:
            try:
                known = self.numbers.get(value)
            except TypeError:
                return self._compared(value, None)
            if known is None:
                known = self.numbers[value] = self._append(value)
            return known
        return self._compared(value, self._hash(value) if self._hash else None)

    def _compared(self, value: State, key: Hashable) -> int:
        bucket = self._buckets.setdefault(key, [])
        for number in bucket:
            other = self.values[number]
            if self._equal(value, other) if self._equal else value == other:
                return number
        if len(bucket) >= COMPARED_MAX:
            raise TooManyComparisons
        bucket.append(self._append(value))
        return bucket[-1]

    def _append(self, value: State) -> int:
        self.values.append(value)
        return len(self.values) - 1


class OperationClasses(Generic[Input, Output]):
    """Numbers for pairs of input and output."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Input, Output]] = []
        self._equal: dict[tuple[Input, Output], int] = {}
        self._exact: dict[Hashable, int] = {}

    def number(self, operation: Operation[Input, Output]) -> int:
        """Return the class of `operation`. Most pairs are new, so types are compared only for an equal pair."""
        pair = (operation.input, operation.output)
        try:
            known = self._equal.get(pair)
        except TypeError:
            return self._append(pair)
        if known is None:
            known = self._equal[pair] = self._append(pair)
            return known
        if _is_alike(pair, self.pairs[known]):
            return known
        exact = _exact(pair)
        if exact not in self._exact:
            self._exact[exact] = self._append(pair)
        return self._exact[exact]

    def _append(self, pair: tuple[Input, Output]) -> int:
        self.pairs.append(pair)
        return len(self.pairs) - 1


def _is_alike(one: Any, other: Any) -> bool:
    """Return whether two values that are equal are of the same types, inside tuples too."""
    if type(one) is not type(other):
        return False
    if type(one) is not tuple:
        return True
    types = list(map(type, one))
    return types == list(map(type, other)) and (tuple not in types or all(map(_is_alike, one, other)))


def _exact(value: Any) -> Any:
    """Return a stand-in for `value` that also tells scalars of different types apart, inside tuples too."""
    kind = type(value)
    if kind is tuple:
        return tuple([_exact(item) for item in value])
    return (kind, value) if kind in _SCALARS else value


class Machine(Generic[State, Input, Output]):
    """The model on numbers: `rows[state][operation class]` is the next state, or ILLEGAL, once it has been asked for.

    `initial` is the number of the first state; `next_state` fills the table.
    """

    def __init__(
        self,
        model: Model[State, Input, Output] | NondeterministicModel[State, Input, Output],
        classes: OperationClasses[Input, Output],
        dead: Callable[[State], bool] | None = None,
    ) -> None:
        self.rows: list[dict[int, int]] = []
        self._pairs = classes.pairs
        if isinstance(model, NondeterministicModel):
            choices = _Choices(model, classes)
            self.initial_value: Any = choices.initial
            self._step: Callable[[Any, Any, Any], tuple[bool, Any]] | None = None
            self._choose = choices.next_set
            self._states: Interner[Any] = Interner(None, None, _all_dead(choices, dead))
        else:
            self.initial_value = model.init()
            self._step = model.step
            self._states = Interner(model.equal, model.hash, dead)
        self.initial = self._intern(self.initial_value)

    def value(self, state: int) -> Any:
        """Return the model's own state behind a number (for a nondeterministic model a frozenset of numbers)."""
        return self._states.values[state]

    def next_state(self, state: int, class_: int) -> int:
        """Return the next state of `class_` in `state`; ask the model the first time, and remember it."""
        reached = self.rows[state].get(class_)
        if reached is None:
            reached = self.rows[state][class_] = self._ask(state, self._states.values[state], class_)
        return reached

    def ask_all(self, request: MutableSequence[int]) -> None:
        """Ask the model for steps from one state, and remember nothing.

        `request` holds the state, a number, and so many classes; the next states are put in their places.
        """
        state, end = request[0], 2 + request[1]
        value, step, pairs, find = self._states.values[state], self._step, self._pairs, self._states.numbers.get
        # This loop is most of the time of a search, so it does for the usual model what `_ask` does for all.
        for at in range(2, end):
            if step is None:
                request[at] = self._ask(state, value, request[at])
                continue
            legal, after = step(value, *pairs[request[at]])
            if not legal:
                request[at] = ILLEGAL
            elif after is value:
                request[at] = state
            else:
                try:
                    known = find(after)
                except TypeError:
                    known = None
                request[at] = self._intern(after) if known is None else known

    def _ask(self, state: int, value: Any, class_: int) -> int:
        if self._step is None:
            after = self._choose(value, class_)
            return self._intern(after) if after else ILLEGAL
        given, answer = self._pairs[class_]
        legal, next_value = self._step(value, given, answer)
        if not legal:
            return ILLEGAL
        # Most steps that change nothing return the state itself, and need not be looked up.
        return state if next_value is value else self._intern(next_value)

    def _intern(self, value: Any) -> int:
        number = self._states.number(value)
        if number == len(self.rows):
            self.rows.append({})
        return number


class _Choices(Generic[State, Input, Output]):
    """A nondeterministic model on sets of numbers."""

    def __init__(
        self, model: NondeterministicModel[State, Input, Output], classes: OperationClasses[Input, Output]
    ) -> None:
        self._model, self._pairs = model, classes.pairs
        self.states: Interner[State] = Interner(model.equal, model.hash)
        self._reached: dict[tuple[int, int], frozenset[int]] = {}
        self.initial = frozenset([self.states.number(state) for state in model.init()])

    def next_set(self, members: frozenset[int], class_: int) -> frozenset[int]:
        """Return every state that some member may be in after an operation of `class_`."""
        return frozenset().union(*[self._next(member, class_) for member in members])

    def _next(self, member: int, class_: int) -> frozenset[int]:
        reached = self._reached.get((member, class_))
        if reached is None:
            given, answer = self._pairs[class_]
            states: Sequence[State] = self._model.step(self.states.values[member], given, answer)
            reached = frozenset([self.states.number(state) for state in states])
            self._reached[member, class_] = reached
        return reached


def _all_dead(
    choices: _Choices[State, Input, Output], dead: Callable[[State], bool] | None
) -> Callable[[frozenset[int]], bool] | None:
    if dead is None:
        return None
    return lambda members: all(dead(choices.states.values[member]) for member in members)
