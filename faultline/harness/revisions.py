"""Positions among the changes of a store, `[index, ordinal]` in the answers of watches, and how sentences name them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["WHOLE_ENTRY", "change", "change_after", "revision"]

WHOLE_ENTRY = 1 << 30
"""The ordinal of a position after all changes of an entry; a smaller one means that some may still be to come."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def change(position: Sequence[int]) -> str:
    """Return the words for a position `[index, ordinal]`: `the first change of revision 45`, `all of revision 45`."""
    index, ordinal = position
    if ordinal >= WHOLE_ENTRY:
        return f"all of revision {index}"
    return f"the {_ORDINALS[ordinal] if ordinal < len(_ORDINALS) else f'{ordinal + 1}th'} change of revision {index}"


def revision(position: Sequence[int]) -> str:
    """Return the short words for a position, for lists: `revision 45`, later `the second change of revision 45`."""
    return f"revision {position[0]}" if position[1] in (0, WHOLE_ENTRY) else change(position)


def change_after(positions: Sequence[Sequence[int]]) -> str:
    """Return the words for two positions in the wrong order: `the first change of revision 4 after all of revision
    5`."""
    earlier, later = positions
    return f"{change(later)} after {change(earlier)}"
