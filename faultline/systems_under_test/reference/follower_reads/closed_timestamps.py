"""Closed timestamps in `follower-reads`: a store whose versions are times, and the leader that gives and closes them.

The versions of the other modes are indexes, which a follower compares with what it has applied. Here they are times:
the leader puts one into the entry of each command, and closes the present at each heartbeat since which a command came.
A follower answers at the newest time that is closed for it, if that reaches the stamp of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.harness.world.ports import NodeId, Trace
from faultline.systems_under_test.patterns.data_replication.closed_timestamp import (
    ClosedTime,
    ClosedTimestampLeader,
    ClosedTimestampReplica,
    NotClosed,
    TimeClosed,
    TimedCommand,
)
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import NO_CLIENT, ClientSessions
from faultline.systems_under_test.patterns.data_replication.log_entry import DATA
from faultline.systems_under_test.patterns.data_replication.versioned_value import VersionedStore
from faultline.systems_under_test.reference.follower_reads.messages import NOT_CLOSED, FollowerRead
from faultline.systems_under_test.reference.follower_reads.service import FollowerReadService, PendingRead
from faultline.systems_under_test.reference.follower_reads.settings import FollowerReadSettings
from faultline.systems_under_test.reference.follower_reads.stamped_store import StampedStore
from faultline.systems_under_test.reference.raft.extension import ExtendedServer, ServerExtension
from faultline.systems_under_test.reference.raft.key_value_store import Applied
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse, LoggedCommand

__all__ = ["ClosedTimeReads", "ClosedTimestamps", "ClosingParts", "TimedStore"]

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[TimedCommand | ClosedTime | LoggedCommand] = msgspec.msgpack.Decoder(
    TimedCommand | ClosedTime | LoggedCommand
)


class _TimedState(msgspec.Struct, frozen=True, array_like=True):
    """The content of a snapshot: the newest time that is closed, and the state of the store."""

    closed: int
    state: bytes


_STATE_DECODER = msgspec.msgpack.Decoder(_TimedState)


class TimedStore(StampedStore):
    """The store whose versions are the times in the entries; `replica` answers at those that are closed.

    Without `keeps_past` it forgets what no read at the newest closed time, or at a later one, can find.
    """

    def __init__(
        self,
        sessions: ClientSessions[ClientResponse],
        trace: Trace,
        new_versions: Callable[[], VersionedStore[int]],
        replica: type[ClosedTimestampReplica] = ClosedTimestampReplica,
        *,
        keeps_past: bool,
    ) -> None:
        super().__init__(sessions, trace, new_versions, versions_kept=0)
        self.replica = replica(self._versions())
        self._keeps_past = keeps_past
        self._command_at = 0

    @property
    def timestamp(self) -> int:
        """The highest timestamp of an applied entry, of a command or of a closing."""
        return max(self.version, self.replica.closed)

    def snapshot(self) -> bytes:
        """Return the whole state, with the time that is closed."""
        return _ENCODER.encode(_TimedState(self.replica.closed, super().snapshot()))

    def restore(self, state: bytes) -> None:
        """Put the state of a snapshot in the place of this one. Raises msgspec.MsgspecError when it is none."""
        content = _STATE_DECODER.decode(state)
        super().restore(content.state)
        self._command_at = self.version
        self.replica.values = self._versions()
        self.replica.closed = content.closed

    def apply(self, index: int, data: bytes) -> Applied:
        """Apply a closing, or a command at its time; commands of the servers themselves have none and write nothing."""
        entry = _DECODER.decode(data)
        if type(entry) is ClosedTime:
            self._close(index, entry.timestamp)
            return Applied(NO_CLIENT, 0, ClientResponse(0), False)
        if type(entry) is TimedCommand:
            self._command_at = entry.timestamp
            data = entry.command
        return super().apply(index, data)

    def _close(self, index: int, timestamp: int) -> None:
        self.replica.close(timestamp)
        self._trace.emit(TimeClosed(index, timestamp))
        if not self._keeps_past:
            self.replica.values.compact(self.replica.closed)

    def _version_at(self, index: int) -> int:
        return self._command_at

    def _versions(self) -> VersionedStore[int]:
        assert self.current.versions is not None, "a store whose versions are times keeps versions"
        return self.current.versions


class ClosedTimestamps(ServerExtension):
    """The part of one server in closed timestamps: while it leads, it gives them and closes them."""

    def __init__(self, server: ExtendedServer, store: TimedStore, leader: type[ClosedTimestampLeader]) -> None:
        self._server = server
        self._store = store
        self._new_leader = leader
        self._leader = leader([])
        self._is_open = False

    def start_leading(self, no_op_index: int) -> None:
        """Go on above every timestamp in the log, and close soon what earlier leaders left open."""
        self._leader = self._new_leader(self._left_to_apply(), self._store.timestamp)
        self._is_open = True

    def logged(self, data: bytes) -> bytes:
        """Return the command with its timestamp."""
        self._is_open = True
        return _ENCODER.encode(self._leader.write(self._server.ports.clock.wall_us(), data))

    def beat(self) -> None:
        """Close the present, if a command came since the last time."""
        if self._server.leads and self._is_open:
            self._is_open = False
            closing = self._leader.close(self._server.ports.clock.wall_us())
            self._server.log.append_and_replicate(DATA, _ENCODER.encode(closing))

    def _left_to_apply(self) -> Iterator[TimedCommand | ClosedTime]:
        """Yield the entries with timestamps that this server has logged and not applied."""
        wal = self._server.wal
        for index in range(self._server.log.last_applied + 1, wal.last_index + 1):
            logged = wal.entry(index)
            entry = _DECODER.decode(logged.data) if logged.kind == DATA else None
            if isinstance(entry, TimedCommand | ClosedTime):
                yield entry


class ClosedTimeReads(FollowerReadService):
    """Reads at a server that does not lead: at the newest time that is closed here, with or without a leader."""

    def __init__(self, server: ExtendedServer, store: StampedStore, settings: FollowerReadSettings) -> None:
        super().__init__(server, store, settings)
        assert isinstance(store, TimedStore), "the mode whose stamps are times has a store whose versions are times"
        self._replica = store.replica

    @property
    def closed_time(self) -> int:
        """The newest time that is closed here."""
        return self._replica.closed

    def handle_follower_read(self, source: NodeId, request: FollowerRead) -> None:
        """Answer a read, or refuse it, at once."""
        read = PendingRead(source, request)
        try:
            self._serve(read)
        except NotClosed:
            self._refuse(read, NOT_CLOSED)

    def _look_up(self, request: FollowerRead) -> tuple[Any, int, int]:
        timestamp = max(request.stamp, self._replica.closed)
        return self._replica.read_at(request.key, timestamp), timestamp, self._log.last_applied


@dataclass(frozen=True, slots=True)
class ClosingParts:
    """The classes of closed timestamps: on a server, while it leads and while it does not."""

    timestamps: type[ClosedTimestamps] = ClosedTimestamps
    leader: type[ClosedTimestampLeader] = ClosedTimestampLeader
    replica: type[ClosedTimestampReplica] = ClosedTimestampReplica
