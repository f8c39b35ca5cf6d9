"""The reports of the ends of a wire, on which its invariants are checked."""

from __future__ import annotations

import msgspec

__all__ = ["BatchExecuted", "CallAnswered"]


class BatchExecuted(msgspec.Struct, frozen=True, tag="batch-executed"):
    """A listener began the calls of request `sequence` of `sender`'s pipeline."""

    sender: str
    epoch: int
    sequence: int


class CallAnswered(msgspec.Struct, frozen=True, tag="call-answered"):
    """A caller got the answer to its call `asked`; `answered` is the call for which `peer` made it."""

    peer: str
    asked: str
    answered: str
