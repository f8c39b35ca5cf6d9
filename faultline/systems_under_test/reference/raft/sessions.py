"""The sessions of clients, apart from keeping them: a server ends and reports them.

The sessions themselves are replicated state and live in the store. A server adds what a leader knows of signs of life,
its proposals to end the sessions of clients without one, and reports for the invariants.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    Acknowledged,
    ClientSessions,
    DiscardPolicy,
    LastResponses,
    OneAtATime,
)
from faultline.systems_under_test.patterns.data_replication.session_expiry import SessionExpiry
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogEntry
from faultline.systems_under_test.reference.raft.key_value_store import (
    REQUEST_DISCARDED,
    UNKNOWN_SESSION,
    Applied,
    encode_command,
)
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse, ExpireSessions
from faultline.systems_under_test.reference.shared.trace_events import (
    DuplicateAnswered,
    EntryApplied,
    SessionsEnded,
    SessionsSeen,
)

__all__ = ["REQUESTS_IN_FLIGHT", "SessionKeeping", "discard_policy"]

REQUESTS_IN_FLIGHT = 1
"""The requests that a client of `consistent-core` has in flight: it is asked for one operation at a time."""

_SEEN_EVERY_ENTRIES = 32
_REFUSALS = {UNKNOWN_SESSION: "expired-session-refused", REQUEST_DISCARDED: "discarded-request-refused"}
_ENCODER = msgspec.msgpack.Encoder()


def discard_policy(settings: RaftSettings) -> DiscardPolicy:
    """Return the policy that the options ask for. Raise UsageError when it cannot serve the clients."""
    policy: DiscardPolicy = LastResponses(settings.saved_responses_max)
    if settings.discard_policy == "one-at-a-time":
        policy = OneAtATime()
    elif settings.discard_policy == "acknowledged":
        policy = Acknowledged()
    policy.refuse_in_flight(REQUESTS_IN_FLIGHT)
    return policy


class SessionKeeping:
    """One server's part in the life of sessions."""

    def __init__(
        self,
        ports: Ports,
        sessions: ClientSessions[ClientResponse],
        settings: RaftSettings,
        expiry: type[SessionExpiry],
    ) -> None:
        self._trace = ports.trace
        self._sessions = sessions
        self._settings = settings
        self._expiry = expiry(ports.clock, settings.session_timeout_us, settings.session_check_us)
        self.refresh = self._expiry.refresh
        self.start_leading = self._expiry.start_leading
        self.is_due = self._expiry.is_due

    def proposal(self) -> bytes | None:
        """Return the command that ends the sessions of clients that were silent too long; None when there are none."""
        idle = self.idle()
        return encode_command(ExpireSessions(idle)) if idle else None

    def idle(self) -> tuple[int, ...]:
        """Return the clients whose sessions may end, as far as this leader knows."""
        return self._expiry.idle(self._sessions.client_ids())

    def report(self, entry: LogEntry, applied: Applied) -> None:
        """Tell what applying `entry` came to."""
        client_id, number, response, executed, expired = applied
        event = EntryApplied(entry.index, entry.generation, crc32(entry.data), client_id, number, executed)
        self._trace.emit(event)
        if not executed:
            self._report_not_executed(entry.index, client_id, response, expired)
        if entry.index % _SEEN_EVERY_ENTRIES == 0:
            self._trace.emit(self._seen(entry.index))

    def _report_not_executed(
        self, index: int, client_id: int, response: ClientResponse, expired: tuple[int, ...]
    ) -> None:
        trace = self._trace
        if expired:
            self._expiry.forget(expired)
            trace.emit(SessionsEnded(index, expired, self._settings.session_timeout_us))
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
        kept = {"last-responses": self._settings.saved_responses_max, "one-at-a-time": 1}
        checksum = crc32(_ENCODER.encode(content))
        return SessionsSeen(index, len(content), checksum, most, kept.get(self._settings.discard_policy))
