"""Where to split a key-range partition: the key at which half of its bytes, or half of its requests, are reached.

Both are one rule over weighted keys. The key is never the first, so that there is something on both sides; a partition
that has one key only cannot be split, however large that is (KRP-R11).

Sources: Patterns of Distributed Systems ch. 20; CockroachDB splits ranges by load at a key that divides the requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["middle_key", "middle_of_requests"]


def middle_key(weights: Sequence[tuple[str, int]]) -> str | None:
    """The first key before which half of all weight lies, the last one at the latest; None for fewer than two keys."""
    half = sum(weight for _, weight in weights) / 2
    before = 0
    for number, (key, weight) in enumerate(weights):
        if number and (before >= half or number == len(weights) - 1):
            return key
        before += weight
    return None


def middle_of_requests(requests: Mapping[str, int]) -> str | None:
    """The key that halves the requests which were counted by key; None when all were for one key."""
    return middle_key(sorted(requests.items()))
