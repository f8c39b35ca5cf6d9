"""The messages. They are frozen and tagged, so that real nodes can tell them apart, and have typed fields."""

from __future__ import annotations

import msgspec

__all__ = ["Answer", "Copy", "Request"]


class Request(msgspec.Struct, frozen=True, tag=True):
    """A client asks for `f` on `key`; `old` matters to a compare-and-set only."""

    number: int
    f: str
    key: str
    value: int | None = None
    old: int | None = None


class Answer(msgspec.Struct, frozen=True, tag=True):
    """The node's answer to request `number`: a value, or the reason of a refusal."""

    number: int
    value: int | None = None
    error: str | None = None


class Copy(msgspec.Struct, frozen=True, tag=True):
    """The primary's new value of `key`, for a copy."""

    key: str
    value: int
