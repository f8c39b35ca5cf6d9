"""The messages between leader and followers of a replicated log, and their reports in the trace.

*Problem.* The messages are the interface between leader and followers, and should be readable in one place.

*Idea.* A request carries the position and the generation of the entry before the ones it brings, so that a follower can
tell whether its log continues there; an answer carries the last index that *this request* verified.

Sources: Patterns of Distributed Systems ch. 9; Ongaro and Ousterhout (2014), figure 2 (AppendEntries).
"""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry

__all__ = [
    "EntriesTruncated",
    "HighWaterMarkAdvanced",
    "PipelineDeepened",
    "ReplicationRequest",
    "ReplicationResponse",
]


class ReplicationRequest(msgspec.Struct, frozen=True, tag="replication-request"):
    """Entries to append after (`prev_log_index`, `prev_log_generation`); without entries, a heartbeat.

    `sent_us` is the leader's own clock at sending. It comes back in the response and dates the leader's lease.
    """

    leader_id: str
    generation: int
    correlation_id: int
    sent_us: int
    prev_log_index: int
    prev_log_generation: int
    high_water_mark: int
    entries: list[LogEntry]


class ReplicationResponse(msgspec.Struct, frozen=True, tag="replication-response"):
    """The answer. `replicated_log_index` is the last index verified by the request when it succeeded.

    When it failed for a gap or a conflict, it is the index after which the leader should try again.
    """

    server_id: str
    generation: int
    correlation_id: int
    sent_us: int
    succeeded: bool
    replicated_log_index: int


class HighWaterMarkAdvanced(msgspec.Struct, frozen=True):
    """Trace: the mark moved to `value`, whose entry has `entry_generation`; `leading` tells who decided it."""

    generation: int
    value: int
    entry_generation: int
    leading: bool


class EntriesTruncated(msgspec.Struct, frozen=True):
    """Trace: entries from `from_index` to `last_index` were removed, with the mark at `high_water_mark`."""

    from_index: int
    last_index: int
    high_water_mark: int


class PipelineDeepened(msgspec.Struct, frozen=True):
    """Trace: this leader has more requests in flight to one follower, `peer`, than ever before.

    `limit` is the most allowed.
    """

    peer: str
    in_flight: int
    limit: int
