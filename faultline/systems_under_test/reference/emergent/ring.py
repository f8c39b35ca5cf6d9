"""Who watches whom where the members stand in a ring, in the order of their addresses."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["NEIGHBOURS", "neighbours"]

NEIGHBOURS = 2
"""How many members before it a member watches."""


def neighbours(own: str, members: Collection[str], direction: int, silent: Collection[str] = ()) -> list[str]:
    """The members next to `own`, in `direction` 1 or -1, up to the one with which enough of them are not silent."""
    ring = sorted(members)
    place = ring.index(own)
    found: list[str] = []
    for step in range(1, len(ring)):
        found.append(ring[(place + direction * step) % len(ring)])
        if sum(address not in silent for address in found) == NEIGHBOURS:
            break
    return found
