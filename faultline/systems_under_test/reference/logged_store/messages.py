"""The messages of `logged-store`, and the events that its servers report.

Marks (`sometimes`), each a situation a campaign should have reached:

| mark | where | meaning |
|---|---|---|
| entries-replayed | node | a restart replayed entries that the file did not have |
| versions-read-from-file | node | a restart began with the versions in a file |
| versions-stored | node | the versions were stored in a file |
| log-cleaned | node | log files that the versions in a file make superfluous were deleted |
| torn-tail-dropped | node | a restart found a half-written record |
| repeated-request-answered | node | a repetition was logged, and answered without executing it again |
| writes-gathered | node | several writes waited for the log together |
| full-queue-refused | node | a write was refused, as too many waited |
| version-compacted-refused | node | a read at a version that is not kept any more was refused |
| client-retried | client | a request was sent again |
"""

from __future__ import annotations

import msgspec

__all__ = [
    "FULL_QUEUE",
    "MESSAGES",
    "AddToValue",
    "CommandApplied",
    "ReadValue",
    "StoreAnswer",
    "StoreOpened",
    "WriteValue",
]

FULL_QUEUE = "full-queue"
"""The error of a write that was not queued; the client sends it again."""


class ReadValue(msgspec.Struct, frozen=True, tag="read-value"):
    """A client's read of `key`: the newest value, or that at `version` unless it is 0."""

    request_number: int
    key: str
    version: int


class WriteValue(msgspec.Struct, frozen=True, tag="write-value"):
    """A client's write of `value`, a text in JSON, to `key`; a repetition carries the same number."""

    client: int
    request_number: int
    key: str
    value: str


class AddToValue(msgspec.Struct, frozen=True, tag="add-to-value"):
    """A client's addition to the number at `key`; a repetition carries the same number."""

    client: int
    request_number: int
    key: str
    amount: int


class StoreAnswer(msgspec.Struct, frozen=True, tag="store-answer"):
    """The answer to a client: what was read, or the sum of an addition, as JSON, with its version; or an error code."""

    request_number: int
    error: str | None = None
    value: str | None = None
    version: int = 0


MESSAGES: tuple[type[msgspec.Struct], ...] = (ReadValue, WriteValue, AddToValue, StoreAnswer)
"""Every message that crosses the network."""


class StoreOpened(msgspec.Struct, frozen=True, kw_only=True):
    """Trace: a server starts, with the state after the entry `applied`, whose values have this `checksum`.

    Its log ended with the entry `found` before the replay, and ends with `last` after it.
    """

    found: int
    last: int
    applied: int
    checksum: int


class CommandApplied(msgspec.Struct, frozen=True):
    """Trace: the entry at `index` was executed; all values have this `checksum` after it."""

    index: int
    checksum: int
