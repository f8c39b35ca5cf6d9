"""The reports of a server of a replicated log about itself, beside the events of the patterns it is built from.

Marks (`sometimes`), each a situation a campaign should have reached:

| mark | where | meaning |
|---|---|---|
| leader-elected, leader-changed | election | a leader of the first, of a later generation |
| pre-vote-refused | election | a server that still hears its leader, or has a newer log, said no in advance |
| vote-refused-stale-log | election | a candidate whose log is behind was refused |
| vote-refused-leader-known | election | leader-lease mode: refused because a leader may hold a lease |
| old-generation-vote-ignored | election | a vote of an election that is over arrived |
| deposed-leader-stepped-down | election | a leader learned of a higher generation |
| leader-stepped-down-without-quorum | node | a leader heard no majority for two election timeouts |
| old-generation-request-refused | node | a deposed leader's request was refused |
| entries-truncated | replicated log | conflicting entries were cut off |
| old-generation-entry-held-back | replicated log | a majority stores an old generation's entry; not enough |
| in-flight-go-back | replicated log | requests were lost or refused; the leader goes back and sends again |
| requests-in-flight-together | replicated log | a leader sent a request before the one before it was answered |
| commands-batched | append batches | several commands were appended and flushed as one |
| old-round-vote-answered | Zab's election | a server still voted in a round that is over |
| settled-leader-joined | Zab's election | a server joined the leader that the others follow |
| promise-of-a-longer-log-not-counted | agreement | a voter's log reaches further than that of the chosen server |
| entries-stamped-anew | collecting election | a new leader put entries of before under its generation |
| collected-entries-differed | collecting election | two servers held different entries, or stamps, at one index |
| follower-brought-in-line | collected log | a follower put the leader's entries in the place of its own |
| leader-key-expired | leader key store | the key was not refreshed in time |
| leader-key-gone-when-read | external store | the key went between a failed creation and the read |
| leader-key-not-refreshed, leader-key-lost | external store | a leader could not refresh its key; found it gone |
| leader-key-given-back | external store | the owner of the key found no majority for its generation |
| own-leader-key-of-before-given-back | external store | a restarted server found that it still owns the key |
| lease-expired-read-refused | leader reads | a read found the lease expired |
| sessions-expired | sessions | the leader's proposal to end idle sessions was applied |
| expired-session-refused | sessions | a request without a session was refused |
| discarded-request-refused | sessions | a retry came when its answer had been discarded |
| duplicate-answered | sessions | a retry was answered without executing it again |
| torn-tail-dropped | node | a restart found a half-written record |
| snapshot-taken | compaction | the state was stored under the index of the last applied entry |
| log-cleaned | compaction | log files below the low-water mark were deleted |
| snapshot-installed | compaction | a follower that needed deleted entries took over the leader's snapshot |
| damaged-snapshot-refused | compaction | a snapshot that was sent did not fit its checksum |
| client-registered-anew | client | its session had expired; the outcome of the operation is unknown |
| client-redirected, client-retried | client | a request went to another server |
"""

from __future__ import annotations

import msgspec

__all__ = [
    "AnsweredWithoutLeading",
    "DuplicateAnswered",
    "EntryApplied",
    "NodeStarted",
    "SessionsEnded",
    "SessionsSeen",
    "SnapshotTaken",
    "StateRestored",
]


class NodeStarted(msgspec.Struct, frozen=True):
    """Trace: a new process recovered this generation, and a log that ends at `last_index`."""

    generation: int
    last_index: int


class SessionsEnded(msgspec.Struct, frozen=True):
    """Trace: the entry at `index` ended the sessions of these clients, idle for `timeout_us` or longer."""

    index: int
    client_ids: tuple[int, ...]
    timeout_us: int


class SessionsSeen(msgspec.Struct, frozen=True):
    """Trace: the sessions after the entry at `index`: how many, a checksum of all, and the most answers of one client.

    Only at every 32nd entry: a checksum over all sessions costs more than applying an entry.
    """

    index: int
    sessions: int
    checksum: int
    responses_most: int
    responses_max: int | None


class DuplicateAnswered(msgspec.Struct, frozen=True):
    """Trace: an entry repeated a request that had been executed; `checksum` is that of the answer it got."""

    client_id: int
    request_number: int
    checksum: int


class EntryApplied(msgspec.Struct, frozen=True):
    """Trace: the entry at `index` was applied; `executed` says whether its command ran (it did not if a duplicate).

    `checksum` is the CRC-32 of the entry's data; `client_id` and `request_number` are 0 for a no-op.
    """

    index: int
    generation: int
    checksum: int
    client_id: int
    request_number: int
    executed: bool


class SnapshotTaken(msgspec.Struct, frozen=True):
    """Trace: the state was stored under `index`, when entries up to `applied` had been applied to it.

    `checksum` is the CRC-32 of the serialised state, `mark` the low-water mark that the retained snapshots allow now.
    """

    index: int
    generation: int
    checksum: int
    applied: int
    mark: int


class StateRestored(msgspec.Struct, frozen=True):
    """Trace: the state was replaced by that of the snapshot at `index`, at a start or because a leader sent it.

    `checksum` is that of the state as it is now. The log begins after `compacted_index` and ends at `last_index`.
    """

    index: int
    generation: int
    checksum: int
    compacted_index: int
    last_index: int
    installed: bool


class AnsweredWithoutLeading(msgspec.Struct, frozen=True):
    """Trace: a client waited for the entry at `index` at a server that does not lead, and is answered."""

    index: int
