"""The sessions of clients, apart from keeping them: a server ends and reports them.

The sessions themselves are replicated state and live in the store. A server adds what a leader knows of signs of life,
its proposals to end the sessions of clients without one, and reports for the invariants.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from faultline.harness.world.ports import Trace
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.patterns.data_replication.session_expiry import SessionExpiry
from faultline.systems_under_test.reference.raft.key_value_store import (
    REQUEST_DISCARDED,
    UNKNOWN_SESSION,
    Applied,
    encode_command,
)
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse, ExpireSessions
from faultline.systems_under_test.reference.shared.trace_events import (
    DuplicateAnswered,
    EntryApplied,
    SessionsEnded,
    SessionsSeen,
)

__all__ = ["SessionKeeping"]

_SEEN_EVERY_ENTRIES = 32
_REFUSALS = {UNKNOWN_SESSION: "expired-session-refused", REQUEST_DISCARDED: "discarded-request-refused"}
_ENCODER = msgspec.msgpack.Encoder()


class SessionKeeping:
    """One server's part in the life of sessions."""

    def __init__(self, trace: Trace, sessions: ClientSessions[ClientResponse], expiry: SessionExpiry) -> None:
        self._trace = trace
        self._sessions = sessions
        self._expiry = expiry
        self.refresh = expiry.refresh
        self.start_leading = expiry.start_leading
        self.is_due = expiry.is_due

    def proposal(self) -> bytes | None:
        """Return the command that ends the sessions of clients that were silent too long; None when there are none."""
        idle = self.idle()
        return encode_command(ExpireSessions(idle)) if idle else None

    def idle(self) -> tuple[int, ...]:
        """Return the clients whose sessions may end, as far as this leader knows."""
        return self._expiry.idle(self._sessions.client_ids())

    def report(self, entry: LogEntry, applied: Applied) -> None:
        """Tell what applying `entry` came to."""
        client_id, number, executed = applied.client_id, applied.request_number, applied.executed
        event = EntryApplied(entry.index, entry.generation, crc32(entry.data), client_id, number, executed)
        self._trace.emit(event)
        if not executed:
            self._report_not_executed(entry.index, client_id, applied.response, applied.expired)
        if entry.index % _SEEN_EVERY_ENTRIES == 0:
            self._trace.emit(self._seen(entry.index))

    def _report_not_executed(
        self, index: int, client_id: int, response: ClientResponse, expired: tuple[int, ...]
    ) -> None:
        trace = self._trace
        if expired:
            self._expiry.forget(expired)
            trace.emit(SessionsEnded(index, expired, self._expiry.timeout_us))
            trace.sometimes("sessions-expired")
        elif response.error in _REFUSALS:
            trace.sometimes(_REFUSALS[response.error])
        elif client_id:
            checksum = crc32(_ENCODER.encode(response))
            trace.emit(DuplicateAnswered(client_id, response.request_number, checksum))
            trace.sometimes("duplicate-answered")

    def _seen(self, index: int) -> SessionsSeen:
        content = self._sessions.content()
        most = max((len(responses) for _, responses in content.values()), default=0)
        checksum = crc32(_ENCODER.encode(content))
        return SessionsSeen(index, len(content), checksum, most, self._sessions.responses_max)
