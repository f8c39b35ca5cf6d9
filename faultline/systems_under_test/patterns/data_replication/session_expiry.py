"""The end of client sessions: the part of the idempotent receiver that needs a clock, and must not decide alone.

Clients come and go, and so do their sessions. A session that was not used for five minutes ends. Clients without
requests send heartbeats. The printed code lets each server remove sessions by its own clock. Then servers disagree
about the known clients, and after a leader change a retry is executed twice, or refused although it was executed. So
the clock only makes the *leader propose*: an entry of the replicated log ends the sessions it names, at the same point
of the log on every server (IDR-R15).

Only the leader hears from clients, so only it knows which are idle. A new leader knows nothing and grants every session
a full time anew. No session expires while entries wait to be committed: one of them may be a request of that client.

The clock is the monotonic one. The receipt of a request and its execution both count as signs of life.

Sources: Patterns of Distributed Systems ch. 15, "Expiring the Registered Clients"; Ongaro's thesis 6.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from faultline.harness.world.ports import Clock

__all__ = ["CHECK_INTERVAL_US", "SESSION_TIMEOUT_US", "SessionExpiry"]

SESSION_TIMEOUT_US = 300_000_000
"""The time for which a session lives without a request or heartbeat of its client: five minutes."""

CHECK_INTERVAL_US = 10_000_000
"""The interval at which a leader looks for idle sessions, and a client sends its heartbeat: ten seconds."""


class SessionExpiry:
    """The times at which a leader last heard of each client: in memory only, and begun anew with each leadership."""

    __slots__ = ("_checked_us", "_clock", "_interval_us", "_leading_since_us", "_seen_us", "timeout_us")

    def __init__(
        self, clock: Clock, timeout_us: int = SESSION_TIMEOUT_US, check_interval_us: int = CHECK_INTERVAL_US
    ) -> None:
        self._clock = clock
        self.timeout_us = timeout_us
        self._interval_us = check_interval_us
        self._leading_since_us = 0
        self._checked_us = 0
        self._seen_us: dict[int, int] = {}

    def start_leading(self) -> None:
        """Begin a leadership: every client counts as seen now."""
        self._seen_us.clear()
        self._leading_since_us = self._checked_us = self._clock.monotonic_us()

    def refresh(self, client_id: int) -> None:
        """Record a sign of life of `client_id`."""
        self._seen_us[client_id] = self._clock.monotonic_us()

    def is_due(self) -> bool:
        """Return whether it is time to look for idle sessions."""
        return self._clock.monotonic_us() - self._checked_us >= self._interval_us

    def idle(self, client_ids: Iterable[int]) -> tuple[int, ...]:
        """Return those of `client_ids` without a sign of life for longer than the timeout.

        Their end is to be proposed to the log.
        """
        self._checked_us = self._clock.monotonic_us()
        oldest_us = self._checked_us - self.timeout_us
        seen, since_us = self._seen_us, self._leading_since_us
        return tuple(client_id for client_id in client_ids if seen.get(client_id, since_us) < oldest_us)

    def forget(self, client_ids: Iterable[int]) -> None:
        """Forget the signs of life of sessions that have ended."""
        for client_id in client_ids:
            self._seen_us.pop(client_id, None)
