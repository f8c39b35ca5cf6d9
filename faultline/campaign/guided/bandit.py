"""A bandit: which of several arms to play next, from the rewards of those played before.

It is discounted UCB (Garivier and Moulines, "On upper-confidence bound policies for switching bandit problems", ALT
2011): rewards fade, because an arm that showed much that was new has less left to show. Fading bounds the number of
plays, so that the logarithm of UCB1 is a constant here. That leaves arithmetic which every machine rounds alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

__all__ = ["Bandit"]

_KEPT = 0.995
"""The share of its weight that a result keeps with each later one: the last 200 count."""
_BONUS = 1.0
"""The weight of an arm's uncertainty against its reward."""

Arm = TypeVar("Arm")


class Bandit(Generic[Arm]):
    """The choice among `arms`. Plays of one wave are chosen before any of them is rewarded."""

    def __init__(self, arms: Iterable[Arm]) -> None:
        self._plays = dict.fromkeys(arms, 0.0)
        self._rewards = dict.fromkeys(self._plays, 0.0)
        self._pending = dict.fromkeys(self._plays, 0)

    def choose(self, among: Sequence[Arm] = ()) -> Arm:
        """Return the arm with the greatest upper confidence bound, the first of equal ones, and count it as played.

        Only those in `among` are compared, where any are given.
        """
        chosen = max(among or self._plays, key=self._bound)
        self._pending[chosen] += 1
        return chosen

    def learn(self, results: Iterable[tuple[Arm, float]]) -> None:
        """Take the rewards, from 0 to 1, of the plays chosen since the last call. Plays without a result are
        forgotten."""
        for arm, reward in results:
            for each in self._plays:
                self._plays[each] *= _KEPT
                self._rewards[each] *= _KEPT
            self._plays[arm] += 1
            self._rewards[arm] += reward
        self._pending = dict.fromkeys(self._plays, 0)

    def _bound(self, arm: Arm) -> float:
        plays = self._plays[arm] + self._pending[arm]
        if not plays:
            return math.inf
        # An arm without results yet is taken to reward always, so that each is tried.
        mean = self._rewards[arm] / self._plays[arm] if self._plays[arm] else 1.0
        return mean + math.sqrt(_BONUS / plays)
