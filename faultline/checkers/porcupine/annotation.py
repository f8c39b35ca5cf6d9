"""Notes on the time axis of a checked history."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Annotation"]


@dataclass(frozen=True, slots=True)
class Annotation:
    """A note beside a history: a point (`end` is None) or a span, at a client's row or under a `tag` of its own.

    An end before the start counts as a point. The colours are CSS colours for drawings that use them.
    """

    start: int
    description: str
    end: int | None = None
    client_id: int | None = None
    tag: str = ""
    details: str = ""
    text_color: str = ""
    background_color: str = ""
