"""The messages of `timestamped-kv`, and the events that its nodes and clients report.

Marks that nodes and clients report with `sometimes`:

| mark | by | reached when |
|---|---|---|
| stamp-ahead-of-clock | node | a stamp was taken from a request or an earlier stamp, not from the node's own clock |
| stamp-too-far-ahead-refused | node | the client's stamp was further ahead than the node lets itself be dragged |
| clock-went-back | node | a waiting write found its clock showing less than before |
| read-waited | node | a reader had to wait for the clock, or for a pending write |
| read-restarted | client | a version lay in the uncertainty interval |
| client-retried | client | a read that was not answered was sent again |
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

__all__ = [
    "MESSAGES",
    "ReadAnswered",
    "ReadAt",
    "ReadResponse",
    "StampIssued",
    "StampLearned",
    "TimeRequest",
    "TimeResponse",
    "VersionShown",
    "WriteAcknowledged",
    "WriteBegun",
    "WriteRequest",
    "WriteResponse",
]


class TimeRequest(msgspec.Struct, frozen=True, tag="time-request"):
    """A client's question for the time at which to read; `seen` is the largest stamp it knows."""

    request_number: int
    seen: HybridTimestamp


class TimeResponse(msgspec.Struct, frozen=True, tag="time-response"):
    """The time to read at, by the clock of the asked node."""

    request_number: int
    read_time: HybridTimestamp


class ReadAt(msgspec.Struct, frozen=True, tag="read-at"):
    """A read of `key` at `read_time`; versions up to `limit_us` are too close to be placed (0: no such limit)."""

    request_number: int
    key: str
    read_time: HybridTimestamp
    limit_us: int = 0


class ReadResponse(msgspec.Struct, frozen=True, tag="read-response"):
    """The value and its stamp; or `uncertain`, the version that made the read uncertain."""

    request_number: int
    value: Any = None
    stamp: HybridTimestamp | None = None
    uncertain: HybridTimestamp | None = None


class WriteRequest(msgspec.Struct, frozen=True, tag="write-request"):
    """A client's write of `value` to `key`; `seen` is the largest stamp it knows."""

    request_number: int
    key: str
    value: Any
    seen: HybridTimestamp


class WriteResponse(msgspec.Struct, frozen=True, tag="write-response"):
    """The stamp of the write, or the code of an error."""

    request_number: int
    stamp: HybridTimestamp | None = None
    error: str | None = None


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    TimeRequest,
    TimeResponse,
    ReadAt,
    ReadResponse,
    WriteRequest,
    WriteResponse,
)
"""Every message that crosses the network."""


class StampIssued(msgspec.Struct, frozen=True):
    """Trace: a node stamped a write whose client knew of `seen`; `wall_us` is the node's clock then."""

    stamp: HybridTimestamp
    seen: HybridTimestamp
    wall_us: int


class VersionShown(msgspec.Struct, frozen=True):
    """Trace: a version became visible."""

    key: str
    stamp: HybridTimestamp


class ReadAnswered(msgspec.Struct, frozen=True):
    """Trace: a read at `read_time` was answered by a node that promises never to change the past up to it."""

    key: str
    read_time: HybridTimestamp


class StampLearned(msgspec.Struct, frozen=True):
    """Trace: a client got `stamp` from `owner`, so it is durable there; `seen` is the largest the client knows now."""

    owner: str
    stamp: HybridTimestamp
    seen: HybridTimestamp


class WriteBegun(msgspec.Struct, frozen=True):
    """Trace: a client begins a write whose stamp is promised to follow real time."""


class WriteAcknowledged(msgspec.Struct, frozen=True):
    """Trace: that write is done, at `stamp`."""

    stamp: HybridTimestamp
