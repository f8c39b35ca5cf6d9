"""Fencing tokens while operations come and go: the incremental form of `checkers.classic.fencing_tokens`.

State: the greatest token, what it was at the call of each open operation, and the tokens given since the call of the
oldest one. For writes at places of their own, as in a log, the first and the last place under each token.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import NamedTuple

__all__ = ["PlacedTokens", "Tokens"]

TOKENS_KEPT = 1_000
"""The most tokens of one resource whose places are kept."""


class _Given(NamedTuple):
    token: int
    row: int
    end: int


class _Call(NamedTuple):
    now: int
    before: _Given | None


class Tokens:
    """Tokens in real time: an operation gets no smaller token than one that had ended before its call.

    With `are_unique` no two get the same one.
    """

    def __init__(self, *, are_unique: bool) -> None:
        self._are_unique = are_unique
        self._calls: dict[int, _Call] = {}
        self._greatest: _Given | None = None
        self._recent: deque[_Given] = deque()

    def invoke(self, row: int, now: int) -> None:
        """Take the call of an operation that may be given a token."""
        self._calls[row] = _Call(now, self._greatest)

    def complete(self, row: int, now: int, token: int | None) -> tuple[int, ...]:
        """Take its end with `token`, None for none; return the rows of two tokens that conflict, none without."""
        call = self._calls.pop(row)
        if token is None:
            return ()
        before = call.before
        # A token that is given once more is either the greatest at the call or one that was given since.
        if before is not None and (token < before.token or (self._are_unique and token == before.token)):
            return (before.row, row)
        given = _Given(token, row, now)
        if self._are_unique:
            again = next((one.row for one in self._recent if one.token == token), None)
            if again is not None:
                return (again, row)
            self._remember(given)
        if self._greatest is None or token > self._greatest.token:
            self._greatest = given
        return ()

    def _remember(self, given: _Given) -> None:
        self._recent.append(given)
        oldest = next(iter(self._calls.values())).now if self._calls else given.end + 1
        while self._recent and self._recent[0].end < oldest:
            self._recent.popleft()


class PlacedTokens:
    """Tokens of writes that stand at places in one order: they never fall along it.

    As long as that holds, the places under one token lie between those under its neighbours, so a write is compared
    with two of them. Beyond TOKENS_KEPT tokens the smallest is forgotten. A write under a still smaller one is
    compared with the smallest that is left.
    """

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._spans: dict[int, tuple[tuple[int, int], tuple[int, int]]] = {}

    def add(self, row: int, token: int, place: int) -> tuple[int, ...]:
        """Take an accepted write; return the row of a write that conflicts and its row, none without a conflict."""
        # Two writes at one place stand there in the order of their rows.
        here, tokens = (place, row), self._tokens
        at = bisect_left(tokens, token)
        if at and (last := self._spans[tokens[at - 1]][1]) > here:
            return (last[1], row)
        first, last = self._spans.get(token, (here, here))
        above = at + (token in self._spans)
        if above < len(tokens) and (next_first := self._spans[tokens[above]][0]) < here:
            return (next_first[1], row)
        if token not in self._spans:
            insort(tokens, token)
        self._spans[token] = min(first, here), max(last, here)
        if len(tokens) > TOKENS_KEPT:
            del self._spans[tokens.pop(0)]
        return ()
