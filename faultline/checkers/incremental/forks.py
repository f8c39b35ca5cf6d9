"""Long forks while transactions come and go: the incremental twin of `checkers.classic.long_fork`.

All reads of a group must be comparable: one of two sees all writes that the other does. So the reads until here form a
chain, and a read is certain to fork when it does not fit in. A value other than the one that was written to its key is
certain as well.

State: for each group a chain of at most one read more than the group has keys, and the value of each key. A value that
was read before its key was written is left to the check afterwards.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable

from faultline.checkers.common.shape import steps_of
from faultline.checkers.common.words import token
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalLongForks"]

_Sight = frozenset[Hashable]
"""The keys of a group whose writes a read saw."""


class IncrementalLongForks:
    """Writes of single keys, and reads of groups of keys."""

    name = "long-fork"

    def __init__(self) -> None:
        self._written: dict[Hashable, tuple[Hashable, int]] = {}
        self._chains: dict[_Sight, list[tuple[_Sight, int]]] = {}
        self._open: dict[int, Operation] = {}

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._open[row] = operation
        steps = steps_of(operation.value) or ()
        if len(steps) == 1 and steps[0][0] == "w":
            _, key, value = steps[0]
            self._written.setdefault(token(key), (token(value), row))

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the rows of two reads that fork, or of a wrong value, none without."""
        operation = self._open.pop(row)
        if outcome.kind != "ok":
            return ()
        steps = steps_of(operation.value if outcome.value is None else outcome.value)
        if not steps or any(f != "r" for f, _, _ in steps):
            return ()
        seen = {token(key): token(value) for _, key, value in steps}
        for key, value in seen.items():
            written = self._written.get(key)
            if value is not None and written is not None and value != written[0]:
                return (written[1], row)
        sight = frozenset(key for key, value in seen.items() if value is not None)
        return self._placed(self._chains.setdefault(frozenset(seen), []), sight, row)

    def _placed(self, chain: list[tuple[_Sight, int]], sight: _Sight, row: int) -> tuple[int, ...]:
        """Put a read into its chain, where each read sees more than the one before."""
        at = bisect_left(chain, len(sight), key=lambda link: len(link[0]))
        if at and not chain[at - 1][0] <= sight:
            return (chain[at - 1][1], row)
        if at < len(chain) and not sight <= chain[at][0]:
            return (chain[at][1], row)
        if at == len(chain) or chain[at][0] != sight:
            chain.insert(at, (sight, row))
        return ()
