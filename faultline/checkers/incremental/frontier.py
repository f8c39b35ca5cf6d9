"""A register of any kind while operations come and go: the frontier of all configurations that explain it.

A configuration is one way in which the operations until now can have taken effect: the value of the register, the
changes among the open ones that took effect already, and what each open observer can have seen since its call. The
history until now is legal exactly when a configuration is left. (Wing & Gong, "Testing and verifying concurrent
objects", 1993, kept breadth-first.)

Changes take effect as late as possible, just before a return that needs them (just-in-time linearization: Lowe,
"Testing for linearizability", 2017, section 4). That loses nothing: cut any linearization before each operation that
returned; what stands between two cuts can be carried out at the later one. The answer of an open operation is not
known yet, so an observer is not placed; each configuration keeps the set of *sights* that the observer had at some
moment since its call, and the answer picks among them. A compare-and-set is both: a change that may take effect where
its expected value is, and an observer that may find another value.

A change with an unknown outcome may take effect later or never. A configuration that has carried it out is dominated by
one with the same value that has it still to do. Dominated configurations are dropped; without that they would double
with every crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from faultline.checkers.linearizability.operations import OBSERVE, WRITE, Value

__all__ = ["MATCH", "MISMATCH", "FrontierRegister", "Request", "TooManyConfigurations"]

Sight = tuple[int, Value]
"""The row of an open observer, and the answer that it would give had it looked at that moment."""

Configuration = tuple[Value, frozenset[int], frozenset[Sight]]
"""The value, the rows of open changes that took effect, and the sights of open observers."""

MISMATCH, MATCH = b"mismatch", b"match"
"""Sights of compare-and-sets. No value in canonical form is equal to them."""


class Request(NamedTuple):
    """A call: its kind, as in `linearizability.operations`, the value that it expects, and the value that it puts."""

    kind: int
    demand: Value = None
    produce: Value = None

    @property
    def changes(self) -> bool:
        """True when it can change the value: a compare-and-set of a value by itself cannot."""
        return self.kind == WRITE or (self.kind != OBSERVE and self.demand != self.produce)

    def sight(self, value: Value) -> Value:
        """Return the answer when the register holds `value`; not for writes."""
        if self.kind == OBSERVE:
            return value
        return MATCH if value == self.demand else MISMATCH


class TooManyConfigurations(Exception):
    """The frontier is larger than its budget: the register is left to the check afterwards."""


class FrontierRegister:
    """One register with all configurations of its open operations, at most `configurations_max`.

    It begins with any of `values`; `crashed` are earlier writes whose outcome stays unknown, by row. The methods that
    end an operation raise TooManyConfigurations, after which the frontier must not be used.
    """

    def __init__(
        self, values: Iterable[Value], crashed: Iterable[tuple[int, Value]] = (), *, configurations_max: int
    ) -> None:
        self._crashed: dict[int, Request] = {row: Request(WRITE, produce=value) for row, value in crashed}
        self._changes: dict[int, Request] = dict(self._crashed)
        self._observers: dict[int, Request] = {}
        self._configurations_max = configurations_max
        self._frontier: list[Configuration] = [(value, frozenset(), frozenset()) for value in values]

    @property
    def size(self) -> int:
        """The number of configurations and open operations that are kept."""
        return len(self._frontier) + len(self._changes) + len(self._observers)

    def invoke(self, row: int, request: Request) -> None:
        """Take the call of `request`."""
        if request.changes:
            self._changes[row] = request
        if request.kind != WRITE:
            self._observers[row] = request
            self._frontier = [
                (value, done, sights | {(row, request.sight(value))}) for value, done, sights in self._frontier
            ]

    def observed(self, row: int, sight: Value) -> bool:
        """Take the end of an observer that saw `sight`; return whether the history is still legal."""
        self._keep(lambda configuration: (row, sight) in configuration[2], without=row)
        return self._forget(row)

    def changed(self, row: int) -> bool:
        """Take the end of a change that certainly took effect; return whether the history is still legal."""
        self._keep(lambda configuration: row in configuration[1])
        return self._forget(row)

    def ineffective(self, row: int) -> bool:
        """Take the end of an operation that certainly had no effect; return whether the history is still legal."""
        self._frontier = [one for one in self._frontier if row not in one[1]]
        return self._forget(row)

    def crashed(self, row: int) -> None:
        """Take the end of an operation whose outcome stays unknown. It makes nothing illegal."""
        if row not in self._changes:
            self._forget(row)
            return
        self._crashed[row] = self._changes[row]
        self._observers.pop(row, None)
        self._frontier = [(value, done, _without(sights, row)) for value, done, sights in self._frontier]
        self._drop_dominated()

    def _keep(self, is_wanted: Callable[[Configuration], bool], without: int = -1) -> None:
        """Replace each configuration by all that are wanted and can follow from it by open changes but `without`.

        A wanted one is not carried further: what more can take effect does so at the return that needs it.
        """
        seen, wanted = set(self._frontier), []
        waiting = list(self._frontier)
        while waiting:
            configuration = waiting.pop()
            if is_wanted(configuration):
                wanted.append(configuration)
                continue
            for row, request in self._changes.items():
                if row == without or row in configuration[1]:
                    continue
                following = self._after(configuration, row, request)
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)
            if len(seen) > self._configurations_max:
                raise TooManyConfigurations
        self._frontier = wanted

    def _after(self, configuration: Configuration, row: int, request: Request) -> Configuration | None:
        """Return `configuration` once the change in `row` took effect; None where it cannot."""
        value, done, sights = configuration
        if request.kind != WRITE and value != request.demand:
            return None
        seen = {(observer, each.sight(request.produce)) for observer, each in self._observers.items()}
        # What a compare-and-set would have seen matters only as long as it has not taken effect itself.
        now_done = done | {row}
        kept = frozenset(sight for sight in sights | seen if sight[0] not in now_done)
        return request.produce, now_done, kept

    def _forget(self, row: int) -> bool:
        """Forget an operation that has ended, and return whether a configuration is left."""
        self._changes.pop(row, None)
        self._observers.pop(row, None)
        self._frontier = [(value, done - {row}, _without(sights, row)) for value, done, sights in self._frontier]
        self._drop_dominated()
        return bool(self._frontier)

    def _drop_dominated(self) -> None:
        """Keep of each group with equal values and equal open changes those that no other one dominates.

        A configuration dominates another one that has carried out the same changes with unknown outcomes or more of
        them, and had the same sights or fewer: what explains the rest of the history from the other explains it from
        the first.
        """
        crashed = frozenset(self._crashed)
        groups: dict[tuple[Value, frozenset[int]], list[tuple[frozenset[int], frozenset[Sight]]]] = {}
        for value, done, sights in dict.fromkeys(self._frontier):
            groups.setdefault((value, done - crashed), []).append((done & crashed, sights))
        self._frontier = [
            (value, open_done | crashed_done, sights)
            for (value, open_done), group in groups.items()
            for crashed_done, sights in _undominated(group)
        ]
        self._drop_used_up()

    def _drop_used_up(self) -> None:
        """Forget changes with unknown outcomes that every configuration has carried out."""
        used = frozenset(self._crashed).intersection(*(done for _, done, _ in self._frontier))
        if used:
            self._crashed = {row: request for row, request in self._crashed.items() if row not in used}
            self._changes = {row: request for row, request in self._changes.items() if row not in used}
            self._frontier = [(value, done - used, sights) for value, done, sights in self._frontier]


def _without(sights: frozenset[Sight], row: int) -> frozenset[Sight]:
    return frozenset(sight for sight in sights if sight[0] != row) if sights else sights


def _undominated(
    group: list[tuple[frozenset[int], frozenset[Sight]]],
) -> list[tuple[frozenset[int], frozenset[Sight]]]:
    if len(group) == 1:
        return group
    kept: list[tuple[frozenset[int], frozenset[Sight]]] = []
    # Fewest done and most sights first, so that one that dominates stands before those that it dominates.
    for done, sights in sorted(group, key=lambda one: (len(one[0]), -len(one[1]))):
        if not any(other_done <= done and other_sights >= sights for other_done, other_sights in kept):
            kept.append((done, sights))
    return kept
